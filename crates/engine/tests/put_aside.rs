//! Broken volumes are put aside if the options say so. One of them is kept, and a new volume takes its place.

#![cfg(test)]

mod common;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use common::{Child, Role, fast_folder, fork, listen, say, turn};
use eyewall::{Cache, Error, Options, seams};

const SIZE: u64 = 1 << 20;
const ROLES: &[Role] = &[("open", open_when_told)];

#[test]
fn child() {
    common::play(ROLES);
}

fn options() -> Options {
    Options::new().size(SIZE).put_aside_broken(true)
}

fn make(path: &Path) {
    let cache = Options::new().size(SIZE).open(path).unwrap();
    cache.put("old", "value").unwrap();
}

fn write_at(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

fn resize(path: &Path, bytes: u64) {
    File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
}

type Damage = fn(&Path);

/// Each way to break a volume, by name.
const DAMAGES: [(&str, Damage); 9] = [
    ("empty", |path| resize(path, 0)),
    ("shorter than its header", |path| resize(path, 100)),
    ("truncated", |path| resize(path, SIZE / 2)),
    ("zeros in its header", |path| write_at(path, 0, &[0; 4096])),
    ("all zeros", |path| fs::write(path, vec![0; SIZE as usize]).unwrap()),
    ("another magic", |path| write_at(path, 0, &[7; 8])),
    ("another page", |path| write_at(path, 0, &[0xa5; 4096])),
    ("a page of another file", |path| write_at(path, 0, &b"SQLite format 3\0".repeat(256))),
    ("a changed shape", |path| write_at(path, 24, &[7; 8])),
];

fn broken_beside(path: &Path) -> Vec<PathBuf> {
    let name = format!("{}.broken-", path.file_name().unwrap().to_str().unwrap());
    let entries = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&name)).collect()
}

fn assert_new(cache: &Cache) {
    assert!(!cache.contains("old").unwrap());
    cache.put("new", "value").unwrap();
    assert_eq!(&*cache.get("new").unwrap().unwrap(), b"value");
}

#[test]
fn a_broken_volume_is_an_error_that_names_the_option_and_put_aside_with_it() {
    let _turn = turn();
    for (name, damage) in DAMAGES {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        make(&path);
        damage(&path);
        let before = fs::read(&path).unwrap();
        let refused =
            [Options::new(), options().create(false), options().read_only(true)].map(|options| options.open(&path));
        for error in refused.map(Result::unwrap_err) {
            assert!(matches!(error, Error::Corrupt { .. }), "{name}: {error:?}");
            assert!(error.to_string().contains("put_aside_broken(true)"), "{name}: {error}");
        }
        assert!(fs::read(&path).unwrap() == before && broken_beside(&path).is_empty(), "{name}");

        let cache = options().open(&path).unwrap();
        assert_new(&cache);
        let kept = cache.put_aside().unwrap();
        assert_eq!(broken_beside(&path), std::slice::from_ref(&kept), "{name}");
        assert!(fs::read(kept).unwrap() == before, "{name}");
    }
}

#[test]
fn one_entry_in_any_stripe_identifies_a_volume_without_its_first_page() {
    for _ in 0..20 {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = Options::new().size(SIZE).entry_bytes_max(4096).open(&path).unwrap();
        cache.put("old", "value").unwrap();
        assert_eq!(cache.stats().unwrap().stripes, 16);
        drop(cache);
        write_at(&path, 0, &[0xa5; 4096]);
        assert!(matches!(Cache::open(&path), Err(Error::Corrupt { .. })));
        assert_new(&options().open(&path).unwrap());
    }
}

#[test]
fn an_unused_volume_with_a_zeroed_first_page_is_known_by_its_stripes() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    drop(Options::new().size(SIZE).open(&path).unwrap());
    write_at(&path, 0, &[0; 4096]);
    assert!(matches!(Cache::open(&path), Err(Error::Corrupt { .. })));
    assert_new(&options().open(&path).unwrap());
}

#[test]
fn the_last_broken_volume_is_kept_and_nothing_else_is_removed() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let older = ["volume.broken-1", "volume.broken-1700000000"].map(|name| folder.path().join(name));
    let others = ["volume.broken-", "volume.broken-notes", "volume2.broken-1"].map(|name| folder.path().join(name));
    for path in older.iter().chain(&others) {
        fs::write(path, "old").unwrap();
    }
    fs::write(&path, "").unwrap();
    let cache = options().open(&path).unwrap();
    let kept = cache.put_aside().unwrap();
    assert!(fs::read(&kept).unwrap().is_empty() && older.iter().all(|path| !path.exists()));
    assert!(others.iter().all(|path| path.exists()));
    fs::remove_file(kept).unwrap();
    assert_eq!(cache.put_aside(), None);
}

#[test]
fn sound_volumes_and_other_files_stay_in_place() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    make(&path);
    assert!(options().open(&path).unwrap().contains("old").unwrap());
    // A newer format: sound for a newer program.
    write_at(&path, 8, &9_u32.to_le_bytes());
    assert!(matches!(options().open(&path), Err(Error::Version { found: 9, .. })));
    fs::write(&path, "somebody's letter").unwrap();
    assert!(matches!(options().open(&path), Err(Error::Foreign { .. })));
    // Without its first page, a volume that was never used can't be told from other files, nor can one that has lost
    // its stripes.
    for (is_used, bytes) in [(false, SIZE), (true, 4096)] {
        fs::remove_file(&path).unwrap();
        let cache = Options::new().size(SIZE).open(&path).unwrap();
        if is_used {
            cache.put("old", "value").unwrap();
        }
        drop(cache);
        write_at(&path, 0, &[0xa5; 4096]);
        resize(&path, bytes);
        assert!(matches!(options().open(&path), Err(Error::Foreign { .. })), "{is_used}, {bytes}");
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(options().open(&path), Err(Error::Foreign { .. })));
    assert!(broken_beside(&path).is_empty());
}

#[test]
fn a_link_stays_and_leads_to_the_new_volume() {
    let folder = fast_folder();
    let (path, link) = (folder.path().join("volume"), folder.path().join("link"));
    symlink("volume", &link).unwrap();
    fs::write(&path, "").unwrap();
    assert_new(&options().open(&link).unwrap());
    assert!(link.is_symlink() && broken_beside(&path).len() == 1 && broken_beside(&link).is_empty());
    // As left by a process that dies before it creates the new volume.
    fs::remove_file(&path).unwrap();
    assert_new(&options().open(&link).unwrap());
    fs::remove_file(&path).unwrap();
    fs::remove_file(&broken_beside(&path)[0]).unwrap();
    assert!(options().open(&link).unwrap_err().to_string().contains("link to a missing file"));
}

#[test]
fn a_death_before_the_new_volume_is_created_leaves_no_outage() {
    let _turn = turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    fs::write(&path, "").unwrap();
    let status = fork(|| {
        // The first store that it would make otherwise is one of the new volume's.
        seams::die_after(0);
        let _ = options().open(&path);
    })
    .wait();
    assert_eq!(status.signal(), Some(libc::SIGKILL));
    assert!(!path.exists() && broken_beside(&path).len() == 1, "it died between the rename and the creation");
    assert_new(&options().open(&path).unwrap());
    assert_eq!(broken_beside(&path).len(), 1);
}

fn open_when_told(words: &[&str]) {
    say("ready");
    listen();
    let cache = options().open(words[0]).unwrap();
    cache.put(words[1], "value").unwrap();
    say("done");
    listen();
}

#[test]
fn one_of_several_openers_puts_aside_and_all_share_the_new_volume() {
    let _turn = turn();
    for _ in 0..5 {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        make(&path);
        resize(&path, 4096);
        let keys = ["a", "b", "c", "d"];
        let mut children = keys.map(|key| Child::start("open", &[path.to_str().unwrap(), key]));
        for child in &mut children {
            child.expect("ready");
        }
        for child in &mut children {
            child.tell("go");
        }
        for child in &mut children {
            child.expect("done");
        }
        let cache = options().open(&path).unwrap();
        assert!(keys.iter().all(|key| cache.contains(key).unwrap()));
        assert_eq!(broken_beside(&path).len(), 1);
        assert_eq!(broken_beside(&path)[0].metadata().unwrap().len(), 4096);
        for mut child in children {
            child.tell("end");
            child.wait();
        }
    }
}

#[test]
fn a_cache_knows_whether_its_path_leads_to_it() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options().open(&path).unwrap();
    cache.resize(&Options::new().size(1 << 20)).unwrap();
    assert!(cache.is_at_its_path() && Options::new().heap().unwrap().is_at_its_path());
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    assert!(!cache.is_at_its_path());
    options().size(1 << 20).open(&path).unwrap();
    assert!(!cache.is_at_its_path(), "another one is there");
}
