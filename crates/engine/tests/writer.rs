//! Entries that are written piece by piece. Committed entries are complete, and others leave nothing behind, whatever
//! their length is and whichever other writers run.

#![cfg(test)]

mod common;

use std::io::{self, Write};

use common::{fast_folder, fork, value, version_of};
use eyewall::{Cache, Change, Committed, Error, Options, Purge, PutOptions, Updated, Writer};

const LIMIT: u64 = 1 << 20;

fn cache() -> Cache {
    Options::new().size(8 << 20).entry_bytes_max(LIMIT).heap().unwrap()
}

fn writer(cache: &Cache, key: &str, length: Option<u64>) -> Writer {
    cache.writer(key, &PutOptions::new(), length).unwrap()
}

/// Nothing is held, and nothing contradicts anything.
fn check(cache: &Cache) {
    let stats = cache.stats().unwrap();
    assert_eq!(stats.pins, 0);
    let sum = stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes;
    assert_eq!(sum, stats.data_bytes, "{stats:?}");
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
}

fn check_value(cache: &Cache, key: &str, version: u32, bytes: usize) {
    let hit = cache.get(key).unwrap().unwrap();
    assert_eq!((version_of(key.as_bytes(), &hit), hit.len()), (version, bytes));
}

fn error(error: &io::Error) -> &Error {
    error.get_ref().unwrap().downcast_ref().unwrap()
}

#[test]
fn pieces_of_a_known_length_become_the_entry_at_the_commit() {
    let cache = cache();
    let bytes = value(b"key", 1, 300_001);
    let options = PutOptions::new().metadata(b"text/html").tags(&["t"]);
    let mut writer = cache.writer("key", &options, Some(bytes.len() as u64)).unwrap();
    for piece in bytes.chunks(7777) {
        writer.write_all(piece).unwrap();
        assert!(cache.get("key").unwrap().is_none());
    }
    assert_eq!(writer.written(), 300_001);
    let Committed::Stored(serial) = writer.commit().unwrap() else { panic!("nobody else is there") };
    check_value(&cache, "key", 1, bytes.len());
    let hit = cache.get("key").unwrap().unwrap();
    assert_eq!((hit.serial(), hit.metadata()), (serial, &b"text/html"[..]));
    assert_eq!(hit.tags().collect::<Vec<_>>(), ["t"]);
    drop(hit);
    assert_eq!(cache.stats().unwrap().filler_bytes, 0, "the room had exactly its length");
    check(&cache);
    cache.purge_tag("t", Purge::Hard).unwrap();
    assert!(cache.get("key").unwrap().is_none());
}

#[test]
fn unknown_and_wrong_lengths_work_too() {
    let cache = cache();
    for (version, (bytes, length)) in [
        (10, None),
        (60_000, None),
        (70_000, None),
        (900_000, None),
        (50_000, Some(10)),
        (10, Some(50_000)),
        (900_000, Some(1)),
        (LIMIT as usize - 100, None),
    ]
    .into_iter()
    .enumerate()
    {
        let whole = value(b"key", version as u32, bytes);
        let mut writer = writer(&cache, "key", length);
        whole.chunks(10_000).for_each(|piece| writer.write_all(piece).unwrap());
        assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
        check_value(&cache, "key", version as u32, bytes);
        check(&cache);
    }
    let empty = writer(&cache, "empty", None);
    assert!(matches!(empty.commit().unwrap(), Committed::Stored(_)));
    assert!(cache.get("empty").unwrap().unwrap().is_empty());
    check(&cache);
}

#[test]
fn room_grows_in_place_or_moves_if_somebody_writes_behind_it() {
    for others in [false, true] {
        let cache = Options::new().size(16 << 20).entry_bytes_max(LIMIT).heap().unwrap();
        let whole = value(b"key", 1, 900_000);
        let mut writer = writer(&cache, "key", None);
        for (number, piece) in whole.chunks(10_000).enumerate() {
            writer.write_all(piece).unwrap();
            if others {
                let other = format!("other {number}");
                cache.put(&other, value(other.as_bytes(), 1, 500)).unwrap();
            }
        }
        writer.commit().unwrap();
        check_value(&cache, "key", 1, 900_000);
        let stats = cache.stats().unwrap();
        // A room that moved left its former place behind.
        assert_eq!(stats.dead_bytes > 0, others, "{stats:?}");
        check(&cache);
    }
}

#[test]
fn several_writers_work_at_once_and_evict_what_they_need() {
    let cache = cache();
    for round in 0..20_u32 {
        let keys: Vec<String> = (0..4).map(|number| format!("key {round} {number}")).collect();
        let whole: Vec<_> = keys.iter().map(|key| value(key.as_bytes(), round, 200_000)).collect();
        let mut writers: Vec<_> = keys.iter().map(|key| writer(&cache, key, None)).collect();
        for at in (0..200_000).step_by(20_000) {
            for (writer, whole) in writers.iter_mut().zip(&whole) {
                writer.write_all(&whole[at..at + 20_000]).unwrap();
            }
        }
        for (writer, key) in writers.into_iter().zip(&keys) {
            writer.commit().unwrap();
            check_value(&cache, key, round, 200_000);
        }
        check(&cache);
    }
}

#[test]
fn an_abort_a_drop_and_a_panic_leave_nothing_behind() {
    let cache = cache();
    cache.put("key", value(b"key", 1, 100)).unwrap();
    let begin = || {
        let mut writer = writer(&cache, "key", None);
        writer.write_all(&vec![7; 200_000]).unwrap();
        writer
    };
    begin().abort();
    drop(begin());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _writer = begin();
        panic!("in the middle");
    }));
    assert!(result.is_err());
    check_value(&cache, "key", 1, 100);
    check(&cache);
    // The claim is free.
    let updated = cache.update("key", &PutOptions::new(), |_| Change::Put(value(b"key", 2, 100))).unwrap();
    assert!(matches!(updated, Updated::Stored(_)));
}

#[test]
fn a_value_that_grows_too_large_is_aborted_at_the_exceeding_write() {
    let cache = cache();
    let result = cache.writer("key", &PutOptions::new(), Some(LIMIT));
    assert!(matches!(result, Err(Error::EntryTooLarge { max: LIMIT, .. })), "{result:?}");
    let mut writer = writer(&cache, "key", None);
    writer.write_all(&vec![1; LIMIT as usize - 100]).unwrap();
    let refused = writer.write(&[1; 100]).unwrap_err();
    assert!(matches!(error(&refused), Error::EntryTooLarge { max: LIMIT, .. }), "{refused}");
    assert!(matches!(error(&writer.write(&[1]).unwrap_err()), Error::Interrupted { .. }));
    assert!(matches!(writer.commit(), Err(Error::Interrupted { .. })));
    assert!(cache.get("key").unwrap().is_none());
    check(&cache);
}

type ChangeOf = fn(&Cache);

#[test]
fn every_change_of_the_entry_meanwhile_supersedes_the_writer() {
    let cache = cache();
    let changes: [(&str, ChangeOf, Option<u32>); 7] = [
        ("put", |cache| assert!(cache.put("key", value(b"key", 2, 50)).is_ok()), Some(2)),
        ("remove", |cache| assert!(cache.remove("key").unwrap()), None),
        ("clear", |cache| assert_eq!(cache.clear().unwrap(), 1), None),
        ("purge by tag", |cache| cache.purge_tag("t", Purge::Hard).unwrap(), None),
        ("purge by prefix", |cache| cache.purge_prefix("k", Purge::Hard).unwrap(), None),
        ("purge of all", |cache| cache.purge_all(Purge::Hard).unwrap(), None),
        ("another purge", |cache| cache.purge_tag("u", Purge::Hard).unwrap(), Some(3)),
    ];
    for (name, change, left) in changes {
        cache.put("key", value(b"key", 1, 50)).unwrap();
        let mut writer = cache.writer("key", &PutOptions::new().tags(&["t"]), None).unwrap();
        writer.write_all(&value(b"key", 3, 90_000)).unwrap();
        change(&cache);
        let committed = writer.commit().unwrap();
        assert_eq!(committed == Committed::Superseded, left != Some(3), "{name}: {committed:?}");
        let found = cache.get("key").unwrap().map(|hit| version_of(b"key", &hit));
        assert_eq!(found, left, "{name}");
        check(&cache);
    }
}

#[test]
fn a_second_writer_waits_for_the_first() {
    let cache = cache();
    let mut first = writer(&cache, "key", None);
    first.write_all(&value(b"key", 1, 100)).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| {
            let mut second = writer(&cache, "key", None);
            assert_eq!(version_of(b"key", &cache.get("key").unwrap().unwrap()), 1);
            second.write_all(&value(b"key", 2, 100)).unwrap();
            second.commit().unwrap()
        });
        assert!(matches!(first.commit().unwrap(), Committed::Stored(_)));
        assert!(matches!(second.join().unwrap(), Committed::Stored(_)));
    });
    check_value(&cache, "key", 2, 100);
}

#[test]
fn a_writer_may_change_threads_and_outlive_the_one_that_began_it() {
    let cache = cache();
    let other = cache.clone();
    let mut begun = std::thread::spawn(move || writer(&other, "key", None)).join().unwrap();
    let whole = value(b"key", 1, 300_000);
    for piece in whole.chunks(30_000) {
        let piece = piece.to_vec();
        begun = std::thread::spawn(move || {
            begun.write_all(&piece).unwrap();
            begun
        })
        .join()
        .unwrap();
    }
    begun.commit().unwrap();
    check_value(&cache, "key", 1, 300_000);
    check(&cache);
}

#[test]
fn a_forked_child_can_not_use_its_parents_writer_and_does_it_no_harm() {
    let folder = fast_folder();
    let cache = Options::new().size(8 << 20).open(folder.path().join("volume")).unwrap();
    let mut parents = writer(&cache, "key", None);
    parents.write_all(&value(b"key", 1, 100)[..50]).unwrap();
    let mut kept = Some(parents);
    fork(|| {
        let mut writer = kept.take().unwrap();
        assert!(matches!(error(&writer.write(&[1]).unwrap_err()), Error::Interrupted { .. }));
        drop(writer);
    })
    .finish();
    let mut parents = kept.unwrap();
    parents.write_all(&value(b"key", 1, 100)[50..]).unwrap();
    assert!(matches!(parents.commit().unwrap(), Committed::Stored(_)));
    check_value(&cache, "key", 1, 100);
}

const SECRET: &[u8] = b"nobody is to read this after it was given up, whoever has the file";

#[test]
fn an_erasing_volume_keeps_nothing_of_an_unstored_value() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(4 << 20).entry_bytes_max(400_000).secure_erase(true).open(&path).unwrap();
    let traces = || std::fs::read(&path).unwrap().windows(SECRET.len()).filter(|window| *window == SECRET).count();
    let begin = || {
        let mut writer = cache.writer("key", &PutOptions::new().tags(&["t"]), None).unwrap();
        writer.write_all(SECRET).unwrap();
        writer
    };
    begin().abort();
    assert_eq!(traces(), 0, "of the aborted value");
    let superseded = begin();
    cache.purge_tag("t", Purge::Hard).unwrap();
    assert_eq!(superseded.commit().unwrap(), Committed::Superseded);
    assert_eq!(traces(), 0, "of the purged value");
    let superseded = begin();
    cache.remove("key").unwrap();
    assert_eq!(superseded.commit().unwrap(), Committed::Superseded);
    assert_eq!(traces(), 0, "of the removed value");
    let mut moved = begin();
    for number in 0..5 {
        cache.put(format!("{number}"), [1; 1000]).unwrap();
        moved.write_all(&vec![2; 60_000]).unwrap();
    }
    assert_eq!(traces(), 1, "of the moved value");
    moved.commit().unwrap();
    assert_eq!(traces(), 1);
    cache.remove("key").unwrap();
    assert_eq!(traces(), 0);
    check(&cache);
}

#[test]
fn a_reader_that_holds_everything_delays_a_writer_without_loss() {
    let cache = Options::new().size(1 << 20).entry_bytes_max(200_000).heap().unwrap();
    let whole = value(b"key", 1, 150_000);
    let mut writer = writer(&cache, "key", Some(50_000));
    writer.write_all(&whole[..50_000]).unwrap();
    let mut held = Vec::new();
    for number in 0..60 {
        let key = format!("held {number}");
        if cache.put(&key, vec![1; 20_000]).is_ok()
            && let Some(hit) = cache.get(&key).unwrap()
            && !hit.is_copy()
        {
            held.push(hit.into_owned());
        }
    }
    let refused = writer.write(&whole[50_000..]);
    if let Err(refused) = refused {
        assert!(matches!(error(&refused), Error::Pinned { .. }), "{refused}");
        drop(held);
        writer.write_all(&whole[50_000..]).unwrap();
    }
    writer.commit().unwrap();
    check_value(&cache, "key", 1, 150_000);
}

#[test]
fn a_resize_ends_writers_and_followers() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(4 << 20).open(&path).unwrap();
    let mut moved = writer(&cache, "key", None);
    moved.write_all(&value(b"key", 1, 50_000)).unwrap();
    let mut follower = cache.follow("key").unwrap().unwrap();
    cache.resize(&Options::new().size(8 << 20)).unwrap();
    let followed = follower.read(&mut [0; 10], std::time::Duration::from_mins(1));
    assert!(matches!(followed, Err(Error::Interrupted { .. })), "{followed:?}");
    assert!(matches!(moved.commit(), Err(Error::Interrupted { why: "the volume was resized" })));
    assert!(cache.get("key").unwrap().is_none());
    let mut writer = writer(&cache, "key", None);
    writer.write_all(&value(b"key", 2, 50_000)).unwrap();
    assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
    check_value(&cache, "key", 2, 50_000);
    drop(follower);
    check(&cache);
}

/// Gives its bytes in pieces of odd lengths, is interrupted before each, and fails at the end if it has to.
struct Source<'a> {
    left: &'a [u8],
    calls: usize,
    fails: bool,
}

impl io::Read for Source<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.calls += 1;
        match self.left.len() {
            _ if self.calls % 2 == 1 => Err(io::ErrorKind::Interrupted.into()),
            0 if self.fails => Err(io::Error::other("the source is broken")),
            _ => self.left.read(&mut bytes[..self.calls.min(10_000)]),
        }
    }
}

#[test]
fn a_source_is_read_to_its_end_or_to_the_wanted_length() {
    let cache = cache();
    let bytes = value(b"key", 1, 300_001);
    for length in [None, Some(300_001)] {
        let mut source = &bytes[..];
        let mut whole = writer(&cache, "key", length);
        assert_eq!(whole.read_from(&mut source, 5).unwrap(), 5);
        assert_eq!(whole.read_from(&mut source, u64::MAX).unwrap(), 299_996);
        assert_eq!(whole.read_from(&mut source, u64::MAX).unwrap(), 0, "the source has ended");
        whole.commit().unwrap();
        check_value(&cache, "key", 1, bytes.len());
    }
    let mut pieces = writer(&cache, "key", None);
    let mut source = Source { left: &bytes, calls: 0, fails: false };
    assert_eq!(pieces.read_from(&mut source, u64::MAX).unwrap(), 300_001);
    pieces.commit().unwrap();
    check_value(&cache, "key", 1, bytes.len());
    check(&cache);
}

#[test]
fn bytes_of_a_source_before_its_failure_count_as_written() {
    let cache = cache();
    let bytes = value(b"key", 1, 30_000);
    let mut writer = writer(&cache, "key", None);
    let mut source = Source { left: &bytes[..20_000], calls: 0, fails: true };
    assert_eq!(writer.read_from(&mut source, u64::MAX).unwrap_err().to_string(), "the source is broken");
    assert_eq!(writer.written(), 20_000);
    writer.write_all(&bytes[20_000..]).unwrap();
    writer.commit().unwrap();
    check_value(&cache, "key", 1, bytes.len());
    check(&cache);
}

#[test]
fn a_source_that_gives_too_much_ends_its_writer() {
    let cache = cache();
    let mut writer = writer(&cache, "key", None);
    let refused = writer.read_from(&mut io::repeat(7), u64::MAX).unwrap_err();
    assert!(matches!(error(&refused), Error::EntryTooLarge { .. }));
    assert!(matches!(error(&writer.read_from(&mut io::repeat(7), 1).unwrap_err()), Error::Interrupted { .. }));
    drop(writer);
    assert!(cache.get("key").unwrap().is_none());
    check(&cache);
}

#[test]
fn a_source_of_unknown_length_may_fill_the_entry_to_its_last_byte() {
    let cache = cache();
    let fits = |length: &usize| cache.writer("key", &PutOptions::new(), Some(*length as u64)).is_ok();
    let most = (0..=LIMIT as usize).rev().find(fits).unwrap();
    let bytes = value(b"key", 1, most);
    for (length, wanted) in [(None, u64::MAX), (Some(most as u64), u64::MAX), (None, most as u64)] {
        let mut writer = writer(&cache, "key", length);
        assert_eq!(writer.read_from(&mut &bytes[..], wanted).unwrap(), most as u64);
        writer.commit().unwrap();
        check_value(&cache, "key", 1, most);
        cache.remove("key").unwrap();
    }
    let mut writer = writer(&cache, "key", None);
    let refused = writer.read_from(&mut io::Read::chain(&bytes[..], &b"."[..]), u64::MAX).unwrap_err();
    assert!(matches!(error(&refused), Error::EntryTooLarge { .. }), "one byte more is too much");
    drop(writer);
    check(&cache);
}
