//! Threads of two processes hammer a small volume. Each key has one writer, which knows exactly what it put last. All
//! the others must find what it was putting or had put, completely, or nothing.

#![cfg(test)]

mod common;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use common::ledger::{Ledger, WORDS_PER_KEY, key};
use common::{Board, Child, Random, fast_folder, listen, play, say, soak, value, version_of};
use eyewall::{Cache, Change, Error, Hit, Options, PutOptions, Updated};

const PROCESSES: u64 = 2;
const THREADS: u64 = 4;
const WRITERS: u64 = PROCESSES * THREADS;
const KEYS: u64 = 40 * WRITERS;

#[test]
fn child() {
    play(&[("hammers", hammers)]);
}

fn hammers(arguments: &[&str]) {
    // A holder that the scheduler has paused is no error here, however busy the machine is.
    let cache = Options::new().create(false).lock_deadline(Duration::from_mins(1)).open(arguments[0]).unwrap();
    let board = Board::open(arguments[1]);
    let process: u64 = arguments[2].parse().unwrap();
    say("ready");
    listen();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, board) = (&cache, &board);
            scope.spawn(move || Thread::new(cache, board, process * THREADS + thread).run());
        }
    });
    let held = AtomicBool::new(false);
    owned_hits_travel(&cache, &held);
    assert!(held.load(Relaxed));
    say("done");
}

/// A hit that was taken here is checked and dropped elsewhere.
fn owned_hits_travel(cache: &Cache, held: &AtomicBool) {
    let hits: Vec<_> = cache.iter().take(20).map(Hit::into_owned).collect();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            held.store(!hits.is_empty(), Relaxed);
            for hit in &hits {
                version_of(hit.key(), hit.value());
            }
        });
    });
}

/// What the writer of a key knows about it.
#[derive(Clone, Copy, PartialEq)]
enum Known {
    Absent,
    /// Put in this version; it may be evicted at any time.
    Put(u32),
}

struct Thread<'a> {
    cache: &'a Cache,
    ledger: Ledger<'a>,
    me: u64,
    random: Random,
    known: Vec<Known>,
}

impl<'a> Thread<'a> {
    fn new(cache: &'a Cache, board: &'a Board, me: u64) -> Self {
        let known = vec![Known::Absent; (KEYS / WRITERS) as usize];
        Self { cache, ledger: Ledger::new(board, 0), me, random: Random(me), known }
    }

    fn run(mut self) {
        let mut held = Vec::new();
        for _ in 0..soak(12_000, 300_000) {
            let own = self.random.below(KEYS / WRITERS);
            match self.random.below(20) {
                0..6 => self.read_own(own),
                6..11 => self.put(own),
                11 => self.remove(own),
                12 => self.add(own),
                13 => self.update(own),
                14 => held.extend(self.look_at_any()),
                15 => held.clear(),
                _ => drop(self.look_at_any()),
            }
            if held.len() > 6 {
                let hit: Hit<'_> = held.remove(0);
                version_of(hit.key(), &hit);
            }
        }
    }

    fn number(&self, own: u64) -> u64 {
        own * WRITERS + self.me
    }

    fn look_at_any(&mut self) -> Option<Hit<'a>> {
        let number = self.random.below(KEYS);
        self.ledger.get(self.cache, number).unwrap()
    }

    /// Gets what is there, which must be what this thread put last.
    fn look(&mut self, own: u64) -> Known {
        let key = key(self.number(own));
        let found = self.cache.get(&key).unwrap().map_or(Known::Absent, |hit| Known::Put(version_of(&key, &hit)));
        let known = &mut self.known[own as usize];
        assert!(found == Known::Absent || found == *known, "not what was put last");
        *known = found;
        found
    }

    fn read_own(&mut self, own: u64) {
        self.look(own);
    }

    fn value(&mut self, own: u64) -> (Vec<u8>, u32, Vec<u8>) {
        let number = self.number(own);
        let bytes = match self.random.below(10) {
            0 => 9000 + self.random.below(40_000),
            1..4 => 1000 + self.random.below(6000),
            _ => 10 + self.random.below(300),
        };
        let version = self.ledger.begin(number);
        (key(number), version, value(&key(number), version, bytes as usize))
    }

    fn done(&mut self, own: u64, version: u32, known: Known) {
        self.known[own as usize] = known;
        self.ledger.finish(self.number(own), version);
    }

    fn put(&mut self, own: u64) {
        let (key, version, value) = self.value(own);
        match self.cache.put(key, value) {
            Ok(_) => self.done(own, version, Known::Put(version)),
            Err(Error::Pinned { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn remove(&mut self, own: u64) {
        let version = self.ledger.begin(self.number(own));
        self.cache.remove(key(self.number(own))).unwrap();
        self.done(own, version, Known::Absent);
    }

    fn add(&mut self, own: u64) {
        let known = self.look(own);
        let (key, version, value) = self.value(own);
        match self.cache.add(key, value, &PutOptions::new()) {
            Ok(Some(_)) => self.done(own, version, Known::Put(version)),
            Ok(None) => assert!(known != Known::Absent, "nobody else puts this key"),
            Err(Error::Pinned { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn update(&mut self, own: u64) {
        let known = self.known[own as usize];
        let (key, version, value) = self.value(own);
        let outcome = self.cache.update(&key, &PutOptions::new(), |hit| {
            let found = hit.map_or(Known::Absent, |hit| Known::Put(version_of(&key, hit)));
            assert!(found == Known::Absent || found == known, "not what was put last");
            Change::Put(value)
        });
        match outcome {
            Ok(Updated::Stored(_)) => self.done(own, version, Known::Put(version)),
            Err(Error::Pinned { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn nobody_finds_an_outdated_torn_or_foreign_value() {
    for size in [1 << 20, 4 << 20] {
        let folder = fast_folder();
        let (path, board) = (folder.path().join("volume"), folder.path().join("board"));
        Board::create(&board, KEYS as usize * WORDS_PER_KEY);
        let cache = Options::new().size(size).open(&path).unwrap();
        let mut children: Vec<_> = (0..PROCESSES)
            .map(|process| {
                let arguments = [path.to_str().unwrap(), board.to_str().unwrap(), &process.to_string()];
                Child::start("hammers", &arguments)
            })
            .collect();
        for child in &mut children {
            child.expect("ready");
        }
        for child in &mut children {
            child.tell("go");
        }
        for child in &mut children {
            child.expect("done");
        }
        children.into_iter().for_each(Child::finish);
        let report = cache.verify().unwrap();
        assert!(report.is_sound(), "{report:?}");
        let stats = cache.stats().unwrap();
        assert_eq!((stats.pins, stats.processes, stats.repairs, stats.resets), (0, 1, 0, 0), "{stats:?}");
        assert_eq!(stats.live_bytes + stats.dead_bytes + stats.filler_bytes + stats.free_bytes, stats.data_bytes);
    }
}
