//! Hits: the bytes of an entry, held in place while somebody reads them.

use std::fmt;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyewall_region::{clock, fork};

use crate::error::Result;
use crate::format::hash;
use crate::format::origin::Origin;
use crate::format::record::{Flags, HEADER_BYTES, Header, Lengths, Record};
use crate::format::tags::Tags;
use crate::format::times::Phase;
use crate::protocol;
use crate::volume::Volume;

/// An entry of the cache, held in place.
///
/// It derefs to the bytes of the value in the map, without a copy. While the hit lives, nobody overwrites them,
/// whatever is put, removed or evicted. Dropping the hit is the only way to release them.
///
/// Drop a hit as soon as you have read it, since held bytes can't be evicted. If a put needs room and finds more than
/// an eighth of a stripe held, further hits of that stripe are copies on the heap ([`Hit::is_copy`]), up to 64 MiB of
/// them in a process.
///
/// Any thread may read and drop a hit. **After `fork`** the child must not read a hit that it inherited; that panics.
/// Dropping it there has no effect.
pub struct Hit<'a> {
    volume: &'a Volume,
    held: Held<'a>,
    /// Key, metadata and value, in this order.
    body: NonNull<u8>,
    key_bytes: u32,
    /// Length of the metadata in 16 bits, and [`STALE`]. They share one word so that the hit has no padding: moving
    /// it in more pieces cost a tenth of a look-up.
    metadata_and_stale: u32,
    value_bytes: u32,
    fork: u32,
}

// SAFETY: nobody writes the bytes at `body` while the hit lives. They belong to a pinned record, or to a heap copy
// that the hit owns.
unsafe impl Send for Hit<'_> {}
// SAFETY: as above.
unsafe impl Sync for Hit<'_> {}

/// The bit above the metadata's length that says that the hit is stale.
const STALE: u32 = 1 << 31;

/// What keeps the bytes of a hit valid.
enum Held<'a> {
    Pinned(&'a AtomicU64),
    Copied(Box<Copied>),
}

/// A record on the heap. While it lives, it counts against the budget of the process.
pub(crate) struct Copied {
    pub(crate) header: Header,
    /// Key, metadata and value, in this order.
    pub(crate) body: Box<[u8]>,
}

/// What [`crate::Cache::lookup`] found.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// A valid value.
    Fresh(Hit<'a>),
    /// A value that has expired, or that a soft purge covers, and that may still be used.
    Stale(Hit<'a>),
    /// A note that there is nothing; [`Hit::reason`] says why.
    Negative(Hit<'a>),
    /// Nothing is known.
    Miss,
}

impl<'a> Lookup<'a> {
    pub(crate) fn of(hit: Option<Hit<'a>>) -> Self {
        match hit {
            None => Self::Miss,
            // An expired negative entry says nothing any more.
            Some(hit) if hit.reason().is_some() => {
                if hit.is_stale() {
                    Self::Miss
                } else {
                    Self::Negative(hit)
                }
            }
            Some(hit) if hit.is_stale() => Self::Stale(hit),
            Some(hit) => Self::Fresh(hit),
        }
    }

    /// The value, if it is fresh.
    pub fn fresh(self) -> Option<Hit<'a>> {
        match self {
            Self::Fresh(hit) => Some(hit),
            _ => None,
        }
    }
}

/// The properties of an entry, without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// The version of the entry. It grows with every put of the key.
    pub serial: u64,
    /// When it was put.
    pub created: SystemTime,
    /// How long it stays fresh; `None`: until it is evicted.
    pub ttl_left: Option<Duration>,
    /// Whether it was stale when it was looked up.
    pub stale: bool,
    /// How long it may be used, fresh or stale; `None`: until it is evicted.
    pub usable_left: Option<Duration>,
    /// Length of the key.
    pub key_bytes: usize,
    /// Length of the metadata.
    pub metadata_bytes: usize,
    /// Length of the value.
    pub value_bytes: usize,
}

impl<'a> Hit<'a> {
    /// Turns this into a hit without a lifetime, which may be sent anywhere and keeps the volume mapped.
    pub fn into_owned(self) -> OwnedHit {
        match self.volume.this.upgrade() {
            Some(volume) => OwnedHit::new(&volume, self),
            None => unreachable!("a hit borrows from a cache, which owns the volume"),
        }
    }

    /// # Safety
    /// `pin` holds a validated claim on `record`, and nobody else releases it. A body of these lengths lies inside
    /// the region.
    #[inline]
    pub(crate) unsafe fn pinned(
        volume: &'a Volume,
        record: Record<'a>,
        lengths: Lengths,
        phase: Phase,
        pin: &'a AtomicU64,
    ) -> Self {
        // SAFETY: the caller has checked that the body lies inside the region; a key has at least one byte.
        let body = unsafe { volume.region.address(record.body()) };
        Self::new(volume, Held::Pinned(pin), phase, body, lengths)
    }

    pub(crate) fn copied(volume: &'a Volume, copied: Copied, phase: Phase) -> Self {
        volume.copied_bytes.fetch_add(copied.body.len() as u64, Relaxed);
        let (body, lengths) = (copied.body.as_ptr().cast_mut(), copied.header.lengths);
        Self::new(volume, Held::Copied(Box::new(copied)), phase, body, lengths)
    }

    #[inline]
    fn new(volume: &'a Volume, held: Held<'a>, phase: Phase, body: *mut u8, lengths: Lengths) -> Self {
        Self {
            volume,
            held,
            body: NonNull::new(body).unwrap_or(NonNull::dangling()),
            key_bytes: lengths.key as u32,
            metadata_and_stale: lengths.metadata as u32 | if phase == Phase::Stale { STALE } else { 0 },
            value_bytes: lengths.value as u32,
            fork: fork::generation(),
        }
    }

    /// The record of a pinned hit.
    fn record(&self) -> Record<'a> {
        debug_assert!(matches!(self.held, Held::Pinned(_)));
        let body = self.body.as_ptr() as usize - self.volume.region.pointer(0, 0) as usize;
        Record::at(&self.volume.region, body - HEADER_BYTES as usize)
    }

    pub(crate) fn header(&self) -> Header {
        match &self.held {
            Held::Pinned(_) => self.record().header(),
            Held::Copied(copied) => copied.header,
        }
    }

    /// Whether the bytes still match the checksum of what was put.
    pub(crate) fn is_whole(&self) -> bool {
        hash::checksum(self.part(0, self.key_bytes + self.metadata_bytes() + self.value_bytes))
            == self.header().checksum
    }

    #[inline]
    fn part(&self, start: u32, bytes: u32) -> &[u8] {
        assert!(!self.is_inherited(), "a hit was inherited through fork; get it again");
        // SAFETY: the parts were inside the body when the hit was made. The pin or the copy that the hit holds keeps
        // the body unchanged.
        unsafe { std::slice::from_raw_parts(self.body.as_ptr().add(start as usize), bytes as usize) }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.part(0, self.key_bytes)
    }

    fn flags(&self) -> Flags {
        match &self.held {
            Held::Pinned(_) => self.record().flags(),
            Held::Copied(copied) => copied.header.flags,
        }
    }

    /// The metadata with the part for tags, as in the volume that the entry was put into.
    fn tagged_metadata(&self) -> &[u8] {
        let all = self.part(self.key_bytes, self.metadata_bytes());
        let copied = self.volume.front_of.is_some().then(|| Origin::read(all)).flatten();
        copied.map_or(all, |(_, rest)| rest)
    }

    /// The metadata that was put; empty if there was none.
    pub fn metadata(&self) -> &[u8] {
        let all = self.tagged_metadata();
        if self.flags().is_plain() {
            return all;
        }
        all.get(..self.read_tags().map_or(all.len(), |tags| tags.start)).unwrap_or_default()
    }

    fn read_tags(&self) -> Option<Tags<'_>> {
        let all = self.tagged_metadata();
        if self.flags().has(Flags::TAGGED) { Tags::read(all) } else { None }
    }

    /// The tags of the entry ([`crate::PutOptions::tags`]).
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.read_tags().into_iter().flat_map(Tags::names)
    }

    /// The reason code of a negative entry ([`crate::Cache::put_negative`]); `None` for a value.
    pub fn reason(&self) -> Option<u16> {
        let reason = self.value().first_chunk::<2>().map(|bytes| u16::from_le_bytes(*bytes));
        reason.filter(|_| self.flags().has(Flags::NEGATIVE))
    }

    /// Whether the entry had expired, or a soft purge covered it, when it was looked up. Only
    /// [`crate::Cache::lookup`] and [`crate::Cache::iter_all`] return such hits.
    pub fn is_stale(&self) -> bool {
        self.metadata_and_stale & STALE != 0
    }

    /// Includes the tags.
    #[inline]
    fn metadata_bytes(&self) -> u32 {
        self.metadata_and_stale & !STALE
    }

    /// The value; the hit also derefs to it.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.part(self.key_bytes + self.metadata_bytes(), self.value_bytes)
    }

    /// The version of the entry, for [`crate::Cache::replace_if`] and [`crate::Touch::if_serial`].
    pub fn serial(&self) -> u64 {
        self.header().serial
    }

    /// When the entry was put, by the current wall clock.
    pub fn created(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(clock::wall_ms()).saturating_sub(self.age())
    }

    /// How long ago the entry was put.
    pub fn age(&self) -> Duration {
        Duration::from_millis(self.age_ms())
    }

    fn age_ms(&self) -> u64 {
        self.volume.now_ms().saturating_sub(self.header().created_ms)
    }

    /// How long the entry stays fresh; zero once it has expired; `None`: it never expires. Doesn't see soft purges
    /// that came after the look-up.
    pub fn ttl_left(&self) -> Option<Duration> {
        let fresh = if self.is_stale() { Some(0) } else { self.header().times.fresh_for() };
        fresh.map(|fresh| Duration::from_millis(fresh.saturating_sub(self.age_ms())))
    }

    /// How long the entry may be used, fresh or stale ([`crate::PutOptions::stale`]); `None`: until it is evicted.
    pub fn usable_left(&self) -> Option<Duration> {
        let usable = self.header().times.usable_for();
        usable.map(|usable| Duration::from_millis(usable.saturating_sub(self.age_ms())))
    }

    /// Whether the bytes are a copy on the heap. That is so if readers hold too much of the cache, or if this process
    /// can't hold bytes in place because it is a read-only opener or has more threads than the volume has slots.
    pub fn is_copy(&self) -> bool {
        matches!(self.held, Held::Copied(_))
    }

    /// Whether the parent of this process held the hit when it forked. Such a hit must not be read here.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.fork != fork::generation()
    }

    /// Whether the bytes that were read of this hit so far are those that were put. Ask after the reads, not before:
    /// once bytes of the volume are lost ([`crate::Options::survive_sigbus`]), any bytes of the hit may read as
    /// zeros, and this is false. A copy stays intact.
    #[inline]
    pub fn is_intact(&self) -> bool {
        self.is_copy() || !self.volume.has_failed()
    }

    /// Does the same as [`Hit::is_intact`], but returns an error.
    ///
    /// # Errors
    /// [`Failed`](crate::Error::Failed) if the hit is not intact.
    #[inline]
    pub fn check_intact(&self) -> Result<()> {
        if self.is_copy() { Ok(()) } else { self.volume.check_intact() }
    }

    /// Offset of the bytes in the region and their number; `None` for a copy.
    pub(crate) fn span(&self) -> Option<(usize, usize)> {
        let Held::Pinned(_) = &self.held else { return None };
        Some((
            self.record().body(),
            self.key_bytes as usize + self.metadata_bytes() as usize + self.value_bytes as usize,
        ))
    }

    /// The range of the value in the volume's file ([`crate::Cache::path`]), for callers that read it through a
    /// descriptor of their own. `None` for a copy, and for a volume without such a file (one without a name, or a
    /// tier).
    ///
    /// The range holds the value only while the hit lives. **`sendfile` and `splice` return before the bytes are
    /// read.** The hit must live until the other side has received them, and a socket doesn't tell when that is.
    pub fn file_range(&self) -> Option<Range<u64>> {
        let (start, bytes) = self.span().filter(|_| self.volume.front_of.is_none())?;
        self.volume.membership.path()?;
        let end = (start + bytes) as u64;
        Some(end - u64::from(self.value_bytes)..end)
    }

    pub(crate) fn volume(&self) -> &Volume {
        self.volume
    }

    /// Everything except the bytes.
    pub fn info(&self) -> Info {
        Info {
            serial: self.serial(),
            created: self.created(),
            ttl_left: self.ttl_left(),
            stale: self.is_stale(),
            usable_left: self.usable_left(),
            key_bytes: self.key_bytes as usize,
            metadata_bytes: self.metadata().len(),
            value_bytes: self.value_bytes as usize,
        }
    }
}

impl Drop for Hit<'_> {
    #[inline]
    fn drop(&mut self) {
        match &self.held {
            Held::Pinned(pin) => {
                // In a forked child the pin belongs to the parent.
                if self.fork == fork::generation() {
                    protocol::unpin(*pin);
                }
            }
            Held::Copied(copied) => {
                self.volume.copied_bytes.fetch_sub(copied.body.len() as u64, Relaxed);
            }
        }
    }
}

impl Deref for Hit<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.value()
    }
}

impl AsRef<[u8]> for Hit<'_> {
    fn as_ref(&self) -> &[u8] {
        self.value()
    }
}

impl fmt::Debug for Hit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hit").field("info", &self.info()).field("is_copy", &self.is_copy()).finish()
    }
}

/// The fork generation (a child must not share pins of its parent) and the content of the pin.
pub(crate) type SharedKey = (u32, u64);

/// A pin shared by several owned hits of one entry.
pub(crate) struct SharedPin {
    volume: Arc<Volume>,
    /// Borrows from `volume`, which this struct keeps alive; dropped before it.
    hit: std::mem::ManuallyDrop<Hit<'static>>,
    key: Option<SharedKey>,
}

impl fmt::Debug for SharedPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.hit.fmt(f)
    }
}

impl Drop for SharedPin {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let _gate = fork::gate();
            let mut shared = self.volume.shared_pins.lock().unwrap_or_else(PoisonError::into_inner);
            if shared.get(&key).is_some_and(|weak| weak.strong_count() == 0) {
                shared.remove(&key);
            }
        }
        // SAFETY: dropped once, here, while `volume` is still alive.
        unsafe { std::mem::ManuallyDrop::drop(&mut self.hit) }
    }
}

/// A hit without a lifetime. It keeps the volume mapped; it may be sent anywhere, and any thread may drop it.
///
/// All owned hits of one entry in a process share one pin. `AsRef<[u8]>` gives the value, so
/// `bytes::Bytes::from_owner` accepts an owned hit.
#[derive(Debug, Clone)]
pub struct OwnedHit {
    shared: Arc<SharedPin>,
}

impl OwnedHit {
    pub(crate) fn new(volume: &Arc<Volume>, hit: Hit<'_>) -> Self {
        debug_assert!(std::ptr::eq(hit.volume, Arc::as_ptr(volume)));
        let key = match &hit.held {
            Held::Pinned(pin) => Some((hit.fork, pin.load(Relaxed))),
            Held::Copied(_) => None,
        };
        // SAFETY: the hit borrows from the volume, and `SharedPin` keeps the volume alive for longer than the hit.
        let hit: Hit<'static> = unsafe { std::mem::transmute::<Hit<'_>, Hit<'static>>(hit) };
        let mut shared = SharedPin { volume: Arc::clone(volume), hit: std::mem::ManuallyDrop::new(hit), key };
        let Some(key) = key else { return Self { shared: Arc::new(shared) } };
        // The gate keeps others from forking a child while the map is locked.
        let gate = fork::gate();
        let mut pins = volume.shared_pins.lock().unwrap_or_else(PoisonError::into_inner);
        // While this position is pinned, no other record can come to stand there.
        if let Some(known) = pins.get(&key).and_then(Weak::upgrade) {
            drop((pins, gate));
            // The new pin isn't needed. The map finds the known one by this key, so its entry must stay.
            shared.key = None;
            return Self { shared: known };
        }
        let shared = Arc::new(shared);
        pins.insert(key, Arc::downgrade(&shared));
        drop((pins, gate));
        Self { shared }
    }
}

impl Deref for OwnedHit {
    type Target = Hit<'static>;

    fn deref(&self) -> &Hit<'static> {
        &self.shared.hit
    }
}

impl AsRef<[u8]> for OwnedHit {
    fn as_ref(&self) -> &[u8] {
        self.shared.hit.value()
    }
}
