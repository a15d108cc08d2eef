//! Filling: entries that are made piece by piece, or once for all that ask.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | what a user sees of it beside [`Writer`] and [`Follower`] |
//! | `flight.rs` | who fills, and who waits |
//! | `writer.rs`, `room.rs` | writing an entry in place, and the room that it takes |
//! | `follower.rs` | reading an entry while somebody writes it |
//! | `pin.rs` | a pin that may change threads |

mod flight;
mod follower;
mod pin;
mod room;
mod writer;

use std::fmt;
use std::time::{Duration, Instant};

pub use flight::{Filling, Flight};
pub use follower::Follower;
pub use writer::{Committed, Writer};

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hit::Hit;
use crate::put::PutOptions;

/// What the closure of [`Cache::get_or_fill`] has found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fill {
    /// This value, to be stored.
    Value(Vec<u8>),
    /// There is nothing, for this reason: that is to be remembered for so long, as [`Cache::put_negative`] does.
    Nothing {
        /// Means what the caller wants it to mean.
        reason: u16,
        /// How long nobody asks again.
        ttl: Duration,
    },
}

/// How [`Cache::get_or_fill`] fills and waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct FillOptions<'a> {
    put: PutOptions<'a>,
    use_stale: bool,
    failure: Option<(u16, Duration)>,
    wanted: Option<Asked<'a>>,
}

/// Whether to wait any longer.
#[derive(Clone, Copy)]
struct Asked<'a>(&'a (dyn Fn() -> bool + Sync));

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked")
    }
}

impl<'a> FillOptions<'a> {
    /// Stores as [`Cache::put`] does; nobody takes a stale value; failures aren't remembered.
    pub fn new() -> Self {
        Self::default()
    }

    /// What is stored beside a value, and for how long.
    pub fn put(mut self, options: PutOptions<'a>) -> Self {
        self.put = options;
        self
    }

    /// While somebody else fills, a stale value is taken at once, instead of waiting.
    pub fn use_stale(mut self, yes: bool) -> Self {
        self.use_stale = yes;
        self
    }

    /// Where the closure fails, that is remembered as a negative entry of this reason for so long: until then nobody tries
    /// again. Whoever's closure it was gets its error all the same.
    pub fn remember_failure(mut self, reason: u16, ttl: Duration) -> Self {
        self.failure = Some((reason, ttl));
        self
    }

    /// While it waits for somebody else, the call asks this every few milliseconds; false ends it as the deadline does, but for
    /// that it doesn't count as [`busy`](crate::Stats::busy). For callers that are to hear of signals, say, and would else wait in steps, each of which counts.
    pub fn wait_while(mut self, wanted: &'a (dyn Fn() -> bool + Sync)) -> Self {
        self.wanted = Some(Asked(wanted));
        self
    }

    /// What is put beside the reason why there is nothing: the value's tags, so that it is purged as the value would be.
    fn of_nothing(&self, ttl: Duration) -> PutOptions<'a> {
        PutOptions::new().ttl(ttl).tags(self.put.tags)
    }

    fn is_wanted(&self) -> bool {
        self.wanted.is_none_or(|asked| asked.0())
    }
}

/// What [`Cache::get_or_fill`] gives.
#[derive(Debug)]
pub enum Filled<'a> {
    /// A valid value: it was there, or somebody else has filled it meanwhile.
    Hit(Hit<'a>),
    /// A stale value, which somebody else is about to replace ([`FillOptions::use_stale`]).
    Stale(Hit<'a>),
    /// There is nothing, for this reason. It was noted before, or the closure has just said so.
    Negative(u16),
    /// This call's closure has made the value, and it was stored.
    Stored {
        /// The value.
        value: Vec<u8>,
        /// Names this version of the entry.
        serial: u64,
    },
    /// This call's closure has made the value, and it was not stored.
    NotStored {
        /// The value.
        value: Vec<u8>,
        /// Why.
        why: NotStored,
    },
}

impl Filled<'_> {
    /// The value, wherever it is from; `None` where there is nothing.
    pub fn value(&self) -> Option<&[u8]> {
        match self {
            Self::Hit(hit) | Self::Stale(hit) => Some(hit),
            Self::Stored { value, .. } | Self::NotStored { value, .. } => Some(value),
            Self::Negative(_) => None,
        }
    }
}

/// Why a value that was made wasn't stored.
#[derive(Debug)]
pub enum NotStored {
    /// While the closure ran, somebody put, removed or purged the entry: the value counts as stored before that.
    Superseded,
    /// It is too large, say, or readers hold too much.
    Refused(Error),
}

/// Why [`Cache::get_or_fill`] gives nothing.
#[derive(Debug, thiserror::Error)]
pub enum FillError<E> {
    /// The closure failed.
    #[error("filling the entry failed: {0}")]
    Failed(#[source] E),
    /// The cache did, or the deadline came: the closure didn't run.
    #[error(transparent)]
    Cache(#[from] Error),
}

impl Cache {
    /// A writer of the entry of `key`: its value goes into the volume as it is written, and becomes the entry by
    /// [`Writer::commit`].
    ///
    /// With the value's length known (`length`), nothing is copied twice. Where it isn't, or was said too small, room grows
    /// as it is needed, mostly in place.
    ///
    /// The writer claims the key: another writer, update or fill of it waits, as does this call, up to the lock deadline. Puts
    /// and removes don't wait; they supersede what is being written. So does a purge that means it.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`]; [`EntryTooLarge`](Error::EntryTooLarge) only for a known length.
    /// [`Pinned`](Error::Pinned) also where this process can hold no more: a writer takes a pin, as a hit does.
    /// [`Busy`](Error::Busy) when somebody else's claim on the key, or claims on many other keys, last longer than the lock
    /// deadline.
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

    /// Reads what a [`Writer`] of this process or another is writing to `key`, from its first byte on, as it comes. `None`:
    /// nobody is writing it. (Or nobody is seen to, since this thread can't hold bytes in place: more threads than the
    /// volume has slots.)
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

    /// The entry of `key`; where there is none, one caller over all threads and processes runs `fill` and stores what it
    /// makes, and the others wait for it.
    ///
    /// `fill` runs outside every lock: it may take its time, use the cache, or panic. Where it fails, panics, or dies with
    /// its process, one of those that wait is the next to fill. Whoever waits does so for up to `deadline`; a stripe whose lock
    /// a stopped process holds can add the [lock's](crate::Options::lock_deadline). A call for the same key inside of `fill`
    /// waits, too, in vain; and so do two whose closures wait for each other's keys.
    ///
    /// A stale entry is filled anew; see [`FillOptions::use_stale`]. A negative entry is an answer.
    ///
    /// # Errors
    /// [`Failed`](FillError::Failed): this call's closure did. [`Busy`](Error::Busy): the deadline came.
    /// [`ReadOnly`](Error::ReadOnly), where there is nothing to be found. That a value can't be stored is no error:
    /// [`Filled::NotStored`].
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
            // Where that can't be stored, it isn't known, and the next one asks again.
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

    /// What [`Cache::get_or_fill`] does around its closure, for callers that can't have one: the entry of `key`; or, where there
    /// is none, the right to fill it, which one caller over all threads and processes has at a time, while the others wait.
    ///
    /// Of the options, whether a stale value will do counts, and for how long it is waited; the others go with [`Flight::store`].
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
    /// [`Busy`](Error::Busy): the deadline came. [`ReadOnly`](Error::ReadOnly), where there is nothing to be found; those of
    /// [`Cache::get`].
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
