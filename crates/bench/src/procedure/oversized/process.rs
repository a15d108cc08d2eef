//! One process in a group of little memory, whose threads do the mix on one store.

use std::hint::black_box;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use eyewall::Options;
use hdrhistogram::Histogram;

use super::group;
use crate::child::{Worker, hear, say};
use crate::clock::histogram;
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load;
use crate::memory;
use crate::mix::{Sizes, Zipf};
use crate::random::{self, Random};
use crate::store::{Handle as _, Store};
use crate::stores::{Files, Volume};
use crate::touch;

/// What an origin takes to answer: slept.
const ORIGIN: Duration = Duration::from_millis(1);

/// Of a hundred operations so many are gets, the others are puts of what has changed.
const GETS_PERCENT: u64 = 90;

/// What an entry of the mix has, at its median: for the index.
const ENTRY_BYTES: u32 = 4096;

/// Sizes have a mean of some 10 KB.
const SIZES: Sizes = Sizes::Pareto { bytes_min: 2048.0, bytes_max: BYTES_MAX, exponent: 1.1 };
const BYTES_MAX: f64 = 1_048_576.0;

/// The exponent of popularity.
const SKEW: f64 = 0.9;

/// A store that can be measured so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Eyewall,
    /// With a tier before it.
    Tiered,
    Files,
}

/// What a process is to do.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The control group to join
    pub(super) group: PathBuf,
    /// Where the store's files are to lie
    pub(super) directory: PathBuf,
    /// Where its tier's is to lie
    pub(super) tier_directory: PathBuf,
    /// Which store
    #[arg(value_enum)]
    pub(super) kind: Kind,
    /// Its cap
    pub(super) cap_bytes: u64,
    /// Memory of the tier, where the store has one
    pub(super) tier_bytes: u64,
    /// How many objects there are
    pub(super) objects: u64,
    /// Threads
    pub(super) threads: u64,
    /// How long the store is filled, at most
    pub(super) fill_ms_max: u64,
    /// How long each lap takes
    pub(super) duration_ms: u64,
    /// Of keys and operations
    pub(super) seed: u64,
}

impl Task {
    /// Starts a process with this to do. It says a line when its store is filled, and then the numbers of a lap whenever it is told.
    pub(super) fn start(&self) -> Result<Worker> {
        let Self { group, directory, tier_directory, kind, .. } = self;
        let Self { cap_bytes, tier_bytes, objects, threads, fill_ms_max, duration_ms, seed, .. } = *self;
        let kind = kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned());
        let paths = [group, directory, tier_directory].map(|path| path.display().to_string());
        let numbers =
            [cap_bytes, tier_bytes, objects, threads, fill_ms_max, duration_ms, seed].map(|number| number.to_string());
        let words: Vec<String> =
            ["oversized".to_owned()].into_iter().chain(paths).chain([kind]).chain(numbers).collect();
        Worker::start(&words)
    }

    /// A process: fills its store, and does a lap whenever it is told to, until nobody tells it any more.
    pub fn run(&self) -> Result<()> {
        // First of all: what it has in memory from now on counts.
        group::join(&self.group)?;
        match self.kind {
            Kind::Eyewall | Kind::Tiered => {
                let mut options = Options::new().size(self.cap_bytes).entry_size_hint(ENTRY_BYTES);
                if self.kind == Kind::Tiered {
                    options = options.tier(self.tier_bytes).tier_folder(&self.tier_directory);
                }
                self.work(&Volume::from(options.open(self.directory.join(Volume::FILE))?))
            }
            Kind::Files => self.work(&Files::create(&self.directory, self.cap_bytes)?),
        }
    }

    fn work(&self, store: &impl Store) -> Result<()> {
        let zipf = Zipf::new(self.objects, SKEW);
        let until = Until {
            operations_max: (self.objects * 3 / 2).div_ceil(self.threads),
            deadline_ns: now_ns() + self.fill_ms_max * 1_000_000,
        };
        self.lap(store, &zipf, 0, Duration::ZERO, until)?;
        say("ready")?;
        let mut number = 0;
        while hear()? {
            number += 1;
            let read = memory::read_from_storage();
            let begin_ns = now_ns();
            let deadline_ns = begin_ns + self.duration_ms * 1_000_000;
            let lap = self.lap(store, &zipf, number, ORIGIN, Until { operations_max: u64::MAX, deadline_ns })?;
            let took_ns = now_ns() - begin_ns;
            let read_bytes = memory::read_from_storage().zip(read).map_or(0, |(now, before)| now - before);
            let p99_ns = lap.hit_ns.value_at_quantile(0.99);
            let Lap { operations, gets, hit_ns } = lap;
            say(&format!("{operations} {took_ns} {gets} {} {p99_ns} {read_bytes}", hit_ns.len()))?;
        }
        Ok(())
    }

    /// All threads, each with keys of its own for each lap.
    fn lap(&self, store: &impl Store, zipf: &Zipf, number: u64, origin: Duration, until: Until) -> Result<Lap> {
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|thread| {
                    let random = Random::new(random::mix(self.seed ^ (number << 32) ^ thread));
                    scope.spawn(move || mix(store, zipf, random, origin, until))
                })
                .collect();
            let mut all = Lap { operations: 0, gets: 0, hit_ns: histogram()? };
            for worker in workers {
                let lap = worker.join().map_err(|_| Error::Invalid("a thread of the mix panicked".to_owned()))??;
                all.operations += lap.operations;
                all.gets += lap.gets;
                all.hit_ns.add(&lap.hit_ns).map_err(|failure| Error::Invalid(format!("histogram: {failure}")))?;
            }
            Ok(all)
        })
    }
}

/// When a thread ends: at whichever comes first.
#[derive(Debug, Clone, Copy)]
struct Until {
    operations_max: u64,
    deadline_ns: u64,
}

impl Until {
    fn is_over(self, operations: u64, now_ns: u64) -> bool {
        operations >= self.operations_max || now_ns >= self.deadline_ns
    }
}

/// What threads did.
struct Lap {
    operations: u64,
    gets: u64,
    /// Of gets that hit, the value's pages touched.
    hit_ns: Histogram<u64>,
}

fn mix(store: &impl Store, zipf: &Zipf, mut random: Random, origin: Duration, until: Until) -> Result<Lap> {
    let mut handle = store.handle();
    let mut value = random::filler(9, BYTES_MAX as usize);
    let mut lap = Lap { operations: 0, gets: 0, hit_ns: histogram()? };
    let mut begin_ns = now_ns();
    while !until.is_over(lap.operations, begin_ns) {
        let index = zipf.draw(&mut random);
        let key = random::key(index);
        let is_get = random.below(100) < GETS_PERCENT;
        lap.operations += 1;
        lap.gets += u64::from(is_get);
        let drawn_ns = now_ns();
        let hit = is_get
            && handle.get(&key, |bytes| {
                black_box(touch::page(bytes));
            })?;
        begin_ns = now_ns();
        if hit {
            lap.hit_ns.saturating_record(begin_ns - drawn_ns);
            continue;
        }
        if is_get && !origin.is_zero() {
            thread::sleep(origin);
        }
        load::stamp(&mut value, index);
        handle.put(&key, &value[..SIZES.of(index)])?;
        begin_ns = now_ns();
    }
    Ok(lap)
}
