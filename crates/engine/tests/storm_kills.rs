//! The storm: eight processes read, hold, put, add, update, remove and iterate. Every 50 ms one of them is killed by
//! SIGKILL and replaced, in turn at a random point and inside a stripe's lock. No byte is ever wrong and no version
//! outdated, and nobody waits long for a dead process. When all are gone, no pin, slot or space is lost, and the
//! counts balance.

#![cfg(test)]

mod common;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use common::aftermath::{assert_a_lap_fills_it, assert_nothing_is_lost};
use common::ledger::{Ledger, WORDS_PER_KEY, key};
use common::{Board, Child, Random, disk_folder, fast_folder, play, soak, value, version_of};
use eyewall::{Cache, Change, Error, Hit, Options, PutOptions, Updated, seams};

const WORKERS: u64 = 8;
const KILL_EVERY: Duration = Duration::from_millis(50);
const HELD: usize = 12;
const TURN_OPERATIONS: u64 = 20_000;

const STOP: usize = 0;
const KILLS: usize = 1;
const OPERATIONS: usize = 2;
const PINNED: usize = 3;
const BUSY: usize = 4;
/// The worker that is to die inside a lock, plus one.
const VICTIM: usize = 5;
/// Counts operations by their duration in tenths of a millisecond, while somebody was killed.
const CROSSED: usize = 64;
/// The same for all that took longer than a millisecond, whether or not somebody was killed.
const LONG: usize = CROSSED + BUCKETS;
const LEDGER: usize = LONG + BUCKETS;
const BUCKETS: usize = 30_000;

#[test]
fn child() {
    play(&[("worker", worker)]);
}

/// Works until it is told to stop, or killed.
fn worker(arguments: &[&str]) {
    let board = Board::open(arguments[1]);
    let cache = Options::new().create(false).open(arguments[0]).unwrap();
    let number = |at: usize| -> u64 { arguments[at].parse().unwrap() };
    let mut worker = Worker {
        cache: &cache,
        board: &board,
        ledger: Ledger::new(&board, LEDGER),
        me: number(2),
        keys: number(4),
        random: Random(number(3)),
        held: VecDeque::new(),
    };
    while board.word(STOP).load(SeqCst) == 0 {
        if board.word(VICTIM).compare_exchange(worker.me + 1, 0, SeqCst, SeqCst).is_ok() {
            board.word(KILLS).fetch_add(1, SeqCst);
            seams::die_after(worker.random.below(100) as i64);
        }
        worker.work();
    }
    while worker.release_one() {}
}

struct Worker<'a> {
    cache: &'a Cache,
    board: &'a Board,
    ledger: Ledger<'a>,
    me: u64,
    /// Keys with one writer. The same number of keys again has many.
    keys: u64,
    random: Random,
    held: VecDeque<(u64, u32, Hit<'a>)>,
}

impl<'a> Worker<'a> {
    fn work(&mut self) {
        let any = self.random.below(self.keys);
        let own = any - any % WORKERS + self.me;
        let shared = self.keys + any;
        match self.random.below(100) {
            0..40 => drop(self.get(any)),
            40..50 => self.hold(any),
            50..54 => drop(self.get_into(any)),
            54..72 => self.write_own(own),
            72..80 => self.write_shared(shared),
            80..84 => self.remove(own),
            84..86 => drop(self.timed(|cache| cache.remove(key(shared)))),
            86..91 => self.update(own),
            91..93 => drop(self.timed(|cache| cache.contains(key(any)))),
            93 => self.iterate(),
            _ => drop(self.release_one()),
        }
    }

    /// Runs one operation, and notes its duration. `Pinned` and `Busy` are valid answers.
    fn timed<T>(&self, operation: impl FnOnce(&'a Cache) -> eyewall::Result<T>) -> Option<T> {
        let kills = self.board.word(KILLS).load(SeqCst);
        let start = Instant::now();
        let outcome = operation(self.cache);
        let took = start.elapsed();
        let bucket = (took.as_micros() as usize / 100).min(BUCKETS - 1);
        if self.board.word(KILLS).load(SeqCst) != kills {
            self.board.word(CROSSED + bucket).fetch_add(1, Relaxed);
        }
        if took > Duration::from_millis(1) {
            self.board.word(LONG + bucket).fetch_add(1, Relaxed);
        }
        self.board.word(OPERATIONS).fetch_add(1, Relaxed);
        match outcome {
            Ok(done) => Some(done),
            Err(Error::Pinned { .. }) => self.count(PINNED),
            Err(Error::Busy { .. }) => self.count(BUSY),
            Err(error) => panic!("{error}"),
        }
    }

    fn count<T>(&self, what: usize) -> Option<T> {
        self.board.word(what).fetch_add(1, Relaxed);
        None
    }

    /// For some thousand operations in turn only small ones, so that the index always grows and shrinks.
    fn bytes(&mut self) -> usize {
        if self.board.word(OPERATIONS).load(Relaxed) / TURN_OPERATIONS % 2 == 1 {
            return 10 + self.random.below(90) as usize;
        }
        let most = (self.cache.entry_bytes_max() - 100).min(200_000);
        let (from, to) = match self.random.below(100) {
            0..70 => (10, 2000),
            70..95 => (2000, 20_000),
            _ => (20_000, most),
        };
        (from + self.random.below(to - from)) as usize
    }

    fn get(&self, number: u64) -> Option<Hit<'a>> {
        let oldest = self.ledger.oldest(number);
        let hit = self.timed(|cache| cache.get(key(number)))??;
        self.ledger.check(number, oldest, &hit);
        Some(hit)
    }

    fn get_into(&self, number: u64) -> Option<()> {
        let mut buffer = Vec::new();
        let oldest = self.ledger.oldest(number);
        self.timed(|cache| cache.get_into(key(number), &mut buffer))??;
        self.ledger.check(number, oldest, &buffer);
        Some(())
    }

    fn hold(&mut self, number: u64) {
        if let Some(hit) = self.get(number) {
            self.held.push_back((number, version_of(hit.key(), &hit), hit));
        }
        if self.held.len() > HELD {
            self.release_one();
        }
    }

    /// Checks that a held hit is unchanged, whatever has happened.
    fn release_one(&mut self) -> bool {
        let Some((number, version, hit)) = self.held.pop_front() else { return false };
        assert_eq!((hit.key(), version_of(hit.key(), &hit)), (&key(number)[..], version));
        true
    }

    fn write_own(&mut self, number: u64) {
        let (key, bytes) = (key(number), self.bytes());
        let version = self.ledger.begin(number);
        if self.timed(|cache| cache.put(&key, value(&key, version, bytes))).is_some() {
            self.ledger.finish(number, version);
        }
    }

    fn write_shared(&mut self, number: u64) {
        let (key, bytes, plain) = (key(number), self.bytes(), PutOptions::new());
        let value = value(&key, number as u32, bytes);
        match self.random.below(3) {
            0 => drop(self.timed(|cache| cache.put(&key, &value))),
            1 => drop(self.timed(|cache| cache.add(&key, &value, &plain))),
            _ => {
                let serial = self.timed(|cache| cache.get(&key)).flatten().map_or(1, |hit| hit.serial());
                self.timed(|cache| cache.replace_if(&key, serial, &value, &plain));
            }
        }
    }

    fn remove(&self, number: u64) {
        let version = self.ledger.begin(number);
        if self.timed(|cache| cache.remove(key(number))).is_some() {
            self.ledger.finish(number, version);
        }
    }

    fn update(&mut self, number: u64) {
        let (key, bytes) = (key(number), self.bytes());
        let oldest = self.ledger.oldest(number);
        let version = self.ledger.begin(number);
        let outcome = self.timed(|cache| {
            cache.update(&key, &PutOptions::new(), |hit| {
                if let Some(hit) = hit {
                    self.ledger.check(number, oldest, hit);
                }
                Change::Put(value(&key, version, bytes))
            })
        });
        match outcome {
            Some(Updated::Stored(_)) => self.ledger.finish(number, version),
            Some(other) => panic!("{other:?} where nobody else writes"),
            None => {}
        }
    }

    fn iterate(&self) {
        for hit in self.cache.iter().take(60) {
            version_of(hit.key(), &hit);
        }
    }
}

#[test]
fn eight_processes_work_while_they_are_killed_one_after_the_other() {
    storm(fast_folder().path(), 1 << 20, 256 << 10, soak(40, 800));
    storm(fast_folder().path(), 8 << 20, 256 << 10, soak(40, 800));
    storm(disk_folder().path(), 64 << 20, 256 << 10, soak(20, 400));
}

fn storm(folder: &Path, size: u64, entry_bytes_max: u64, kills: u64) {
    let (path, board_path) = (folder.join("volume"), folder.join("board"));
    let keys = (size / (4 << 10)).next_multiple_of(WORKERS);
    let board = Board::create(&board_path, LEDGER + keys as usize * WORDS_PER_KEY);
    // Attached all the time, so that no first process of an attachment sweeps away what dead ones leave.
    let watcher = Options::new().size(size).entry_bytes_max(entry_bytes_max).open(&path).unwrap();
    let mut random = Random(size ^ kills);
    let mut start = |worker: usize| {
        let arguments = [worker.to_string(), random.next().to_string(), keys.to_string()];
        let [worker, seed, keys] = &arguments;
        Child::start("worker", &[path.to_str().unwrap(), board_path.to_str().unwrap(), worker, seed, keys])
    };
    let mut workers: Vec<Option<Child>> = (0..WORKERS as usize).map(|worker| Some(start(worker))).collect();
    std::thread::sleep(KILL_EVERY * 20);
    println!("storm over {} MiB", size >> 20);
    report(&board, "before the first kill");
    for kill in 0..kills {
        std::thread::sleep(KILL_EVERY);
        let worker = kill as usize * 5 % WORKERS as usize;
        let mut child = workers[worker].take().unwrap();
        if kill % 2 == 0 {
            board.word(KILLS).fetch_add(1, SeqCst);
            child.kill();
        } else {
            board.word(VICTIM).store(worker as u64 + 1, SeqCst);
            child.wait_until_killed();
            board.word(KILLS).fetch_add(1, SeqCst);
        }
        workers[worker] = Some(start(worker));
    }
    board.word(STOP).store(1, SeqCst);
    workers.into_iter().flatten().for_each(Child::finish);
    report(&board, &format!("over {kills} kills"));
    let stats = watcher.stats().unwrap();
    println!("  {} locks were taken over, the index made {} steps", stats.repairs, stats.index_steps);
    assert!(stats.index_steps > 0);
    assert_nothing_is_lost(&watcher);
    drop(watcher);
    let cache = Cache::open(&path).unwrap();
    assert_nothing_is_lost(&cache);
    assert_a_lap_fills_it(&cache);
}

/// Prints the counts, and starts them again.
fn report(board: &Board, when: &str) {
    let take = |what: usize| board.word(what).swap(0, SeqCst);
    println!("  {when}: {} operations, {} pinned, {} busy", take(OPERATIONS), take(PINNED), take(BUSY));
    for (which, first) in [("that met a kill", CROSSED), ("above 1 ms, whatever they met", LONG)] {
        let counts: Vec<u64> = (0..BUCKETS).map(|bucket| take(first + bucket)).collect();
        let total: u64 = counts.iter().sum();
        let percentile = |percent: u64| {
            let mut left = (total * percent).div_ceil(100);
            let bucket = counts.iter().position(|count| {
                left = left.saturating_sub(*count);
                left == 0
            });
            (bucket.unwrap_or(0) + 1) as f64 / 10.0
        };
        if total > 0 {
            let [half, most, all] = [50, 99, 100].map(percentile);
            println!("    {total} {which}: p50 {half} ms, p99 {most} ms, longest {all} ms");
        }
    }
}
