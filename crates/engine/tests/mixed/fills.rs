//! Fills: a thread that misses an entry fills it, one at a time, with every end that a fill can have.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use eyewall::{Change, Error, Fill, FillError, FillOptions, Filled, NotStored, PutOptions};

use super::ground::{Ground, Longest, Own, Tally};
use super::keys::{self, FILLER, FILLS, Found, Key, Known};
use super::worker::Worker;
use crate::common::{Random, value};

/// How a fill ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Value,
    Nothing,
    Fails,
    Panics,
    Dies,
}

/// What the ground shows while somebody fills a key.
#[derive(Clone, Copy)]
struct Filler {
    worker: u64,
    life: u64,
    /// How many resizes were over before the fill began. A later resize takes its claim.
    resized: u64,
}

impl Filler {
    fn pack(self) -> u64 {
        ((self.worker + 1) << 56) | ((self.life & 0xff_ffff) << 32) | (self.resized & 0xffff_ffff)
    }

    fn unpack(word: u64) -> Option<Self> {
        let worker = (word >> 56).checked_sub(1)?;
        Some(Self { worker, life: (word >> 32) & 0xff_ffff, resized: word & 0xffff_ffff })
    }

    fn lives(self, ground: &Ground) -> bool {
        ground.own(self.worker, Own::Life).load(SeqCst) & 0xff_ffff == self.life
    }
}

/// A running fill; dropping it ends it.
struct Running<'a> {
    ground: &'a Ground,
    number: u64,
    word: u64,
}

impl<'a> Running<'a> {
    /// # Panics
    /// If another fill of the key runs, its process is alive, and no resize took its claim.
    fn begin(ground: &'a Ground, key: &Key, filler: Filler) -> Self {
        let word = filler.pack();
        let former = ground.of_key(key.number, FILLER).swap(word, SeqCst);
        if let Some(former) = Filler::unpack(former) {
            let resized = ground.resizes_begun() != former.resized;
            let lives = former.lives(ground);
            assert!(resized || !lives, "{key:?} is filled by worker {} while {} does", filler.worker, former.worker);
            if !lives {
                ground.count(Tally::Replaced);
            }
        }
        Self { ground, number: key.number, word }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let _ = self.ground.of_key(self.number, FILLER).compare_exchange(self.word, 0, SeqCst, SeqCst);
    }
}

impl Worker<'_> {
    pub fn fill(&mut self) {
        let key = self.ledger.fill_key(self.random.below(FILLS));
        let end = match self.random.below(10) {
            0 => End::Nothing,
            1 | 2 => End::Fails,
            3 => End::Panics,
            _ => End::Value,
        };
        self.fill_key(&key, end);
        // Nobody fills a key whose entry stays.
        if self.random.below(3) == 0 {
            self.timed(|cache| cache.remove(&key.name));
        }
    }

    pub fn die_in_fill(&mut self) {
        loop {
            let key = self.ledger.fill_key(self.random.below(FILLS));
            self.timed(|cache| cache.remove(&key.name));
            self.fill_key(&key, End::Dies);
        }
    }

    pub fn die_in_update(&mut self) {
        loop {
            let key = self.own_key();
            self.timed(|cache| cache.update(&key.name, &PutOptions::new(), |_| -> Change { Self::die() }));
        }
    }

    fn fill_key(&mut self, key: &Key, end: End) {
        let (bytes, deadline) = (self.bytes(), Duration::from_millis(1 + self.random.below(100)));
        let (use_stale, remembers) = (self.random.below(2) == 0, self.random.below(2) == 0);
        let mut random = Random(self.random.next());
        let filler = Filler { worker: self.me, life: self.life, resized: self.ground.resizes_ended() };
        let (ground, ledger) = (self.ground, self.ledger);
        let make = || {
            let _running = Running::begin(ground, key, filler);
            let version = ledger.begin(key);
            ledger.is_at_work(key, version);
            // Making it takes a while, so that others start to wait for it.
            std::thread::sleep(Duration::from_micros(random.below(3) * random.below(1000)));
            match end {
                End::Value => Ok(Fill::Value(value(&key.name, version, bytes))),
                End::Nothing => Ok(Fill::Nothing { reason: 404, ttl: Duration::from_millis(random.below(100)) }),
                End::Fails => Err(()),
                End::Panics => resume_unwind(Box::new("a fill that panics")),
                End::Dies => Self::die(),
            }
        };
        let known = ledger.known(key);
        let start = Instant::now();
        let filled = key.with_options(&keys::metadata(bytes), |put| {
            let options = FillOptions::new().put(*put).use_stale(use_stale);
            let options = if remembers { options.remember_failure(500, Duration::from_millis(20)) } else { options };
            catch_unwind(AssertUnwindSafe(|| {
                // Whatever the answer is, its duration counts with the others.
                self.timed(|cache| Ok(cache.get_or_fill(&key.name, deadline, &options, make)))
            }))
        });
        match filled {
            Ok(Some(filled)) => self.judge(key, &known, filled, start.elapsed().saturating_sub(deadline)),
            Ok(None) => unreachable!("it has answered"),
            Err(panic) if matches!(end, End::Panics) && panic.is::<&str>() => ground.count(Tally::Panicked),
            Err(panic) => resume_unwind(panic),
        }
    }

    fn judge(&self, key: &Key, known: &Known, filled: Result<Filled<'_>, FillError<()>>, late: Duration) {
        match filled {
            Ok(Filled::Hit(hit)) => {
                self.ledger.check_hit(key, known, &hit, Found::Fresh);
                self.ground.count(Tally::Waited);
            }
            Ok(Filled::Stale(hit)) => {
                self.ledger.check_hit(key, known, &hit, Found::Usable);
                self.ground.count(Tally::Waited);
            }
            Ok(Filled::Negative(reason)) => {
                assert!(reason == 404 || reason == 500, "{reason}");
                self.ground.count(Tally::Absent);
            }
            Ok(Filled::Stored { value, .. }) => {
                self.ledger.check(key, known, &value, Found::Usable);
                self.ground.count(Tally::Filled);
            }
            Ok(Filled::NotStored { value, why }) => {
                // The value belongs to the caller, whatever was purged, so only its bytes are checked.
                crate::common::version_of(&key.name, &value);
                if let NotStored::Refused(error) = why {
                    self.refused(&error);
                }
                self.ground.count(Tally::Unstored);
            }
            Err(FillError::Failed(())) => self.ground.count(Tally::Failed),
            Err(FillError::Cache(Error::Busy { .. })) => {
                self.ground.count(Tally::Late);
                self.ground.note(Longest::Overshoot, late);
            }
            Err(FillError::Cache(error)) => self.refused(&error),
        }
    }
}
