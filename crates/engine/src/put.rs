//! What goes with a put, and what an update decides.

use std::time::Duration;

use crate::purge::Epoch;

/// What is stored beside key and value.
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
    /// No expiry, no metadata, no tags.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the entry is valid, in whole milliseconds at the resolution of the kernel's tick (1 to 10 ms), beyond 74
    /// hours rounded down by less than a hundred-millionth; below a millisecond the entry is stored and never found.
    ///
    /// Setting the machine's clock changes nothing about it, while the machine runs.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// How long after its time to live the entry may still be used as a stale one: [`crate::Cache::lookup`] gives it,
    /// [`crate::Cache::get`] does not. Default: not at all. Without effect on entries without a time to live.
    pub fn stale(mut self, stale: Duration) -> Self {
        self.stale = stale;
        self
    }

    /// Up to 65,535 bytes of the caller's own, stored before the value. Tags take from that.
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = metadata;
        self
    }

    /// Labels by which entries are purged together ([`crate::Cache::purge_tag`]): up to 32 of 1 to 255 bytes. Each takes
    /// nine bytes more than its own.
    pub fn tags(mut self, tags: &'a [&'a str]) -> Self {
        self.tags = tags;
        self
    }

    /// That what is stored was begun to be made then ([`crate::Cache::epoch`]): every purge that means it and came since counts,
    /// as if it had been stored at that moment. Default: when the call begins that stores it, or the writer or the update does.
    ///
    /// Only purges are counted so. Puts follow one another as they are made, and a removal of the key means what is there.
    pub fn begun_in(mut self, epoch: Epoch) -> Self {
        self.begun = Some(epoch);
        self
    }
}

/// What [`crate::Cache::touch`] changes; what isn't set stays as it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Touch<'a> {
    pub(crate) times: Option<(Option<Duration>, Duration)>,
    pub(crate) metadata: Option<&'a [u8]>,
    pub(crate) begun: Option<Epoch>,
    serial: Option<u64>,
}

impl<'a> Touch<'a> {
    /// Changes nothing but that soft purges so far don't mean the entry any more.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on valid for `ttl` (`None`: until it is evicted), and usable for `stale` after that.
    pub fn ttl(mut self, ttl: Option<Duration>, stale: Duration) -> Self {
        self.times = Some((ttl, stale));
        self
    }

    /// New metadata. The entry is written anew, inside the volume; its value needn't be at hand.
    pub fn metadata(mut self, metadata: &'a [u8]) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Only if the entry still has this serial ([`crate::Hit::serial`]): for what is known of one version and is wrong for the
    /// next. Later times keep an entry's serial; earlier ones and metadata give it another.
    pub fn if_serial(mut self, serial: u64) -> Self {
        self.serial = Some(serial);
        self
    }

    /// That what the touch says was learnt then ([`crate::Cache::epoch`]): what a purge that came since has made of the entry, it
    /// stays. Default: now, so that soft purges before the call don't mean the entry any more. Where the volume has been swept since,
    /// and doesn't know any more what was purged, the entry goes.
    pub fn begun_in(mut self, epoch: Epoch) -> Self {
        self.begun = Some(epoch);
        self
    }

    /// Whether it is to change an entry of this serial.
    pub(crate) fn means(&self, serial: u64) -> bool {
        self.serial.is_none_or(|wanted| wanted == serial)
    }
}

/// How [`crate::Cache::increment`] counts: from where, between which bounds, and what goes with a new counter.
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
    /// Starts at 0, stops at the ends of 64 bits, never expires.
    pub fn new() -> Self {
        Self::default()
    }

    /// What an absent counter is taken for, before the addition.
    pub fn start(mut self, value: i64) -> Self {
        self.start = value;
        self
    }

    /// A sum below `min` becomes `min`, one above `max` becomes `max`.
    pub fn bounds(mut self, min: i64, max: i64) -> Self {
        (self.min, self.max) = (min, max);
        self
    }

    /// Times, metadata and tags of a new counter; one that is there keeps its own.
    pub fn options(mut self, options: PutOptions<'a>) -> Self {
        self.options = options;
        self
    }

    pub(crate) fn sum(&self, now: i64, by: i64) -> i64 {
        // Not `clamp`, which panics where the bounds are the wrong way round: the upper one holds.
        now.saturating_add(by).max(self.min).min(self.max)
    }
}

/// What the closure of [`crate::Cache::update`] wants done.
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
    /// Stored, under this serial.
    Stored(u64),
    /// Removed, or it was absent already.
    Removed,
    /// While the closure ran, somebody put, removed, cleared or purged the entry without a claim: the update
    /// counts as done before that, and nothing is left of it.
    Superseded,
}
