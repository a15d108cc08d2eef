//! The options of puts, touches, counters and updates.

use std::time::Duration;

use crate::purge::Epoch;

/// What a put stores beside key and value.
///
/// ```
/// use std::time::Duration;
/// use eyewall::{Options, PutOptions};
///
/// let cache = Options::new().heap()?;
/// let options = PutOptions::new().ttl(Duration::from_secs(60)).metadata(b"text/html");
/// cache.put_with("/", "<h1>Hello</h1>", &options)?;
/// # Ok::<(), eyewall::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct PutOptions<'a> {
    pub(crate) ttl: Option<Duration>,
    pub(crate) stale: Duration,
    pub(crate) metadata: &'a [u8],
    pub(crate) tags: &'a [&'a str],
    pub(crate) begun: Option<Epoch>,
}

impl<'a> PutOptions<'a> {
    /// Without expiry, metadata and tags.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the entry is fresh. Measured in milliseconds, with the resolution of the kernel's tick (1 to 10 ms).
    /// Times beyond 74 hours are rounded down by less than a hundred-millionth. An entry with less than a millisecond
    /// is stored and never found.
    ///
    /// Setting the machine's clock doesn't change it while the machine runs.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long after its time to live the entry may still be used as a stale one. [`crate::Cache::lookup`] returns
    /// it then; [`crate::Cache::get`] doesn't. Default: not at all. Has no effect on entries without a time to live.
    pub fn stale(mut self, stale: Duration) -> Self {
        self.stale = stale;
        self
    }

    /// Up to 65,535 bytes that the caller stores beside the value. Tags use a part of them.
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = metadata;
        self
    }

    /// Labels to purge entries by ([`crate::Cache::purge_tag`]): up to 32 of 1 to 255 bytes each. A tag takes nine
    /// bytes more than its text.
    pub fn tags(mut self, tags: &'a [&'a str]) -> Self {
        self.tags = tags;
        self
    }

    /// Says when the work on this value began ([`crate::Cache::epoch`]). Every purge since then that covers the entry
    /// takes effect, as if the entry had been stored at that moment. Default: when the storing call, the writer or
    /// the update begins.
    ///
    /// This applies to purges only. Of several puts the last one wins, and a removal of the key removes what is
    /// there.
    pub fn begun_in(mut self, epoch: Epoch) -> Self {
        self.begun = Some(epoch);
        self
    }
}

/// What [`crate::Cache::touch`] changes. Everything else stays as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Touch<'a> {
    pub(crate) times: Option<(Option<Duration>, Duration)>,
    pub(crate) metadata: Option<&'a [u8]>,
    pub(crate) begun: Option<Epoch>,
    serial: Option<u64>,
}

impl<'a> Touch<'a> {
    /// Changes nothing, except that earlier soft purges no longer cover the entry.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on, the entry is fresh for `ttl` (`None`: until it is evicted), and usable for `stale` after that.
    pub fn ttl(mut self, ttl: Option<Duration>, stale: Duration) -> Self {
        self.times = Some((ttl, stale));
        self
    }

    /// New metadata. The volume writes the entry again; the caller doesn't need its value.
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Changes the entry only if it still has this serial ([`crate::Hit::serial`]). For facts about one version that
    /// would be wrong for the next. Later times keep an entry's serial; earlier times and metadata give it another.
    pub fn if_serial(mut self, serial: u64) -> Self {
        self.serial = Some(serial);
        self
    }

    /// Says when the facts of this touch were learnt ([`crate::Cache::epoch`]). Purges that came later keep their
    /// effect on the entry. Default: now, so that soft purges before the call no longer cover the entry. If the
    /// volume was swept since that moment, and no longer knows what was purged, the entry is dropped.
    pub fn begun_in(mut self, epoch: Epoch) -> Self {
        self.begun = Some(epoch);
        self
    }

    /// Whether the touch may change an entry of this serial.
    pub(crate) fn means(&self, serial: u64) -> bool {
        self.serial.is_none_or(|wanted| wanted == serial)
    }
}

/// How [`crate::Cache::increment`] counts: its start, its bounds, and the options of a new counter.
#[derive(Debug, Clone, Copy)]
pub struct Counter<'a> {
    pub(crate) start: i64,
    min: i64,
    max: i64,
    pub(crate) options: PutOptions<'a>,
}

impl Default for Counter<'_> {
    fn default() -> Self {
        Self { start: 0, min: i64::MIN, max: i64::MAX, options: PutOptions::new() }
    }
}

impl<'a> Counter<'a> {
    /// Starts at 0, stops at the limits of `i64`, and never expires.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of an absent counter, before the addition.
    pub fn start(mut self, value: i64) -> Self {
        self.start = value;
        self
    }

    /// A sum below `min` becomes `min`, and a sum above `max` becomes `max`.
    pub fn bounds(mut self, min: i64, max: i64) -> Self {
        (self.min, self.max) = (min, max);
        self
    }

    /// Times, metadata and tags of a new counter; an existing one keeps its own.
    pub fn options(mut self, options: PutOptions<'a>) -> Self {
        self.options = options;
        self
    }

    pub(crate) fn sum(&self, now: i64, by: i64) -> i64 {
        // Not `clamp`, which panics if the bounds are swapped; here the upper bound wins.
        now.saturating_add(by).max(self.min).min(self.max)
    }
}

/// What the closure of [`crate::Cache::update`] asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Leave the entry, or its absence, as it is.
    Keep,
    /// Store this value.
    Put(Vec<u8>),
    /// Remove the entry.
    Remove,
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updated {
    /// The closure said [`Change::Keep`].
    Kept,
    /// The value was stored, under this serial.
    Stored(u64),
    /// The entry was removed, or was absent already.
    Removed,
    /// While the closure ran, somebody put, removed, cleared or purged the entry without a claim. The update counts
    /// as done before that, and nothing of it remains.
    Superseded,
}
