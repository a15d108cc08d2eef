//! Readers of files, with a cache in front of the files.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::load::allow_misses;
use crate::plain::Plain;
use crate::random;
use crate::start::Start;
use crate::store::{Handle, Store};
use crate::touch::Touch;

/// Keys from here on belong to the same objects, but the cache doesn't have them.
const ABSENT_FIRST: u64 = 1 << 41;

/// What a reader does with each of its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Gets the file; the cache has it.
    Get,
    /// Looks up a key that the cache doesn't have, and reads the file.
    Miss,
    /// Reads the file and puts it under a key that the cache doesn't have. The entry is deleted again, which isn't
    /// timed.
    FirstStore,
    /// Gets the file; if the cache doesn't have it, reads the file and puts it.
    GetOrStore,
}

/// The work of several readers. Each goes through its files again and again.
#[derive(Debug)]
pub struct Reads<'a> {
    /// The files.
    pub source: &'a Plain,
    /// The objects that each reader requests, in this order.
    pub orders: Vec<Vec<u64>>,
    /// The operation.
    pub act: Act,
    /// The part of a value that is read.
    pub touch: Touch,
    /// Number of files between two readings of the clock.
    pub between_looks: usize,
    /// Number of files that each reader requests before the clock starts, to make its buffers. 0 if everything has to
    /// be cold.
    pub untimed: usize,
    /// How long to read. `None`: every file once.
    pub duration: Option<Duration>,
}

/// The results of the readers.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadLap {
    /// Files.
    pub operations: u64,
    /// Files that the cache had.
    pub hits: u64,
    /// Files that the cache refused as too large.
    pub refused: u64,
    /// The time of all readers together.
    pub busy_ns: u64,
}

impl ReadLap {
    /// The mean time of an operation.
    pub fn seconds_each(&self) -> f64 {
        self.busy_ns as f64 / 1e9 / self.operations.max(1) as f64
    }

    /// Operations that hit, in percent of all operations.
    pub fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.operations.max(1) as f64
    }

    fn join(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            hits: self.hits + other.hits,
            refused: self.refused + other.refused,
            busy_ns: self.busy_ns + other.busy_ns,
        }
    }
}

/// Runs all readers.
pub(crate) fn run<S: Store>(
    store: &S,
    reads: &Reads<'_>,
    touch: impl Fn(&[u8]) -> u64 + Copy + Send,
) -> Result<ReadLap> {
    let start = Start::new(reads.orders.len(), reads.duration.unwrap_or_default());
    let lap = thread::scope(|scope| {
        let readers: Vec<_> = reads
            .orders
            .iter()
            .map(|order| {
                let start = &start;
                scope.spawn(move || read(store, reads, order, touch, start))
            })
            .collect();
        readers.into_iter().try_fold(ReadLap::default(), |whole, reader| {
            let lap = reader.join().map_err(|_| Error::Invalid("a reader panicked".to_owned()))??;
            Ok::<_, Error>(whole.join(lap))
        })
    })?;
    match reads.act {
        Act::Get => allow_misses(store.name(), lap.operations - lap.hits, lap.operations)?,
        Act::Miss if lap.hits > 0 => {
            return Err(Error::Invalid(format!("{} has what was never put", store.name())));
        }
        Act::Miss | Act::FirstStore | Act::GetOrStore => {}
    }
    Ok(lap)
}

fn read<S: Store>(
    store: &S,
    reads: &Reads<'_>,
    order: &[u64],
    touch: impl Fn(&[u8]) -> u64 + Copy,
    start: &Start,
) -> Result<ReadLap> {
    let mut reader = Reader { cache: store.handle(), source: reads.source.handle(), lap: ReadLap::default() };
    // A reader returns an error only after all have started: if one doesn't come to the start, the others would wait
    // forever.
    let begun = order.iter().take(reads.untimed).try_for_each(|index| reader.act(reads.act, *index, touch).map(|_| ()));
    reader.lap = ReadLap::default();
    let (begin_ns, deadline_ns) = start.wait();
    begun?;
    let mut untimed_ns = 0;
    let mut end_ns = begin_ns;
    'all: loop {
        for files in order.chunks(reads.between_looks) {
            for index in files {
                untimed_ns += reader.act(reads.act, *index, touch)?;
            }
            reader.lap.operations += files.len() as u64;
            end_ns = now_ns();
            if reads.duration.is_some() && end_ns >= deadline_ns {
                break 'all;
            }
        }
        if reads.duration.is_none() {
            break;
        }
    }
    reader.lap.busy_ns = end_ns - begin_ns - untimed_ns;
    Ok(reader.lap)
}

struct Reader<C, F> {
    cache: C,
    source: F,
    lap: ReadLap,
}

impl<C: Handle, F: Handle> Reader<C, F> {
    /// Does the operation with one file. Returns the nanoseconds that don't count.
    #[inline]
    fn act(&mut self, act: Act, index: u64, touch: impl Fn(&[u8]) -> u64) -> Result<u64> {
        let key = random::key(index);
        let consume = |value: &[u8]| {
            black_box(value.as_ptr());
            black_box(touch(value));
        };
        match act {
            Act::Get => self.lap.hits += u64::from(self.cache.get(&key, consume)?),
            Act::Miss => {
                self.lap.hits += u64::from(self.cache.get(&random::key(ABSENT_FIRST + index), |_| {})?);
                self.source.get(&key, consume)?;
            }
            Act::FirstStore => {
                let absent = random::key(ABSENT_FIRST + index);
                self.store(&key, &absent)?;
                let stored_ns = now_ns();
                self.cache.delete(&absent)?;
                return Ok(now_ns() - stored_ns);
            }
            Act::GetOrStore => {
                let is_hit = self.cache.get(&key, consume)?;
                self.lap.hits += u64::from(is_hit);
                if !is_hit {
                    self.store(&key, &key)?;
                }
            }
        }
        Ok(0)
    }

    /// Reads the file under a name, and puts it under a key.
    fn store(&mut self, name: &[u8], key: &[u8]) -> Result<()> {
        let mut put = Ok(());
        self.source.get(name, |value| put = self.cache.put(key, value))?;
        match put {
            Err(Error::Refused { .. }) => self.lap.refused += 1,
            put => put?,
        }
        Ok(())
    }
}
