//! Filling: entries that are written piece by piece, or made once for all callers.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the public API, except [`Writer`] and [`Follower`] |
//! | `flight.rs` | request collapsing: one caller fills, others wait |
//! | `writer.rs`, `room.rs` | writing an entry in place, and the room that it takes |
//! | `follower.rs` | reading an entry while somebody writes it |
//! | `second_level.rs` | asking a store that several machines share, before the caller fills |
//! | `pin.rs` | a pin that may move to another thread |

mod flight;
mod follower;
mod pin;
mod room;
mod second_level;
mod writer;

use std::fmt;
use std::time::{Duration, Instant};

pub use flight::{Filling, Flight};
pub use follower::Follower;
pub use second_level::{Foreign, Made, SecondLevel};
pub use writer::{Committed, Writer};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hit::Hit;
use crate::put::PutOptions;

/// The answer of a closure of [`Cache::get_or_fill`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// This value, which is to be stored.
    Value(Vec<u8>),
    /// There is nothing, for this reason. [`Cache::get_or_fill`] remembers that for a time, as
    /// [`Cache::put_negative`] does.
    Nothing {
        /// The caller chooses its meaning.
        reason: u16,
        /// For how long nobody asks again.
        ttl: Duration,
    },
}

/// How [`Cache::get_or_fill`] stores and waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct FillOptions<'a> {
    put: PutOptions<'a>,
    use_stale: bool,
    failure: Option<(u16, Duration)>,
    wanted: Option<Asked<'a>>,
}

/// Asks the caller whether to wait any longer.
#[derive(Clone, Copy)]
struct Asked<'a>(&'a (dyn Fn() -> bool + Sync));

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl<'a> FillOptions<'a> {
    /// Stores as [`Cache::put`] does. Doesn't return stale values, and doesn't remember failures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the metadata beside the value, and how long the entry is kept.
    pub fn put(mut self, options: PutOptions<'a>) -> Self {
        self.put = options;
        self
    }

    /// Returns a stale value at once, instead of waiting, while another caller fills.
    pub fn use_stale(mut self, yes: bool) -> Self {
        self.use_stale = yes;
        self
    }

    /// If the closure fails, stores a negative entry with this reason. Until `ttl` is over, nobody tries again. The
    /// caller whose closure failed still gets its error.
    pub fn remember_failure(mut self, reason: u16, ttl: Duration) -> Self {
        self.failure = Some((reason, ttl));
        self
    }

    /// Asks `wanted` every few milliseconds while the call waits for another one. If it returns false, the call ends
    /// as at its deadline, except that it doesn't count as [`busy`](crate::Stats::busy). For callers that must react
    /// to signals, for instance; otherwise they would wait in short steps, each of which counts.
    pub fn wait_while(mut self, wanted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.wanted = Some(Asked(wanted));
        self
    }

    /// The options of a negative entry. It gets the tags of the value, so that a purge covers it, too.
    fn of_nothing(&self, ttl: Duration) -> PutOptions<'a> {
        PutOptions::new().ttl(ttl).tags(self.put.tags)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.is_none_or(|asked| asked.0())
    }
}

/// The result of [`Cache::get_or_fill`].
#[derive(Debug)]
pub enum Filled<'a> {
    /// A fresh value. It was there, or another caller has filled it meanwhile.
    Hit(Hit<'a>),
    /// A stale value that another caller is about to replace ([`FillOptions::use_stale`]).
    Stale(Hit<'a>),
    /// There is nothing, for this reason. It was noted before, or this call's closure said so.
    Negative(u16),
    /// This call's closure made the value, and it was stored.
    Stored {
        /// The value.
        value: Vec<u8>,
        /// The version of the entry.
        serial: u64,
    },
    /// This call's closure made the value, and it was not stored.
    NotStored {
        /// The value.
        value: Vec<u8>,
        /// Why.
        why: NotStored,
    },
}

impl Filled<'_> {
    /// The value, wherever it came from; `None` if there is nothing.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Hit(hit) | Self::Stale(hit) => Some(hit),
            Self::Stored { value, .. } | Self::NotStored { value, .. } => Some(value),
            Self::Negative(_) => None,
        }
    }
}

/// Why a value was made but not stored.
#[derive(Debug)]
pub enum NotStored {
    /// While the closure ran, somebody put, removed or purged the entry. The value counts as stored before that.
    Superseded,
    /// The volume refused it, for instance because it is too large or readers hold too much.
    Refused(Error),
}

/// Why [`Cache::get_or_fill`] returns no answer.
#[derive(Debug, thiserror::Error)]
pub enum FillError<E> {
    /// The closure failed.
    #[error("filling the entry failed: {0}")]
    Failed(#[source] E),
    /// The cache failed, or the deadline came. The closure didn't run.
    #[error(transparent)]
    Cache(#[from] Error),
}

impl Cache {
    /// Returns a writer for the entry of `key`. The value goes into the volume as it is written, and becomes the
    /// entry by [`Writer::commit`].
    ///
    /// If `length` gives the length of the value, nothing is copied twice. If it is unknown or too small, the room
    /// grows as needed, mostly in place.
    ///
    /// The writer claims the key. Another writer, update or fill of the key waits for it, up to the lock deadline, as
    /// this call does for others. Puts, removes, and purges that cover the key don't wait; they supersede what is
    /// being written.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`]; [`EntryTooLarge`](Error::EntryTooLarge) only for a known length.
    /// [`Pinned`](Error::Pinned) also if this process can't hold more bytes, since a writer takes a pin, as a hit
    /// does. [`Busy`](Error::Busy) if another claim on the key, or claims on many other keys, last longer than the
    /// lock deadline.
    ///
    /// ```
    /// use std::io::Write;
    /// use eyewall::{Committed, Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// let mut writer = cache.writer("/feed", &PutOptions::new().metadata(b"text/xml"), None)?;
    /// for number in 0..3 {
    ///     write!(writer, "<item>{number}</item>")?;
    /// }
    /// assert!(cache.get("/feed")?.is_none());
    /// assert!(matches!(writer.commit()?, Committed::Stored(_)));
    /// assert_eq!(cache.get("/feed")?.unwrap().len(), 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn writer(&self, key: impl AsRef<[u8]>, options: &PutOptions<'_>, length: Option<u64>) -> Result<Writer> {
        let key = key.as_ref();
        self.vouched(|volume| Writer::begin(volume, key, options, length))
    }

    /// Reads what a [`Writer`], in this or another process, is writing to `key`, from the first byte on and as it
    /// comes.
    ///
    /// `None`: nobody is writing it. Also `None` if this thread can't hold bytes in place, because the process has
    /// more threads than the volume has slots.
    ///
    /// # Errors
    /// [`KeyEmpty`](Error::KeyEmpty), [`KeyTooLong`](Error::KeyTooLong), [`ReadOnly`](Error::ReadOnly).
    ///
    /// ```
    /// use std::{io::Write, time::Duration};
    /// use eyewall::{Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// let mut writer = cache.writer("/feed", &PutOptions::new(), None)?;
    /// writer.write_all(b"<item>")?;
    /// let mut follower = cache.follow("/feed")?.expect("somebody writes it");
    /// let mut bytes = [0; 100];
    /// assert_eq!(follower.read(&mut bytes, Duration::from_secs(1))?, 6);
    /// writer.commit()?;
    /// assert_eq!(follower.read(&mut bytes, Duration::from_secs(1))?, 0); // that was all
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn follow(&self, key: impl AsRef<[u8]>) -> Result<Option<Follower>> {
        let key = key.as_ref();
        self.looked_for(|volume| Follower::find(volume, key))
    }

    /// Returns the entry of `key`. If there is none, one caller over all threads and processes runs `fill` and stores
    /// its value, and the others wait for it.
    ///
    /// `fill` runs outside every lock: it may take its time, use the cache, or panic. If it fails, panics, or dies
    /// with its process, one of the waiting callers fills next.
    ///
    /// Callers wait for up to `deadline`. If a stopped process holds the stripe's lock, the [lock
    /// deadline](crate::Options::lock_deadline) may be added. A call for the same key inside of `fill` waits in vain
    /// until its deadline. So do two closures that wait for each other's keys.
    ///
    /// A stale entry is filled again; see [`FillOptions::use_stale`]. A negative entry is an answer.
    ///
    /// # Errors
    /// [`Failed`](FillError::Failed): this call's closure failed. [`Busy`](Error::Busy): the deadline came.
    /// [`ReadOnly`](Error::ReadOnly), if there is no entry to return. A value that can't be stored is not an error:
    /// see [`Filled::NotStored`].
    ///
    /// ```
    /// use std::{convert::Infallible, time::Duration};
    /// use eyewall::{Fill, FillOptions, Options};
    ///
    /// let cache = Options::new().heap()?;
    /// for _ in 0..2 {
    ///     let page = cache.get_or_fill("/", Duration::from_secs(5), &FillOptions::new(), || {
    ///         Ok::<_, Infallible>(Fill::Value(b"<h1>Hello</h1>".to_vec())) // runs once
    ///     })?;
    ///     assert_eq!(page.value(), Some(&b"<h1>Hello</h1>"[..]));
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn get_or_fill<E, F>(
        &self,
        key: impl AsRef<[u8]>,
        deadline: Duration,
        options: &FillOptions<'_>,
        fill: F,
    ) -> std::result::Result<Filled<'_>, FillError<E>>
    where
        F: FnOnce() -> std::result::Result<Fill, E>,
    {
        let flight = match self.begin_fill(key, deadline, options)? {
            Filling::Found(filled) => return Ok(filled),
            Filling::Ours(flight) => flight,
        };
        match fill() {
            Ok(Fill::Value(value)) => Ok(match flight.store(&value, &options.put) {
                Ok(serial) => Filled::Stored { value, serial },
                Err(why) => Filled::NotStored { value, why },
            }),
            // If this note can't be stored, it is lost, and the next caller asks again.
            Ok(Fill::Nothing { reason, ttl }) => {
                let _ = flight.remember_with(reason, &options.of_nothing(ttl));
                Ok(Filled::Negative(reason))
            }
            Err(error) => {
                if let Some((reason, ttl)) = options.failure {
                    let _ = flight.remember_with(reason, &options.of_nothing(ttl));
                }
                Err(FillError::Failed(error))
            }
        }
    }

    /// Returns the entry of `key` or, if there is none, the right to fill it. One caller over all threads and
    /// processes has that right at a time, and the others wait. For callers that can't pass a closure to
    /// [`Cache::get_or_fill`].
    ///
    /// Two of the options count here: whether a stale value is accepted, and how long to wait. The others are given
    /// to [`Flight::store`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use eyewall::{FillOptions, Filling, Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// match cache.begin_fill("/", Duration::from_secs(5), &FillOptions::new())? {
    ///     Filling::Found(found) => println!("{:?}", found.value()),
    ///     Filling::Ours(flight) => {
    ///         flight.store("<h1>Hello</h1>", &PutOptions::new()).unwrap();
    ///     }
    /// }
    /// assert!(cache.contains("/")?);
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Busy`](Error::Busy): the deadline came. [`ReadOnly`](Error::ReadOnly), if there is no entry to return. Those
    /// of [`Cache::get`].
    pub fn begin_fill(
        &self,
        key: impl AsRef<[u8]>,
        deadline: Duration,
        options: &FillOptions<'_>,
    ) -> Result<Filling<'_>> {
        let (key, start) = (key.as_ref(), Instant::now());
        self.vouched(|volume| Flight::join(self, volume, key, (start, deadline), options))
    }
}
