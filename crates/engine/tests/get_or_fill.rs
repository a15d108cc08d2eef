//! Many threads and processes ask for an absent entry: one makes it, and all get it. The one that fills may fail,
//! panic or be killed; then another does it.

#![cfg(test)]

mod common;

use std::convert::Infallible;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use common::{Board, Child, fast_folder, listen, play, say, soak, value, version_of};
use eyewall::{
    Cache, Error, Fill, FillError, FillOptions, Filled, Filling, Lookup, NotStored, Options, Purge, PutOptions, seams,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_mins(1);
const BYTES: usize = 5000;

#[test]
fn child() {
    play(&[("asker", ask), ("filler", fill_until_killed)]);
}

fn cache() -> Cache {
    Options::new().size(8 << 20).heap().unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "what a closure returns")]
fn made(version: u32) -> Result<Fill, Infallible> {
    Ok(Fill::Value(value(b"key", version, BYTES)))
}

fn version(filled: &Filled<'_>) -> u32 {
    version_of(b"key", filled.value().unwrap())
}

fn is_busy<E>(result: &Result<Filled<'_>, FillError<E>>) -> bool {
    matches!(result, Err(FillError::Cache(Error::Busy { .. })))
}

#[test]
fn an_existing_entry_is_not_filled_again() {
    let cache = cache();
    let options = FillOptions::new().put(PutOptions::new().metadata(b"m").tags(&["t"]));
    let filled = cache.get_or_fill("key", LONG, &options, || made(1)).unwrap();
    assert!(matches!(filled, Filled::Stored { .. }), "{filled:?}");
    assert_eq!(version(&filled), 1);
    let filled = cache.get_or_fill("key", Duration::ZERO, &options, || made(2)).unwrap();
    assert_eq!(version(&filled), 1);
    let Filled::Hit(hit) = filled else { panic!("the entry exists") };
    assert_eq!((hit.metadata(), hit.tags().collect::<Vec<_>>()), (&b"m"[..], vec!["t"]));
    let stats = cache.stats().unwrap();
    assert_eq!((stats.hits, stats.misses), (1, 1), "a second look isn't counted again");
}

const FILLS: usize = 0;
const LATEST_MS: usize = 1;
const ROUNDS: usize = 2;

/// Asks for one key after the other, as it is told. The process that fills takes 100 ms for it.
fn ask(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let board = Board::open(arguments[1]);
    say("ready");
    for round in 0..ROUNDS {
        assert_eq!(listen(), "go");
        let start = Instant::now();
        let key = format!("key {round}");
        let filled = cache.get_or_fill(&key, LONG, &FillOptions::new(), || {
            board.word(FILLS).fetch_add(1, SeqCst);
            std::thread::sleep(Duration::from_millis(100));
            Ok::<_, Infallible>(Fill::Value(value(key.as_bytes(), 1, BYTES)))
        });
        assert_eq!(version_of(key.as_bytes(), filled.unwrap().value().unwrap()), 1);
        board.word(LATEST_MS).fetch_max(start.elapsed().as_millis() as u64, SeqCst);
        say("done");
    }
}

#[test]
fn of_sixty_four_processes_one_fills_and_all_get_it() {
    let folder = fast_folder();
    let (path, board_path) = (folder.path().join("volume"), folder.path().join("board"));
    let cache = Options::new().size(32 << 20).open(&path).unwrap();
    let board = Board::create(&board_path, 2);
    let arguments = [path.to_str().unwrap(), board_path.to_str().unwrap()];
    let mut askers: Vec<_> = (0..64).map(|_| Child::start("asker", &arguments)).collect();
    for asker in &mut askers {
        asker.expect("ready");
    }
    for round in 1..=ROUNDS as u64 {
        for asker in &mut askers {
            asker.tell("go");
        }
        for asker in &mut askers {
            asker.expect("done");
        }
        assert_eq!(board.word(FILLS).load(SeqCst), round);
        eprintln!("the last had waited for {} ms", board.word(LATEST_MS).swap(0, SeqCst));
    }
    askers.into_iter().for_each(Child::finish);
    assert_eq!(cache.stats().unwrap().pins, 0);
    assert!(cache.verify().unwrap().is_sound());
}

#[test]
fn of_many_threads_one_fills_and_all_get_it() {
    let cache = cache();
    let fills = std::sync::atomic::AtomicU32::new(0);
    for round in 0..soak(30, 3000) {
        let key = format!("key {round}");
        fills.store(0, SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let filled = cache.get_or_fill(&key, LONG, &FillOptions::new(), || {
                        fills.fetch_add(1, SeqCst);
                        Ok::<_, Infallible>(Fill::Value(value(key.as_bytes(), 1, BYTES)))
                    });
                    assert_eq!(version_of(key.as_bytes(), filled.unwrap().value().unwrap()), 1);
                });
            }
        });
        assert_eq!(fills.load(SeqCst), 1);
    }
}

fn fill_until_killed(arguments: &[&str]) {
    let cache = Cache::open(arguments[0]).unwrap();
    let _ = cache.get_or_fill("key", LONG, &FillOptions::new(), || {
        say("filling");
        listen();
        made(1)
    });
}

#[test]
fn when_the_filler_is_killed_another_fills() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(8 << 20).open(&path).unwrap();
    let mut filler = Child::start("filler", &[path.to_str().unwrap()]);
    filler.expect("filling");
    let busy = cache.get_or_fill("key", Duration::from_millis(20), &FillOptions::new(), || made(2));
    assert!(is_busy(&busy), "{busy:?}");
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| version(&cache.get_or_fill("key", LONG, &FillOptions::new(), || made(2)).unwrap())))
            .collect();
        let start = Instant::now();
        filler.kill();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), 2);
        }
        eprintln!("all had it {} ms after the death", start.elapsed().as_millis());
    });
}

#[test]
fn a_death_at_any_store_of_a_fill_leaves_it_to_the_next_caller() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(8 << 20).open(&path).unwrap();
    let mut stores = 0;
    loop {
        let key = format!("key {stores}");
        let made = || Ok::<_, Infallible>(Fill::Value(value(key.as_bytes(), 1, 20_000)));
        let child = common::fork(|| {
            seams::die_after(stores);
            cache.get_or_fill(&key, LONG, &FillOptions::new(), made).unwrap();
            seams::die_after(i64::MAX);
        });
        let survived = child.wait().success();
        let filled = cache.get_or_fill(&key, LONG, &FillOptions::new(), made).unwrap();
        assert_eq!(version_of(key.as_bytes(), filled.value().unwrap()), 1);
        drop(filled);
        assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new(), "store {stores}");
        if survived {
            break;
        }
        stores += 1;
    }
    assert!(stores > 10);
}

#[test]
fn a_failure_goes_to_its_caller_and_the_next_caller_tries() {
    #[derive(Debug, PartialEq)]
    struct Refused(u8);
    let cache = cache();
    let options = FillOptions::new();
    let failed = cache.get_or_fill("key", LONG, &options, || Err::<Fill, _>(Refused(7)));
    assert!(matches!(failed, Err(FillError::Failed(Refused(7)))), "{failed:?}");
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = cache.get_or_fill("key", LONG, &options, || -> Result<Fill, Infallible> { panic!("in the middle") });
    }));
    assert!(result.is_err());
    assert_eq!(version(&cache.get_or_fill("key", Duration::ZERO, &options, || made(1)).unwrap()), 1);
}

#[test]
fn callers_that_wait_for_a_failure_fill_one_after_the_other() {
    let cache = cache();
    let tries = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let result = cache.get_or_fill("key", LONG, &FillOptions::new(), || {
                    if tries.fetch_add(1, SeqCst) < 3 { Err("no") } else { Ok(made(1).unwrap()) }
                });
                assert!(result.is_err() || version(&result.unwrap()) == 1);
            });
        }
    });
    assert_eq!(tries.load(SeqCst), 4);
}

#[test]
fn a_remembered_failure_is_an_answer_until_it_expires() {
    let cache = cache();
    let options = FillOptions::new().remember_failure(502, Duration::from_secs(10));
    let failed = cache.get_or_fill("key", LONG, &options, || Err::<Fill, _>("origin down"));
    assert!(matches!(failed, Err(FillError::Failed("origin down"))));
    let filled = cache.get_or_fill("key", LONG, &options, || made(1)).unwrap();
    assert!(matches!(filled, Filled::Negative(502)), "{filled:?}");
    let nothing = || Ok::<_, Infallible>(Fill::Nothing { reason: 404, ttl: Duration::from_secs(10) });
    let filled = cache.get_or_fill("gone", LONG, &options, nothing).unwrap();
    assert!(matches!(filled, Filled::Negative(404)), "{filled:?}");
    assert!(matches!(cache.lookup("gone").unwrap(), Lookup::Negative(hit) if hit.reason() == Some(404)));
    seams::shift_clock(11_000);
    assert_eq!(version(&cache.get_or_fill("key", LONG, &options, || made(1)).unwrap()), 1);
}

#[test]
fn callers_that_would_wait_take_a_stale_value_at_once() {
    let cache = cache();
    let put = PutOptions::new().tags(&["t"]);
    cache.put_with("key", value(b"key", 1, BYTES), &put).unwrap();
    cache.purge_tag("t", Purge::Soft).unwrap();
    let options = FillOptions::new();
    let filled = cache.get_or_fill("key", LONG, &options, || {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let stale = cache.get_or_fill("key", LONG, &options.use_stale(true), || made(3)).unwrap();
                assert!(matches!(stale, Filled::Stale(_)));
                assert_eq!(version(&stale), 1);
                let busy = cache.get_or_fill("key", Duration::ZERO, &options, || made(3));
                assert!(is_busy(&busy), "a caller that doesn't accept it waits");
            });
            other.join().unwrap();
        });
        made(2)
    });
    assert_eq!(version(&filled.unwrap()), 2);
    assert_eq!(version_of(b"key", &cache.get("key").unwrap().unwrap()), 2);
}

#[test]
fn a_fill_may_fill_other_keys_but_not_its_own() {
    let cache = cache();
    let options = FillOptions::new();
    let filled = cache.get_or_fill("key", LONG, &options, || {
        let part = cache.get_or_fill("part", LONG, &options, || Ok::<_, Infallible>(Fill::Value(b"part".to_vec())));
        assert_eq!(part.unwrap().value(), Some(&b"part"[..]));
        assert!(is_busy(&cache.get_or_fill("key", Duration::from_millis(1), &options, || made(2))));
        made(1)
    });
    assert_eq!(version(&filled.unwrap()), 1);
}

#[test]
fn a_waiting_caller_is_asked_whether_to_go_on_and_counts_once() {
    let cache = cache();
    let filled = cache.get_or_fill("key", LONG, &FillOptions::new(), || {
        let asks = AtomicU32::new(0);
        let wanted = || asks.fetch_add(1, SeqCst) < 3;
        assert!(is_busy(&cache.get_or_fill("key", LONG, &FillOptions::new().wait_while(&wanted), || made(2))));
        assert_eq!(asks.load(SeqCst), 4);
        let stats = cache.stats().unwrap();
        assert_eq!((stats.busy, stats.misses), (0, 2), "one miss of each caller, and none gave up at the deadline");
        made(1)
    });
    assert_eq!(version(&filled.unwrap()), 1);
}

#[test]
fn a_purge_covers_a_negative_entry_like_a_value() {
    let cache = cache();
    let Filling::Ours(flight) = cache.begin_fill("key", LONG, &FillOptions::new()).unwrap() else {
        panic!("there is nothing")
    };
    let serial = flight.remember_with(404, &PutOptions::new().tags(&["t"])).unwrap();
    let Lookup::Negative(found) = cache.lookup("key").unwrap() else { panic!("the negative entry exists") };
    assert_eq!((found.reason(), found.serial()), (Some(404), serial));
    drop(found);
    cache.purge_tag("t", Purge::Hard).unwrap();
    assert!(matches!(cache.lookup("key").unwrap(), Lookup::Miss));
    let Filling::Ours(flight) = cache.begin_fill("key", LONG, &FillOptions::new()).unwrap() else {
        panic!("the negative entry was purged")
    };
    cache.purge_tag("t", Purge::Hard).unwrap();
    let late = flight.remember_with(404, &PutOptions::new().tags(&["t"]));
    assert!(matches!(late, Err(NotStored::Superseded)), "{late:?}");
    assert!(matches!(cache.lookup("key").unwrap(), Lookup::Miss));
}

#[test]
fn a_negative_answer_of_a_closure_has_the_tags_of_its_value() {
    let cache = cache();
    let options = FillOptions::new().put(PutOptions::new().tags(&["t"])).remember_failure(502, LONG);
    let nothing = || Ok::<_, &str>(Fill::Nothing { reason: 404, ttl: LONG });
    assert!(matches!(cache.get_or_fill("absent", LONG, &options, nothing), Ok(Filled::Negative(404))));
    assert!(cache.get_or_fill("failing", LONG, &options, || Err::<Fill, _>("down")).is_err());
    for key in ["absent", "failing"] {
        assert!(matches!(cache.lookup(key).unwrap(), Lookup::Negative(_)), "{key}");
    }
    cache.purge_tag("t", Purge::Hard).unwrap();
    for key in ["absent", "failing"] {
        assert!(matches!(cache.lookup(key).unwrap(), Lookup::Miss), "{key}");
    }
}

#[test]
fn the_caller_gets_a_value_that_can_not_be_stored() {
    let cache = Options::new().size(1 << 20).entry_bytes_max(10_000).heap().unwrap();
    let options = FillOptions::new().put(PutOptions::new().tags(&["t"]));
    let changes: [fn(&Cache); 3] = [
        |cache| cache.purge_tag("t", Purge::Hard).unwrap(),
        |cache| assert!(!cache.remove("key").unwrap()),
        |cache| assert_eq!(cache.clear().unwrap(), 0),
    ];
    for change in changes {
        let filled = cache
            .get_or_fill("key", LONG, &options, || {
                change(&cache);
                made(1)
            })
            .unwrap();
        assert!(matches!(filled, Filled::NotStored { why: NotStored::Superseded, .. }), "{filled:?}");
        assert_eq!(version(&filled), 1);
        assert!(cache.get("key").unwrap().is_none());
    }
    let large = || Ok::<_, Infallible>(Fill::Value(vec![1; 20_000]));
    let filled = cache.get_or_fill("key", LONG, &options, large).unwrap();
    let Filled::NotStored { value, why: NotStored::Refused(Error::EntryTooLarge { .. }) } = filled else {
        panic!("{filled:?}")
    };
    assert_eq!(value.len(), 20_000);
    let filled = cache.get_or_fill("key", LONG, &options, || {
        cache.put("key", value_of_another()).unwrap();
        made(1)
    });
    assert_eq!(version(&filled.unwrap()), 1);
    assert_eq!(version_of(b"key", &cache.get("key").unwrap().unwrap()), 9);
}

fn value_of_another() -> Vec<u8> {
    value(b"key", 9, 100)
}

#[test]
fn a_read_only_opener_finds_existing_entries() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    cache.put("key", value(b"key", 1, BYTES)).unwrap();
    let reader = Options::new().read_only(true).open(&path).unwrap();
    let filled = reader.get_or_fill("key", LONG, &FillOptions::new(), || made(2)).unwrap();
    assert_eq!(version(&filled), 1);
    let refused = reader.get_or_fill("other", LONG, &FillOptions::new(), || made(2));
    assert!(matches!(refused, Err(FillError::Cache(Error::ReadOnly { .. }))), "{refused:?}");
}

#[test]
fn a_value_made_during_a_resize_is_stored_in_the_new_volume() {
    let folder = fast_folder();
    let cache = Options::new().size(4 << 20).open(folder.path().join("volume")).unwrap();
    let filled = cache.get_or_fill("key", LONG, &FillOptions::new(), || {
        cache.resize(&Options::new().size(8 << 20)).unwrap();
        made(1)
    });
    assert!(matches!(filled, Ok(Filled::Stored { .. })), "{filled:?}");
    assert_eq!(version_of(b"key", &cache.get("key").unwrap().unwrap()), 1);
}
