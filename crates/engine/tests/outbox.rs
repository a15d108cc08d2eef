//! The outbox of a volume: purges of all processes go there, and its reader passes them on. No purge that was answered
//! is missing there, also if a process dies.

#![cfg(test)]

mod common;

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Child, fast_folder, listen, play, say};
use eyewall::{Cache, Error, Options, Outbox, Purge, PurgeOf, PutOptions, seams};

const SIZE: u64 = 512 << 10;

#[test]
fn child() {
    play(&[("purges", purges), ("reads", reads)]);
}

/// Purges a tag, and dies before a store if it is told to.
fn purges(arguments: &[&str]) {
    let cache = open(Path::new(arguments[0]));
    seams::die_after(arguments[1].parse().unwrap());
    cache.purge_tag("of a child", Purge::Hard).unwrap();
}

/// Reads the outbox, and dies before it empties it.
fn reads(arguments: &[&str]) {
    let cache = open(Path::new(arguments[0]));
    let mut outbox = cache.outbox().unwrap().unwrap();
    say(&outbox.read().unwrap().len().to_string());
    listen();
    seams::die_after(0);
    outbox.forget().unwrap();
}

fn open(path: &Path) -> Cache {
    Options::new().size(SIZE).lock_deadline(Duration::from_millis(20)).open(path).unwrap()
}

fn file_of(path: &Path) -> PathBuf {
    path.with_file_name("volume.purges")
}

fn tag(name: &str) -> (PurgeOf, Purge) {
    (PurgeOf::Tag(name.to_owned()), Purge::Hard)
}

fn names(outbox: &mut Outbox) -> Vec<(PurgeOf, Purge)> {
    outbox.read().unwrap()
}

#[test]
fn purges_of_all_caches_are_read_in_order_except_those_of_the_node() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let (cache, other) = (open(&path), open(&path));
    cache.purge_tag("before", Purge::Hard).unwrap();
    assert!(!file_of(&path).exists(), "a volume without a fleet has no outbox");
    let node = cache.for_node();
    let mut outbox = node.outbox().unwrap().unwrap();
    assert!(other.outbox().unwrap().is_none(), "another one reads it");
    cache.purge_tag("post-7", Purge::Hard).unwrap();
    other.purge_prefix("/shop/", Purge::Soft).unwrap();
    node.purge_tag("of the fleet", Purge::Hard).unwrap();
    node.clone().purge_all(Purge::Soft).unwrap();
    other.purge_prefix("", Purge::Hard).unwrap();
    cache.purge_all(Purge::Soft).unwrap();
    let prefix = (PurgeOf::Prefix(b"/shop/".to_vec()), Purge::Soft);
    let all = [(PurgeOf::Everything, Purge::Hard), (PurgeOf::Everything, Purge::Soft)];
    assert_eq!(names(&mut outbox), [&[tag("post-7"), prefix][..], &all].concat());
    cache.purge_tag("later", Purge::Hard).unwrap();
    assert!(!outbox.forget().unwrap(), "there is one more");
    assert_eq!(names(&mut outbox), [tag("later")]);
    assert!(outbox.forget().unwrap());
    assert_eq!(file_of(&path).metadata().unwrap().len(), 0);
    assert!(Options::new().heap().unwrap().outbox().unwrap().is_none());
}

#[test]
fn a_program_can_make_the_outbox_before_the_first_node() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let options = Options::new().size(SIZE).mode(0o640).fleet(true);
    let cache = options.open(&path).unwrap();
    cache.purge_tag("early", Purge::Hard).unwrap();
    assert_eq!(file_of(&path).metadata().unwrap().permissions().mode() & 0o777, 0o640);
    options.open(&path).unwrap().purge_tag("of another", Purge::Hard).unwrap();
    assert_eq!(names(&mut cache.outbox().unwrap().unwrap()), [tag("early"), tag("of another")]);
    std::fs::remove_file(file_of(&path)).unwrap();
    options.clone().read_only(true).open(&path).unwrap();
    assert!(!file_of(&path).exists());
    options.anonymous().unwrap().purge_tag("nowhere", Purge::Hard).unwrap();
    std::os::unix::fs::symlink("/nowhere", file_of(&path)).unwrap();
    assert!(cache.outbox().is_err());
}

#[test]
fn links_and_resizes_lead_to_the_same_outbox() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let link = folder.path().join("link");
    let cache = open(&path);
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let mut outbox = cache.outbox().unwrap().unwrap();
    open(&link).purge_tag("by a link", Purge::Hard).unwrap();
    cache.resize(&Options::new().size(2 * SIZE)).unwrap();
    cache.purge_tag("after the resize", Purge::Hard).unwrap();
    Cache::open(&path).unwrap().purge_tag("by the new volume", Purge::Hard).unwrap();
    assert_eq!(names(&mut outbox), [tag("by a link"), tag("after the resize"), tag("by the new volume")]);
    assert!(cache.outbox().unwrap().is_none(), "the reader stays");
}

#[test]
fn the_next_reader_gets_what_was_not_forgotten() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    drop(cache.outbox().unwrap().unwrap());
    cache.purge_tag("one", Purge::Hard).unwrap();
    let mut reader = Child::start("reads", &[path.to_str().unwrap()]);
    reader.expect("1");
    assert!(cache.outbox().unwrap().is_none());
    reader.tell("die");
    reader.wait_until_killed();
    let mut outbox = cache.outbox().unwrap().unwrap();
    assert_eq!(names(&mut outbox), [tag("one")]);
    assert!(outbox.forget().unwrap());
    std::fs::remove_file(file_of(&path)).unwrap();
    cache.purge_tag("nobody asks for it", Purge::Hard).unwrap();
    assert_eq!(names(&mut outbox), [], "the reader creates the file again");
    cache.purge_tag("two", Purge::Hard).unwrap();
    assert_eq!(names(&mut outbox), [tag("two")]);
}

#[test]
fn damage_becomes_a_soft_purge_of_everything() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let mut outbox = cache.outbox().unwrap().unwrap();
    cache.purge_tag("one", Purge::Hard).unwrap();
    cache.purge_tag("two", Purge::Hard).unwrap();
    let file = std::fs::File::options().write(true).open(file_of(&path)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    cache.purge_tag("three", Purge::Hard).unwrap();
    let everything = (PurgeOf::Everything, Purge::Soft);
    let read = [outbox.read().unwrap(), outbox.read().unwrap()].concat();
    assert_eq!(read, [tag("one"), everything.clone(), tag("three")]);
    // A part of a record at the end, and then too many zeros to read at once.
    let mut file = std::fs::File::options().append(true).open(file_of(&path)).unwrap();
    file.write_all(b"EWP1\x04\0").unwrap();
    assert_eq!(names(&mut outbox), std::slice::from_ref(&everything));
    file.write_all(&vec![0; 300 << 10]).unwrap();
    cache.purge_tag("four", Purge::Hard).unwrap();
    let read = [outbox.read().unwrap(), outbox.read().unwrap(), outbox.read().unwrap()].concat();
    assert_eq!(read, [everything.clone(), everything, tag("four")]);
    assert!(outbox.forget().unwrap());
}

#[test]
fn many_purges_are_read_in_turns() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let mut outbox = cache.outbox().unwrap().unwrap();
    let long = "x".repeat(60_000);
    (0..20).for_each(|_| cache.purge_prefix(&long, Purge::Hard).unwrap());
    let mut count = 0;
    while count < 20 {
        let read = names(&mut outbox);
        assert!(!read.is_empty() && read.iter().all(|(what, _)| matches!(what, PurgeOf::Prefix(_))));
        count += read.len();
    }
    assert!(outbox.bytes_read() > 1_200_000 && outbox.forget().unwrap());
}

#[test]
fn a_purge_that_cannot_be_passed_on_counts_and_says_so() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let mut outbox = cache.outbox().unwrap().unwrap();
    let put = || cache.put_with("key", "value", &PutOptions::new().tags(&["tag"])).unwrap();
    let is_refused = || {
        put();
        let refused = cache.purge_tag("tag", Purge::Hard);
        assert!(matches!(&refused, Err(Error::Outbox { .. })), "{refused:?}");
        assert!(!cache.contains("key").unwrap(), "it counts here");
    };
    assert!(outbox.hold().unwrap());
    is_refused();
    outbox.release();
    let file = std::fs::File::options().write(true).open(file_of(&path)).unwrap();
    file.set_len(16 << 20).unwrap();
    is_refused();
    file.set_len(0).unwrap();
    put();
    cache.purge_tag("tag", Purge::Hard).unwrap();
    assert!(outbox.hold().unwrap());
    assert_eq!(names(&mut outbox), [tag("tag")]);
    assert!(outbox.forget().unwrap());
    outbox.release();
    drop(outbox);
    std::fs::remove_file(file_of(&path)).unwrap();
    std::fs::create_dir(file_of(&path)).unwrap();
    is_refused();
    assert!(cache.outbox().is_err());
}

/// Until the append, nobody can know of the purge. So what began before it may come from a machine that has not heard of it.
#[test]
fn what_is_stored_while_a_purge_waits_for_the_outbox_is_purged_too() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(SIZE).lock_deadline(Duration::from_mins(1)).open(&path).unwrap();
    let mut outbox = cache.outbox().unwrap().unwrap();
    let put = || cache.put_with("key", "old", &PutOptions::new().tags(&["tag"])).unwrap();
    put();
    assert!(outbox.hold().unwrap());
    std::thread::scope(|scope| {
        let purging = scope.spawn(|| cache.purge_tag("tag", Purge::Hard));
        while cache.contains("key").unwrap() {
            std::thread::yield_now();
        }
        put();
        outbox.release();
        purging.join().unwrap().unwrap();
    });
    assert!(!cache.contains("key").unwrap() && names(&mut outbox) == [tag("tag")]);
}

#[test]
fn whoever_dies_no_answered_purge_is_missing() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = open(&path);
    let mut outbox = cache.outbox().unwrap().unwrap();
    for stores in 0.. {
        let mut purger = Child::start("purges", &[path.to_str().unwrap(), &stores.to_string()]);
        let is_answered = purger.wait().success();
        let read = names(&mut outbox);
        assert!(!is_answered || read == [tag("of a child")], "{stores}: {read:?}");
        assert!(outbox.forget().unwrap());
        if is_answered {
            assert!(stores >= 3, "there are stores in the outbox, too");
            return;
        }
    }
}
