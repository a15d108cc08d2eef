//! One process in a group with little memory. Its threads do the mix on one store.

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

/// The response time of the origin: a thread sleeps so long.
const ORIGIN: Duration = Duration::from_millis(1);

/// Gets among a hundred operations. The others put objects that have changed.
const GETS_PERCENT: u64 = 90;

/// The median size of an entry of the mix, for the index.
const ENTRY_BYTES: u32 = 4096;

/// The sizes have a mean of about 10 KB.
const SIZES: Sizes = Sizes::Pareto { bytes_min: 2048.0, bytes_max: BYTES_MAX, exponent: 1.1 };
const BYTES_MAX: f64 = 1_048_576.0;

/// The exponent of popularity.
const SKEW: f64 = 0.9;

/// A store that this procedure can measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    Eyewall,
    /// The store with a tier in front of it.
    Tiered,
    Files,
}

/// The task of a process.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The control group to join
    pub(super) group: PathBuf,
    /// The directory for the store's files
    pub(super) directory: PathBuf,
    /// The directory for the tier's file
    pub(super) tier_directory: PathBuf,
    /// The store
    #[arg(value_enum)]
    pub(super) kind: Kind,
    /// Its cap
    pub(super) cap_bytes: u64,
    /// Memory of the tier, if the store has one
    pub(super) tier_bytes: u64,
    /// Number of objects
    pub(super) objects: u64,
    /// Threads
    pub(super) threads: u64,
    /// The longest time to fill the store
    pub(super) fill_ms_max: u64,
    /// The length of a lap
    pub(super) duration_ms: u64,
    /// Seed of keys and operations
    pub(super) seed: u64,
}

impl Task {
    /// Starts a process for this task. It writes a line when its store is filled, and after that the numbers of a lap
    /// for each request.
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

    /// The process: fills its store, and does a lap for each request, until no more requests come.
    pub fn run(&self) -> Result<()> {
        // Joins the group first: the group is charged only for memory that is touched from now on.
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

    /// A lap of all threads. For each lap, each thread has keys of its own.
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

/// A thread ends at whichever of these comes first.
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

/// The results of the threads.
struct Lap {
    operations: u64,
    gets: u64,
    /// Times of gets that hit, which include touching the pages of the value.
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
