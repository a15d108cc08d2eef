//! The work of the benchmark, on any store, whatever its type.
//!
//! The loops are generic and compiled for each store, so the timed part makes no call through a table.

use std::hint::black_box;
use std::thread;

use hdrhistogram::Histogram;

use crate::clock::{Lap, histogram, now_ns};
use crate::error::{Error, Result};
use crate::load::{self, Gets, Population, Puts, allow_misses};
use crate::random::{self, KEY_BYTES, Random};
use crate::reads::{self, ReadLap, Reads};
use crate::replay::{self, Replayed};
use crate::start::Start;
use crate::store::{Handle, Store};
use crate::touch::{self, Touch};
use crate::trace::Request;
use crate::traffic::{self, Length, Positions, Traffic, TrafficLap};

/// Gets between two looks at the clock.
const GETS_BETWEEN_LOOKS: usize = 16;

/// A store that can be measured without knowing its type.
pub trait Contender: Send + Sync {
    /// The name in records.
    fn name(&self) -> &'static str;

    /// Whether the store makes room by itself.
    fn evicts(&self) -> bool;

    /// Bytes that the store takes now; `None` if nothing can tell.
    fn footprint_bytes(&self) -> Result<Option<u64>>;

    /// Bytes of the entries that a get can find, headers included; `None` if the store doesn't tell.
    fn live_bytes(&self) -> Result<Option<u64>>;

    /// The value of a key. It opens a handle for this call, so don't time it.
    fn get_one(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// Stores a value. It opens a handle for this call.
    fn put_one(&self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes an entry. It opens a handle for this call. False if there was no entry, as far as the store can tell.
    fn delete_one(&self, key: &[u8]) -> Result<bool>;

    /// Puts a population.
    fn fill(&self, population: Population) -> Result<()>;

    /// Puts again the objects of a population that a cache has dropped although it has room. This may happen when a
    /// bucket of its index is full.
    fn complete(&self, population: Population) -> Result<()>;

    /// Reads every object of a population once, touches each page, and checks that the value is the object's own. This
    /// populates the map of the store in this process.
    fn check(&self, population: Population) -> Result<()> {
        self.check_part(population, 0, 1)
    }

    /// As [`Contender::check`], but reads only one of `parts` parts of the objects. It populates the whole map.
    fn check_part(&self, population: Population, part: u64, parts: u64) -> Result<()>;

    /// Gets by several threads. All of them have to hit.
    fn gets(&self, gets: &Gets) -> Result<Lap>;

    /// The same, from a given moment of the machine's clock on, for processes that begin together. A process that
    /// begins late ends with the others.
    fn gets_from(&self, gets: &Gets, begin_ns: u64) -> Result<Lap>;

    /// Puts by one thread: new objects, or random old ones if the store does not evict.
    fn puts(&self, puts: &Puts) -> Result<PutLap>;

    /// Puts distinct objects of the given sizes.
    fn sweep(&self, sizes: &[usize], batch: usize) -> Result<Swept>;

    /// Puts the most popular objects of some traffic, up to so many bytes in total, by as many threads as the traffic
    /// has.
    fn fill_for(&self, traffic: &Traffic, bytes: u64) -> Result<()>;

    /// Gets, puts and deletes by several threads.
    fn traffic(&self, traffic: &Traffic, positions: &Positions, length: Length) -> Result<TrafficLap>;

    /// Waits until the store has finished its background work, so that this work doesn't slow down the turn of another
    /// store.
    fn settle(&self) -> Result<()>;

    /// Replays a trace in one thread. After a miss it puts the object.
    fn replay(&self, requests: &[Request]) -> Result<Replayed>;

    /// Acts as the cache in front of a directory of files, for several readers.
    fn serve_files(&self, reads: &Reads<'_>) -> Result<ReadLap>;
}

/// The puts of a thread.
#[derive(Debug, Clone)]
pub struct PutLap {
    /// How many puts, in what time.
    pub lap: Lap,
    /// Index of the first object that was not put.
    pub next: u64,
    /// Nanoseconds of each put, from one clock reading to the next.
    pub latency_ns: Histogram<u64>,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default)]
pub struct Swept {
    /// The seconds of each batch.
    pub seconds: Vec<f64>,
    /// Objects that the store refused as too large. It accepted all others.
    pub refused: usize,
    /// Their bytes.
    pub refused_bytes: usize,
}

impl Swept {
    /// The seconds of all batches together.
    pub fn all_seconds(&self) -> f64 {
        self.seconds.iter().sum()
    }
}

impl<S: Store> Contender for S {
    fn name(&self) -> &'static str {
        Store::name(self)
    }

    fn evicts(&self) -> bool {
        Store::evicts(self)
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Store::footprint_bytes(self)
    }

    fn live_bytes(&self) -> Result<Option<u64>> {
        Store::live_bytes(self)
    }

    fn get_one(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.handle().get(key, |value| found = Some(value.to_vec()))?;
        Ok(found)
    }

    fn put_one(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.handle().put(key, value)?;
        Store::settle(self)
    }

    fn delete_one(&self, key: &[u8]) -> Result<bool> {
        self.handle().delete(key)
    }

    fn fill(&self, population: Population) -> Result<()> {
        let mut handle = self.handle();
        let mut value = population.value();
        for index in 0..population.objects {
            load::stamp(&mut value, index);
            handle.put(&random::key(index), &value)?;
        }
        Store::settle(self)
    }

    fn complete(&self, population: Population) -> Result<()> {
        let mut handle = self.handle();
        let mut value = population.value();
        for index in 0..population.objects {
            let key = random::key(index);
            if !handle.get(&key, |_| {})? {
                load::stamp(&mut value, index);
                handle.put(&key, &value)?;
            }
        }
        Store::settle(self)
    }

    fn check_part(&self, population: Population, part: u64, parts: u64) -> Result<()> {
        self.populate()?;
        let mut handle = self.handle();
        let mut missing = 0;
        for index in (part..population.objects).step_by(parts as usize) {
            let mut sound = false;
            let found = handle.get(&random::key(index), |value| {
                black_box(touch::page(value));
                sound = value.len() == population.value_bytes && load::is_stamped(value, index);
            })?;
            if found && !sound {
                let what = format!("{} gave another value for object {index}", Store::name(self));
                return Err(Error::Invalid(what));
            }
            missing += u64::from(!found);
        }
        allow_misses(Store::name(self), missing, population.objects.div_ceil(parts))
    }

    fn gets(&self, gets: &Gets) -> Result<Lap> {
        get_as_told(self, gets, &Start::new(gets.sequences.threads(), gets.duration))
    }

    fn gets_from(&self, gets: &Gets, begin_ns: u64) -> Result<Lap> {
        get_as_told(self, gets, &Start::at(gets.sequences.threads(), begin_ns, gets.duration))
    }

    fn puts(&self, puts: &Puts) -> Result<PutLap> {
        put_for(self, puts)
    }

    fn fill_for(&self, traffic: &Traffic, bytes: u64) -> Result<()> {
        traffic::fill(self, traffic, bytes)?;
        Store::settle(self)
    }

    fn traffic(&self, traffic: &Traffic, positions: &Positions, length: Length) -> Result<TrafficLap> {
        traffic::run(self, traffic, positions, length)
    }

    fn settle(&self) -> Result<()> {
        Store::settle(self)
    }

    fn replay(&self, requests: &[Request]) -> Result<Replayed> {
        replay::run(self, requests)
    }

    fn serve_files(&self, reads: &Reads<'_>) -> Result<ReadLap> {
        match reads.touch {
            Touch::Pointer => reads::run(self, reads, touch::pointer),
            Touch::Page => reads::run(self, reads, touch::page),
            Touch::Every => reads::run(self, reads, touch::every),
        }
    }

    fn sweep(&self, sizes: &[usize], batch: usize) -> Result<Swept> {
        let mut handle = self.handle();
        let mut value = random::filler(4, sizes.iter().copied().max().unwrap_or(8));
        let mut index = 0;
        let mut swept = Swept::default();
        for sizes in sizes.chunks(batch) {
            let begin = now_ns();
            for &bytes in sizes {
                load::stamp(&mut value, index);
                match handle.put(&random::key(index), &value[..bytes]) {
                    Ok(()) => {}
                    Err(Error::Refused { .. }) => {
                        swept.refused += 1;
                        swept.refused_bytes += bytes;
                    }
                    Err(failure) => return Err(failure),
                }
                index += 1;
            }
            swept.seconds.push((now_ns() - begin) as f64 / 1e9);
        }
        Ok(swept)
    }
}

fn get_as_told<S: Store>(store: &S, gets: &Gets, start: &Start) -> Result<Lap> {
    match gets.touch {
        Touch::Pointer => get_by_threads(store, gets, start, touch::pointer),
        Touch::Page => get_by_threads(store, gets, start, touch::page),
        Touch::Every => get_by_threads(store, gets, start, touch::every),
    }
}

fn get_by_threads<S: Store>(
    store: &S,
    gets: &Gets,
    start: &Start,
    touch: impl Fn(&[u8]) -> u64 + Copy + Send,
) -> Result<Lap> {
    thread::scope(|scope| {
        let workers: Vec<_> = (0..gets.sequences.threads())
            .map(|thread| {
                let keys = gets.sequences.of_thread(thread);
                scope.spawn(move || get_until_deadline(store, keys, touch, start))
            })
            .collect();
        let mut whole: Option<Lap> = None;
        for worker in workers {
            let joined = worker.join().map_err(|_| Error::Invalid("a reader panicked".to_owned()))?;
            let lap = joined?;
            whole = Some(whole.map_or(lap, |whole| whole.join(lap)));
        }
        whole.ok_or_else(|| Error::Invalid("no reader".to_owned()))
    })
}

fn get_until_deadline<S: Store>(
    store: &S,
    keys: &[[u8; KEY_BYTES]],
    touch: impl Fn(&[u8]) -> u64,
    start: &Start,
) -> Result<Lap> {
    let mut handle = store.handle();
    let mut operations = 0;
    let mut hits = 0_u64;
    let (begin_ns, deadline_ns) = start.wait();
    let mut end_ns = begin_ns;
    'all: loop {
        for keys in keys.chunks(GETS_BETWEEN_LOOKS) {
            if end_ns >= deadline_ns {
                break 'all;
            }
            for key in keys {
                let hit = handle.get(key, |value| {
                    black_box(value.as_ptr());
                    black_box(touch(value));
                })?;
                hits += u64::from(hit);
            }
            operations += keys.len() as u64;
            end_ns = now_ns();
        }
    }
    allow_misses(store.name(), operations - hits, operations)?;
    Ok(Lap { operations, begin_ns, end_ns })
}

fn put_for<S: Store>(store: &S, puts: &Puts) -> Result<PutLap> {
    let mut handle = store.handle();
    let mut value = puts.population.value();
    let mut latency_ns = histogram()?;
    let mut random = Random::new(puts.first);
    let mut next = puts.first;
    let begin_ns = now_ns();
    let deadline_ns = begin_ns + puts.duration.as_nanos() as u64;
    let mut last_ns = begin_ns;
    while last_ns < deadline_ns {
        let index = if store.evicts() { next } else { random.below(puts.population.objects) };
        load::stamp(&mut value, index);
        handle.put(&random::key(index), &value)?;
        next += 1;
        let now = now_ns();
        latency_ns.saturating_record(now - last_ns);
        last_ns = now;
    }
    let lap = Lap { operations: next - puts.first, begin_ns, end_ns: last_ns };
    Ok(PutLap { lap, next, latency_ns })
}
