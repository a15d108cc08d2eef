//! Gets, puts and deletes by several threads, like those of a web server's processes: after a miss, the thread puts the
//! object.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::clock::histogram;
use crate::clock::{Lap, now_ns};
use crate::error::{Error, Result};
use crate::load;
use crate::mix::Zipf;
use crate::random::{self, Random};
use crate::start::Start;
use crate::store::{Handle, Store};
use crate::touch;

/// Steps that are drawn beforehand for each thread. After the last step it starts over.
const STEPS_OF_A_THREAD: usize = 1 << 19;

/// The operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Get,
    Put,
    Delete,
}

/// The next step of a thread: an object and an operation.
#[derive(Debug, Clone, Copy)]
struct Step {
    index: u32,
    act: Act,
}

/// The shares of operations, in percent.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// Puts of an object that has changed.
    pub puts: u64,
    /// Deletes. The others are gets.
    pub deletes: u64,
}

/// Traffic on objects of given sizes, drawn beforehand. Each thread walks through its own part again and again.
#[derive(Debug)]
pub struct Traffic {
    /// The bytes of each object.
    sizes: Vec<u32>,
    steps: Vec<Vec<Step>>,
}

impl Traffic {
    /// Traffic of so many threads on objects of these sizes, with a popularity given by `skew`.
    pub fn new(sizes: Vec<u32>, skew: f64, shares: Shares, threads: usize, seed: u64) -> Self {
        let zipf = Zipf::new(sizes.len() as u64, skew);
        let of_thread = |thread: usize| {
            let mut random = Random::new(random::mix(seed ^ ((thread as u64) << 32)));
            let step = |_| {
                let index = zipf.draw(&mut random) as u32;
                let act = match random.below(100) {
                    point if point < shares.puts => Act::Put,
                    point if point < shares.puts + shares.deletes => Act::Delete,
                    _ => Act::Get,
                };
                Step { index, act }
            };
            (0..STEPS_OF_A_THREAD).map(step).collect()
        };
        let steps = (0..threads).map(of_thread).collect();
        Self { sizes, steps }
    }

    /// Bytes of a typical object, for stores that take such a hint.
    pub fn mean_bytes(&self) -> usize {
        let sum: u64 = self.sizes.iter().map(|size| u64::from(*size)).sum();
        (sum / self.sizes.len().max(1) as u64) as usize
    }

    /// Bytes of the largest object.
    pub fn bytes_max(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(8) as usize
    }

    /// How many objects there are.
    pub fn objects(&self) -> usize {
        self.sizes.len()
    }

    /// How many of the most popular objects have so many bytes together.
    fn objects_within(&self, bytes: u64) -> usize {
        let mut sum = 0;
        let is_within = |size: &&u32| {
            sum += u64::from(**size);
            sum <= bytes
        };
        self.sizes.iter().take_while(is_within).count()
    }
}

/// How long a lap is.
#[derive(Debug, Clone, Copy)]
pub enum Length {
    /// A time.
    Time(Duration),
    /// A number of operations, for all threads together.
    Operations(u64),
}

/// A lap by operations ends after this time at the latest.
const LAP_MAX: Duration = Duration::from_mins(5);

impl Length {
    fn time(self) -> Duration {
        match self {
            Self::Time(time) => time,
            Self::Operations(_) => LAP_MAX,
        }
    }

    /// The largest number of operations of each thread, for so many threads.
    fn operations_each(self, threads: usize) -> u64 {
        match self {
            Self::Time(_) => u64::MAX,
            Self::Operations(operations) => operations.div_ceil(threads as u64),
        }
    }
}

/// The position of each thread in its part, for one store. A lap continues where the one before ended. Otherwise a slow
/// store, which doesn't get far, would in each lap get requests for exactly the objects that it stored in the lap
/// before.
#[derive(Debug)]
pub struct Positions(Vec<AtomicUsize>);

impl Positions {
    /// Starts each thread at the beginning of its part.
    pub fn new(traffic: &Traffic) -> Self {
        Self(traffic.steps.iter().map(|_| AtomicUsize::new(0)).collect())
    }
}

/// The results of the threads.
#[derive(Debug, Clone)]
pub struct TrafficLap {
    /// All operations. A get that misses and the put after it are one operation.
    pub lap: Lap,
    /// Gets.
    pub gets: u64,
    /// Gets that hit.
    pub hits: u64,
    /// Bytes of the values that were put.
    pub put_bytes: u64,
    /// Puts that a store refused as too large.
    pub refused: u64,
    /// The time of each get, which includes touching a byte of each page.
    pub get_ns: Histogram<u64>,
    /// The time of each put.
    pub put_ns: Histogram<u64>,
    /// The time of each operation, with the put that follows a miss.
    pub all_ns: Histogram<u64>,
}

impl TrafficLap {
    fn new(begin_ns: u64) -> Result<Self> {
        Ok(Self {
            lap: Lap { operations: 0, begin_ns, end_ns: begin_ns },
            gets: 0,
            hits: 0,
            put_bytes: 0,
            refused: 0,
            get_ns: histogram()?,
            put_ns: histogram()?,
            all_ns: histogram()?,
        })
    }

    fn join(mut self, other: &Self) -> Result<Self> {
        let add = |mine: &mut Histogram<u64>, theirs: &Histogram<u64>| {
            mine.add(theirs).map_err(|failure| Error::Invalid(format!("histogram: {failure}")))
        };
        self.lap = self.lap.join(other.lap);
        self.gets += other.gets;
        self.hits += other.hits;
        self.put_bytes += other.put_bytes;
        self.refused += other.refused;
        add(&mut self.get_ns, &other.get_ns)?;
        add(&mut self.put_ns, &other.put_ns)?;
        add(&mut self.all_ns, &other.all_ns)?;
        Ok(self)
    }

    /// Gets that hit, in percent of all gets.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.gets.max(1) as f64
    }
}

/// Puts the most popular objects, up to so many bytes together, the least popular of them first. This fills a store
/// before anything is counted.
pub(crate) fn fill<S: Store>(store: &S, traffic: &Traffic, bytes: u64) -> Result<()> {
    let left = AtomicUsize::new(traffic.objects_within(bytes));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..traffic.steps.len())
            .map(|thread| {
                let left = &left;
                scope.spawn(move || put_down_to_none(store, traffic, thread, left))
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().map_err(|_| Error::Invalid("a thread that filled a store panicked".to_owned()))?
        })
    })
}

fn put_down_to_none<S: Store>(store: &S, traffic: &Traffic, thread: usize, left: &AtomicUsize) -> Result<()> {
    let mut handle = store.handle();
    let mut value = random::filler(thread as u64, traffic.bytes_max());
    // No other data depends on the counter.
    while let Ok(before) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
        let index = before - 1;
        load::stamp(&mut value, index as u64);
        match handle.put(&random::key(index as u64), &value[..traffic.sizes[index] as usize]) {
            Ok(()) | Err(Error::Refused { .. }) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// Runs all threads for a lap.
pub(crate) fn run<S: Store>(store: &S, traffic: &Traffic, positions: &Positions, length: Length) -> Result<TrafficLap> {
    let start = Start::new(traffic.steps.len(), length.time());
    let operations = length.operations_each(traffic.steps.len());
    thread::scope(|scope| {
        let workers: Vec<_> = traffic
            .steps
            .iter()
            .zip(&positions.0)
            .enumerate()
            .map(|(thread, (steps, position))| {
                let (start, walk) = (&start, Walk { steps, position, operations });
                scope.spawn(move || work(store, traffic, thread, walk, start))
            })
            .collect();
        let mut whole: Option<TrafficLap> = None;
        for worker in workers {
            let lap = worker.join().map_err(|_| Error::Invalid("a thread of the traffic panicked".to_owned()))??;
            whole = Some(match whole {
                Some(whole) => whole.join(&lap)?,
                None => lap,
            });
        }
        whole.ok_or_else(|| Error::Invalid("no thread".to_owned()))
    })
}

/// A thread's part of the traffic.
#[derive(Debug, Clone, Copy)]
struct Walk<'a> {
    steps: &'a [Step],
    position: &'a AtomicUsize,
    /// The largest number of operations.
    operations: u64,
}

fn work<S: Store>(store: &S, traffic: &Traffic, thread: usize, walk: Walk<'_>, start: &Start) -> Result<TrafficLap> {
    let mut handle = store.handle();
    // Each put gets a new mark, so that no two stored values have the same bytes.
    let mut value = random::filler(thread as u64, traffic.bytes_max());
    // No other thread uses this position.
    let mut next = walk.position.load(Ordering::Relaxed);
    let (begin_ns, deadline_ns) = start.wait();
    let mut lap = TrafficLap::new(begin_ns)?;
    let mut last_ns = begin_ns;
    while last_ns < deadline_ns && lap.lap.operations < walk.operations {
        let Step { index, act } = walk.steps[next];
        next = (next + 1) % walk.steps.len();
        let key = random::key(u64::from(index));
        let begin_ns = last_ns;
        let mut is_put = act == Act::Put;
        match act {
            Act::Get => {
                let is_hit = handle.get(&key, |bytes| {
                    black_box(touch::page(bytes));
                })?;
                last_ns = now_ns();
                lap.get_ns.saturating_record(last_ns - begin_ns);
                lap.gets += 1;
                lap.hits += u64::from(is_hit);
                is_put = !is_hit;
            }
            Act::Delete => {
                handle.delete(&key)?;
                last_ns = now_ns();
            }
            Act::Put => {}
        }
        if is_put {
            let bytes = traffic.sizes[index as usize] as usize;
            load::stamp(&mut value, u64::from(index));
            match handle.put(&key, &value[..bytes]) {
                Ok(()) => lap.put_bytes += bytes as u64,
                Err(Error::Refused { .. }) => lap.refused += 1,
                Err(failure) => return Err(failure),
            }
            let now = now_ns();
            lap.put_ns.saturating_record(now - last_ns);
            last_ns = now;
        }
        lap.lap.operations += 1;
        lap.all_ns.saturating_record(last_ns - begin_ns);
    }
    walk.position.store(next, Ordering::Relaxed);
    lap.lap.end_ns = last_ns;
    Ok(lap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Place;
    use crate::stores::FILES;

    #[test]
    fn a_lap_goes_on_where_the_one_before_ended() -> Result<()> {
        let shares = Shares { puts: 10, deletes: 5 };
        let traffic = Traffic::new(vec![64; 1_000], 0.9, shares, 2, 7);
        let positions = Positions::new(&traffic);
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place::new(directory.path(), 8 << 20, 64);
        let store = (FILES.open)(&place)?;
        let mut done = 0;
        for _ in 0..2 {
            let lap = store.traffic(&traffic, &positions, Length::Time(Duration::from_millis(5)))?;
            assert!(lap.lap.operations > 0 && lap.hits <= lap.gets);
            assert_eq!(lap.all_ns.len(), lap.lap.operations);
            assert_eq!(lap.get_ns.len(), lap.gets);
            done += lap.lap.operations as usize;
            let at: usize = positions.0.iter().map(|position| position.load(Ordering::Relaxed)).sum();
            assert_eq!(at, done % STEPS_OF_A_THREAD);
        }
        Ok(())
    }

    #[test]
    fn a_lap_may_be_of_so_many_operations() -> Result<()> {
        let traffic = Traffic::new(vec![64; 100], 0.9, Shares { puts: 10, deletes: 5 }, 3, 7);
        let directory = tempfile::tempdir().expect("a directory");
        let store = (FILES.open)(&Place::new(directory.path(), 8 << 20, 64))?;
        let lap = store.traffic(&traffic, &Positions::new(&traffic), Length::Operations(300))?;
        assert_eq!(lap.lap.operations, 300);
        Ok(())
    }

    #[test]
    fn a_store_is_filled_with_what_is_popular() -> Result<()> {
        let traffic = Traffic::new(vec![1_000; 100], 0.9, Shares { puts: 10, deletes: 5 }, 3, 7);
        let directory = tempfile::tempdir().expect("a directory");
        let store = (FILES.open)(&Place::new(directory.path(), 8 << 20, 1_000))?;
        store.fill_for(&traffic, 10_500)?;
        let held: Vec<u64> =
            (0..100).filter(|index| store.get_one(&random::key(*index)).is_ok_and(|value| value.is_some())).collect();
        assert_eq!(held, (0..10).collect::<Vec<u64>>());
        Ok(())
    }
}
