//! Six processes read, write and remove through one tier, two more know nothing of it, and they are killed one after
//! the other. No byte is ever wrong, and no version is older than the last one that its writer has finished.

#![cfg(test)]

mod common;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use common::ledger::{Ledger, WORDS_PER_KEY, key};
use common::tiered::{Tiered, tier_stats};
use common::{Board, Child, Random, play, soak, value};
use eyewall::{Error, Options, seams};

const WORKERS: u64 = 8;
const WITHOUT_TIER: u64 = 2;
const KEYS: u64 = 400;
const STOP: usize = 0;
const VICTIM: usize = 1;
const LEDGER: usize = 8;
const SIZE: u64 = 2 << 20;
const TIER: u64 = 512 << 10;

#[test]
fn child() {
    play(&[("worker", worker)]);
}

fn worker(arguments: &[&str]) {
    seams::ignore_waiting();
    let me: u64 = arguments[3].parse().unwrap();
    let options = Options::new().create(false);
    let options = if me < WITHOUT_TIER { options } else { options.tier(TIER).tier_folder(arguments[1]) };
    let cache = options.open(arguments[0]).unwrap();
    let board = Board::open(arguments[2]);
    let ledger = Ledger::new(&board, LEDGER);
    let mut random = Random(arguments[4].parse().unwrap());
    let mut held = None;
    while board.word(STOP).load(SeqCst) == 0 {
        if board.word(VICTIM).compare_exchange(me + 1, 0, SeqCst, SeqCst).is_ok() {
            seams::die_after(random.below(100) as i64);
        }
        // Most of the time, only a few keys are used.
        let any = if random.below(4) == 0 { random.below(KEYS) } else { random.below(KEYS / 10) };
        let own = any - any % WORKERS + me;
        let done = match random.below(100) {
            0..85 => ledger.get(&cache, any).map(|hit| held = hit.or(held.take())),
            85..95 => {
                let version = ledger.begin(own);
                let bytes = 10 + random.below(6000) as usize;
                cache.put(key(own), value(&key(own), version, bytes)).map(|_| ledger.finish(own, version))
            }
            95..98 => {
                let version = ledger.begin(own);
                cache.remove(key(own)).map(|_| ledger.finish(own, version))
            }
            98 => cache.sweep().map(drop),
            _ => {
                drop(held.take());
                Ok(())
            }
        };
        match done {
            Ok(()) | Err(Error::Pinned { .. } | Error::Busy { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn no_version_goes_back_while_one_process_after_the_other_is_killed() {
    let place = Tiered::new();
    let board_path = place.volume.path().join("board");
    let board = Board::create(&board_path, LEDGER + KEYS as usize * WORDS_PER_KEY);
    let watcher = place.options(SIZE, TIER).open(place.path()).unwrap();
    let mut random = Random(7);
    let paths = [place.path(), place.tier.path().to_owned(), board_path];
    let mut start = |worker: u64| {
        let [volume, tier, board] = [0, 1, 2].map(|path| paths[path].to_str().unwrap());
        Child::start("worker", &[volume, tier, board, &worker.to_string(), &random.next().to_string()])
    };
    let mut workers: Vec<Option<Child>> = (0..WORKERS).map(|worker| Some(start(worker))).collect();
    for kill in 0..soak(40, 2000) {
        std::thread::sleep(Duration::from_millis(30));
        let worker = kill * 5 % WORKERS;
        let mut child = workers[worker as usize].take().unwrap();
        if kill % 2 == 0 {
            child.kill();
        } else {
            board.word(VICTIM).store(worker + 1, SeqCst);
            child.wait_until_killed();
        }
        workers[worker as usize] = Some(start(worker));
    }
    board.word(STOP).store(1, SeqCst);
    workers.into_iter().flatten().for_each(Child::finish);
    let ledger = Ledger::new(&board, LEDGER);
    for number in 0..KEYS {
        ledger.get(&watcher, number).unwrap();
    }
    let (stats, tier) = (watcher.stats().unwrap(), tier_stats(&watcher));
    println!("{} hits, {tier:?}", stats.hits);
    assert!(tier.hits > 1000 && tier.voids > 0, "{tier:?}");
    assert_eq!((stats.pins, tier.pins, tier.processes), (0, 0, 1));
    assert!(watcher.verify().unwrap().is_sound());
    // The tier is a volume, so its own checks hold, too.
    let inside = Options::new().open(watcher.tier_path().unwrap()).unwrap();
    let report = inside.verify().unwrap();
    assert!(report.is_sound(), "{report:?}");
    drop((inside, watcher));
    assert!(place.left().is_empty());
}
