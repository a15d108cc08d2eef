//! Gets, puts and deletes by several threads, as a web server's processes do them: a get that misses puts the object.

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

/// Drawn beforehand for each thread, which begins again after the last.
const STEPS_OF_A_THREAD: usize = 1 << 19;

/// The operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Get,
    Put,
    Delete,
}

/// What a thread does next: an object, and what with it.
#[derive(Debug, Clone, Copy)]
struct Step {
    index: u32,
    act: Act,
}

/// Of a hundred operations.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shares {
    /// So many put an object that has changed.
    pub puts: u64,
    /// So many delete one. The others are gets.
    pub deletes: u64,
}

/// Traffic on objects of given sizes, drawn beforehand; each thread walks its own part round and round.
#[derive(Debug)]
pub struct Traffic {
    /// The bytes of each object.
    sizes: Vec<u32>,
    steps: Vec<Vec<Step>>,
}

impl Traffic {
    /// Objects of these sizes, popular as `skew` says, asked for by so many threads.
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

    /// Bytes of a typical object, for stores that want to know.
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

    /// How many of the most popular objects make up so many bytes.
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
    /// So long.
    Time(Duration),
    /// So many operations, over all threads.
    Operations(u64),
}

/// A lap by operations ends after so long, whatever is done by then.
const LAP_MAX: Duration = Duration::from_mins(5);

impl Length {
    fn time(self) -> Duration {
        match self {
            Self::Time(time) => time,
            Self::Operations(_) => LAP_MAX,
        }
    }

    /// What each of so many threads does at most.
    fn operations_each(self, threads: usize) -> u64 {
        match self {
            Self::Time(_) => u64::MAX,
            Self::Operations(operations) => operations.div_ceil(threads as u64),
        }
    }
}

/// How far each thread has come in its part, for one store: a lap goes on where the one before ended. Else a store that is too slow
/// to come far would be asked, in each lap, for just what it has stored in the one before.
#[derive(Debug)]
pub struct Positions(Vec<AtomicUsize>);

impl Positions {
    /// At the beginning.
    pub fn new(traffic: &Traffic) -> Self {
        Self(traffic.steps.iter().map(|_| AtomicUsize::new(0)).collect())
    }
}

/// What threads did.
#[derive(Debug, Clone)]
pub struct TrafficLap {
    /// All operations; a get that misses and its put are one.
    pub lap: Lap,
    /// Gets.
    pub gets: u64,
    /// Gets that hit.
    pub hits: u64,
    /// Bytes of the values that were put.
    pub put_bytes: u64,
    /// Puts that a store refused as too large.
    pub refused: u64,
    /// Of each get, a byte of each page touched.
    pub get_ns: Histogram<u64>,
    /// Of each put.
    pub put_ns: Histogram<u64>,
    /// Of every operation, with the put that follows a miss.
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

    /// Gets that hit, in percent of all.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.gets.max(1) as f64
    }
}

/// Puts the most popular objects, as many as make up so many bytes, the least popular of them first: what a store is full of before
/// anything is counted.
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
    // The counter stands for nothing but itself.
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

/// Lets all threads work for a lap.
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
    /// At most.
    operations: u64,
}

fn work<S: Store>(store: &S, traffic: &Traffic, thread: usize, walk: Walk<'_>, start: &Start) -> Result<TrafficLap> {
    let mut handle = store.handle();
    // Marked again for each put, so that no two stored values share their bytes.
    let mut value = random::filler(thread as u64, traffic.bytes_max());
    // Nobody else has this position.
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
