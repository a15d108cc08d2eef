//! Following an entry while it is written. The follower reads every byte as it comes, wherever the room moves, up to
//! the end, even if the entry was stored, replaced or evicted meanwhile. It never reads to an end that wasn't
//! committed.

#![cfg(test)]

mod common;

use std::io::Write;
use std::time::Duration;

use common::{Child, Random, fast_folder, fork, play, soak, value, version_of};
use eyewall::{Cache, Committed, Error, Follower, Options, PutOptions, seams};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);
const BYTES: usize = 700_000;

#[test]
fn child() {
    play(&[("writer", write_as_told), ("followers", follow_to_the_end), ("stopped", commit_and_stop)]);
}

fn options() -> Options {
    // No step of the index, so that a commit always makes the same stores.
    Options::new().size(16 << 20).entry_bytes_max(1 << 20).entry_size_hint(4096)
}

fn check(cache: &Cache) {
    assert_eq!(cache.stats().unwrap().pins, 0);
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
}

/// Reads exactly this many bytes more.
fn read_exactly(follower: &mut Follower, bytes: usize) -> Vec<u8> {
    let mut read = vec![0; bytes];
    let mut at = 0;
    while at < bytes {
        let more = follower.read(&mut read[at..], LONG).unwrap();
        assert!(more > 0, "the value ended after {at} of {bytes} bytes");
        at += more;
    }
    read
}

fn read_to_end(follower: &mut Follower, read: &mut Vec<u8>) -> eyewall::Result<()> {
    let mut piece = [0; 9001];
    loop {
        match follower.read(&mut piece, LONG)? {
            0 => return Ok(()),
            bytes => read.extend_from_slice(&piece[..bytes]),
        }
    }
}

#[test]
fn a_follower_reads_written_bytes_and_waits_for_more() {
    let cache = options().heap().unwrap();
    assert!(cache.follow("key").unwrap().is_none());
    cache.put("key", "an entry").unwrap();
    assert!(cache.follow("key").unwrap().is_none(), "nobody writes the key");
    let whole = value(b"key", 1, BYTES);
    let put = PutOptions::new().metadata(b"text/html").tags(&["t"]);
    let mut writer = cache.writer("key", &put, None).unwrap();
    assert!(cache.follow("another").unwrap().is_none());
    let mut follower = cache.follow("key").unwrap().unwrap();
    assert_eq!(follower.metadata(), b"text/html");
    let busy = follower.read(&mut [0; 10], Duration::ZERO);
    assert!(matches!(busy, Err(Error::Busy { .. })), "{busy:?}");
    writer.write_all(&whole[..1000]).unwrap();
    assert_eq!(read_exactly(&mut follower, 600), whole[..600]);
    assert_eq!(follower.read(&mut [0; 1000], LONG).unwrap(), 400);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = Vec::new();
            read_to_end(&mut follower, &mut read).map(|()| read)
        });
        for piece in whole[1000..].chunks(12_345) {
            writer.write_all(piece).unwrap();
        }
        let Committed::Stored(serial) = writer.commit().unwrap() else { panic!("nobody else is there") };
        assert_eq!(reader.join().unwrap().unwrap(), whole[1000..]);
        assert_eq!(cache.get("key").unwrap().unwrap().serial(), serial);
    });
    drop(follower);
    check(&cache);
}

#[test]
fn a_commit_between_two_reads_changes_nothing_even_if_the_entry_is_dropped() {
    let changes: [fn(&Cache); 3] = [
        |_| {},
        |cache| assert!(cache.put("key", "another").is_ok()),
        |cache| {
            assert!(cache.remove("key").unwrap());
            for number in 0..400 {
                cache.put(format!("flood {number}"), vec![7; 100_000]).unwrap();
            }
        },
    ];
    for change in changes {
        let cache = options().heap().unwrap();
        let whole = value(b"key", 1, BYTES);
        let mut writer = cache.writer("key", &PutOptions::new(), Some(BYTES as u64)).unwrap();
        writer.write_all(&whole).unwrap();
        let mut follower = cache.follow("key").unwrap().unwrap();
        let mut read = read_exactly(&mut follower, 1000);
        let Committed::Stored(serial) = writer.commit().unwrap() else { panic!("nobody else is there") };
        assert_eq!(follower.serial(), serial);
        change(&cache);
        read_to_end(&mut follower, &mut read).unwrap();
        assert!(read == whole);
        drop(follower);
        check(&cache);
    }
}

#[test]
fn a_room_that_moves_takes_its_followers_along() {
    let cache = options().heap().unwrap();
    let whole = value(b"key", 1, BYTES);
    let mut writer = cache.writer("key", &PutOptions::new().metadata(b"m"), None).unwrap();
    let mut quick = cache.follow("key").unwrap().unwrap();
    let mut slow = cache.follow("key").unwrap().unwrap();
    let (mut seen, mut read) = (Vec::new(), Vec::new());
    for (number, piece) in whole.chunks(20_000).enumerate() {
        writer.write_all(piece).unwrap();
        // Somebody writes behind the room each time.
        cache.put(format!("other {number}"), vec![1; 50_000]).unwrap();
        seen.extend(read_exactly(&mut quick, piece.len()));
        if number == 2 {
            read = read_exactly(&mut slow, 30_000);
        }
    }
    writer.commit().unwrap();
    // The follower hasn't looked since before most of the moves, so the entry lies elsewhere.
    read_to_end(&mut slow, &mut read).unwrap();
    assert!(read == whole && seen == whole);
    assert_eq!(quick.read(&mut [0; 10], LONG).unwrap(), 0);
    drop((quick, slow));
    check(&cache);
}

#[test]
fn an_abort_or_a_superseding_put_is_never_taken_for_the_end() {
    let cache = options().heap().unwrap();
    let ends: [fn(&Cache, eyewall::Writer); 4] = [
        |_, writer| writer.abort(),
        |cache, writer| {
            cache.put("key", "another").unwrap();
            assert_eq!(writer.commit().unwrap(), Committed::Superseded);
        },
        |cache, writer| {
            cache.purge_all(eyewall::Purge::Hard).unwrap();
            assert_eq!(writer.commit().unwrap(), Committed::Superseded);
        },
        |cache, writer| {
            drop(writer);
            // The new fill uses the same line of the table, and perhaps the same room.
            let mut writer = cache.writer("key", &PutOptions::new(), Some(5)).unwrap();
            writer.write_all(b"other").unwrap();
            writer.commit().unwrap();
        },
    ];
    for end in ends {
        let mut writer = cache.writer("key", &PutOptions::new(), None).unwrap();
        writer.write_all(b"value").unwrap();
        let mut follower = cache.follow("key").unwrap().unwrap();
        assert_eq!(read_exactly(&mut follower, 2), b"va");
        end(&cache, writer);
        let mut read = Vec::new();
        let result = read_to_end(&mut follower, &mut read);
        assert!(matches!(result, Err(Error::Interrupted { .. })), "{result:?}, {read:?}");
        drop(follower);
        check(&cache);
    }
}

#[test]
fn a_forked_child_can_not_read_its_parents_follower_and_does_it_no_harm() {
    let folder = fast_folder();
    let cache = options().open(folder.path().join("volume")).unwrap();
    let mut writer = cache.writer("key", &PutOptions::new(), None).unwrap();
    writer.write_all(b"value").unwrap();
    let mut kept = cache.follow("key").unwrap();
    fork(|| {
        let mut follower = kept.take().unwrap();
        assert!(matches!(follower.read(&mut [0; 5], LONG), Err(Error::Interrupted { .. })));
        drop(follower);
        let mut own = cache.follow("key").unwrap().unwrap();
        assert_eq!(read_exactly(&mut own, 5), b"value");
    })
    .finish();
    assert_eq!(read_exactly(kept.as_mut().unwrap(), 5), b"value");
    writer.commit().unwrap();
    assert_eq!(kept.unwrap().read(&mut [0; 5], LONG).unwrap(), 0);
}

/// Writes as many bytes of a value as it is told, then commits.
fn write_as_told(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let whole = value(b"key", 1, BYTES);
    let mut writer = cache.writer("key", &PutOptions::new().metadata(b"m"), None).unwrap();
    let mut at = 0;
    loop {
        common::say("done");
        match common::listen().as_str() {
            "commit" => break,
            bytes => {
                let end = at + bytes.parse::<usize>().unwrap();
                writer.write_all(&whole[at..end]).unwrap();
                at = end;
            }
        }
    }
    assert!(matches!(writer.commit().unwrap(), Committed::Stored(_)));
    common::say("done");
}

#[test]
fn a_writer_of_another_process_is_followed_to_its_commit() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options().open(&path).unwrap();
    let whole = value(b"key", 1, BYTES);
    let mut child = Child::start("writer", &[path.to_str().unwrap()]);
    child.expect("done");
    let mut follower = cache.follow("key").unwrap().unwrap();
    assert_eq!(follower.metadata(), b"m");
    let mut read = Vec::new();
    for bytes in [1, 99_999, 300_000, 300_000] {
        child.tell(&bytes.to_string());
        read.extend(read_exactly(&mut follower, bytes));
        child.expect("done");
    }
    child.tell("commit");
    assert_eq!(follower.read(&mut [0; 10], LONG).unwrap(), 0);
    child.expect("done");
    assert!(read == whole);
    child.finish();
    drop(follower);
    check(&cache);
}

/// Reports how many stores a commit makes; then stops before one of another commit's.
fn commit_and_stop(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let begin = |key: &str| {
        let mut writer = cache.writer(key, &PutOptions::new(), None).unwrap();
        writer.write_all(&value(b"key", 1, BYTES)).unwrap();
        writer
    };
    let other = begin("another key");
    seams::die_after(i64::MAX);
    other.commit().unwrap();
    common::say(&seams::stores_since(i64::MAX).to_string());
    let writer = begin("key");
    common::say("written");
    common::listen();
    seams::stop_after(arguments[1].parse().unwrap());
    writer.commit().unwrap();
    common::say("done");
}

#[test]
fn a_commit_interrupts_no_follower_at_any_of_its_stores() {
    let mut count = 1;
    let mut stores = 0;
    while stores < count {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let cache = options().open(&path).unwrap();
        // So that the log has wrapped around.
        for number in 0..100 {
            cache.put(format!("before {number}"), vec![7; 400_000]).unwrap();
        }
        let mut child = Child::start("stopped", &[path.to_str().unwrap(), &stores.to_string()]);
        count = child.hear().parse().unwrap();
        child.expect("written");
        let mut follower = cache.follow("key").unwrap().unwrap();
        assert!(read_exactly(&mut follower, BYTES) == value(b"key", 1, BYTES));
        child.tell("commit");
        child.wait_until_stopped();
        match follower.read(&mut [0; 10], Duration::ZERO) {
            Ok(0) | Err(Error::Busy { .. }) => {}
            other => panic!("stopped before its store {stores}: {other:?}"),
        }
        child.signal(libc::SIGCONT);
        assert_eq!(follower.read(&mut [0; 10], LONG).unwrap(), 0);
        drop(follower);
        child.expect("done");
        child.finish();
        check(&cache);
        stores += 1;
    }
    assert!(stores > 3, "it never stopped");
}

#[test]
fn a_killed_writer_interrupts_its_followers() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = options().open(&path).unwrap();
    let mut child = Child::start("writer", &[path.to_str().unwrap()]);
    child.expect("done");
    child.tell("200000");
    child.expect("done");
    let mut follower = cache.follow("key").unwrap().unwrap();
    let mut late = cache.follow("key").unwrap().unwrap();
    assert_eq!(read_exactly(&mut follower, 200_000), value(b"key", 1, BYTES)[..200_000]);
    assert_eq!(read_exactly(&mut late, 1), value(b"key", 1, BYTES)[..1]);
    child.kill();
    assert!(matches!(follower.read(&mut [0; 10], LONG), Err(Error::Interrupted { .. })));
    assert!(cache.follow("key").unwrap().is_none(), "the dead writer writes nothing");
    // What the follower holds stays as it is until it lets go, whatever is put.
    for number in 0..400 {
        cache.put(format!("flood {number}"), vec![7; 100_000]).unwrap();
    }
    drop(follower);
    let mut read = Vec::new();
    assert!(matches!(read_to_end(&mut late, &mut read), Err(Error::Interrupted { .. })));
    assert!(read == value(b"key", 1, BYTES)[1..200_000]);
    drop(late);
    let mut writer = cache.writer("key", &PutOptions::new(), None).unwrap();
    writer.write_all(b"another").unwrap();
    writer.commit().unwrap();
    check(&cache);
}

/// Follows whatever is being written until it is told to stop. Values that end are complete.
fn follow_to_the_end(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let board = common::Board::open(arguments[1]);
    let (mut ended, mut interrupted) = (0, 0);
    while board.word(0).load(std::sync::atomic::Ordering::SeqCst) == 0 {
        let Some(mut follower) = cache.follow("key").unwrap() else { continue };
        let mut read = Vec::new();
        match read_to_end(&mut follower, &mut read) {
            Ok(()) => {
                version_of(b"key", &read);
                ended += 1;
            }
            Err(Error::Interrupted { .. }) => interrupted += 1,
            Err(error) => panic!("{error}"),
        }
    }
    board.word(1).fetch_add(ended, std::sync::atomic::Ordering::SeqCst);
    eprintln!("{ended} to the end, {interrupted} interrupted");
}

#[test]
fn followed_values_are_complete_in_a_storm_of_writers() {
    let folder = fast_folder();
    let (path, board_path) = (folder.path().join("volume"), folder.path().join("board"));
    let cache = Options::new().size(2 << 20).entry_bytes_max(200_000).open(&path).unwrap();
    let board = common::Board::create(&board_path, 2);
    let arguments = [path.to_str().unwrap(), board_path.to_str().unwrap()];
    let children: Vec<_> = (0..3).map(|_| Child::start("followers", &arguments)).collect();
    let mut random = Random(5);
    for round in 0..soak(1500, 100_000) {
        let whole = value(b"key", round, 10 + random.below(150_000) as usize);
        let length = [None, Some(whole.len() as u64), Some(10)][random.below(3) as usize];
        let mut writer = match cache.writer("key", &PutOptions::new(), length) {
            Ok(writer) => writer,
            Err(Error::Pinned { .. }) => continue,
            Err(error) => panic!("{error}"),
        };
        let piece = 1 + random.below(40_000) as usize;
        let written = whole.chunks(piece).try_for_each(|piece| {
            // Refused if readers hold too much of such a small volume.
            let _ = cache.put(format!("other {}", random.below(50)), vec![1; 20_000]);
            writer.write_all(piece)
        });
        match random.below(6) {
            0 => writer.abort(),
            _ if written.is_err() => drop(writer),
            _ => assert!(matches!(writer.commit().unwrap(), Committed::Stored(_))),
        }
    }
    board.word(0).store(1, std::sync::atomic::Ordering::SeqCst);
    children.into_iter().for_each(Child::finish);
    assert!(board.word(1).load(std::sync::atomic::Ordering::SeqCst) > 0, "no follower saw an end");
    check(&cache);
}
