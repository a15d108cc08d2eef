//! Hits: an entry's bytes, held in place for as long as somebody looks at them.

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
use crate::format::record::{Flags, Header, Lengths, Record};
use crate::format::tags::Tags;
use crate::format::times::Phase;
use crate::protocol;
use crate::volume::Volume;

/// An entry of the cache, held where it lies.
///
/// It derefs to the value's bytes, in the map: no copy was made. As long as the hit lives, nobody overwrites
/// them, whatever is put, removed or evicted meanwhile; dropping it is the only release. Hold it for as long
/// as you read, not longer: what is held can't be evicted. Where a put that needed room found more than an eighth of a
/// stripe held, further hits of it are heap copies ([`Hit::is_copy`]), up to 64 MiB of them in a process.
///
/// A hit may be read and dropped by any thread. **After `fork`** the child must not read a hit that it
/// inherited (this panics); dropping it there has no effect.
pub struct Hit<'a> {
    volume: &'a Volume,
    held: Held<'a>,
    /// Key, metadata and value, and where they part.
    body: NonNull<u8>,
    key_bytes: u32,
    /// Length of the metadata, 16 bits, and whether the hit is stale. One word, so that the hit has no padding: the pieces
    /// that it would be moved in cost a tenth of a look-up.
    metadata_and_stale: u32,
    value_bytes: u32,
    fork: u32,
}

// SAFETY: `body` points to bytes that nobody writes while the hit lives: a pinned record's, or a heap
// copy's, which the hit owns.
unsafe impl Send for Hit<'_> {}
// SAFETY: as above.
unsafe impl Sync for Hit<'_> {}

/// Above the metadata's length: the hit is stale.
const STALE: u32 = 1 << 31;

/// What keeps a hit's bytes.
enum Held<'a> {
    Pinned { record: Record<'a>, pin: &'a AtomicU64 },
    Copied(Box<Copied>),
}

/// A record on the heap, counted against the process's budget while it lives.
pub(crate) struct Copied {
    pub(crate) header: Header,
    /// Key, metadata and value.
    pub(crate) body: Box<[u8]>,
}

/// What [`crate::Cache::lookup`] found.
#[derive(Debug)]
pub enum Lookup<'a> {
    /// A valid value.
    Fresh(Hit<'a>),
    /// A value whose time to live is over, or that a soft purge meant, and that may still be used.
    Stale(Hit<'a>),
    /// Somebody noted that there is nothing: [`Hit::reason`] says why.
    Negative(Hit<'a>),
    /// Nothing is known.
    Miss,
}

impl<'a> Lookup<'a> {
    pub(crate) fn of(hit: Option<Hit<'a>>) -> Self {
        match hit {
            None => Self::Miss,
            // What was noted to be absent is not taken for so when that is over.
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

    /// The value, if there is a valid one.
    pub fn fresh(self) -> Option<Hit<'a>> {
        match self {
            Self::Fresh(hit) => Some(hit),
            _ => None,
        }
    }
}

/// What is known of an entry beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// Names this version of the entry: grows with every put, within one key.
    pub serial: u64,
    /// When it was put.
    pub created: SystemTime,
    /// How long it stays valid; `None`: until it is evicted.
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
    /// A hit that may be sent anywhere and lives as long as it likes; it keeps the volume mapped.
    pub fn into_owned(self) -> OwnedHit {
        match self.volume.this.upgrade() {
            Some(volume) => OwnedHit::new(&volume, self),
            None => unreachable!("a hit borrows from a cache, which owns the volume"),
        }
    }

    /// # Safety
    /// `pin` holds a validated claim on `record`, which nobody else releases, and a body of these lengths lies inside the
    /// region.
    #[inline]
    pub(crate) unsafe fn pinned(
        volume: &'a Volume,
        record: Record<'a>,
        lengths: Lengths,
        phase: Phase,
        pin: &'a AtomicU64,
    ) -> Self {
        // SAFETY: the caller has checked that the body lies inside the region; a key has a byte at least.
        let body = unsafe { volume.region.address(record.body()) };
        Self::new(volume, Held::Pinned { record, pin }, phase, body, lengths)
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

    pub(crate) fn header(&self) -> Header {
        match &self.held {
            Held::Pinned { record, .. } => record.header(),
            Held::Copied(copied) => copied.header,
        }
    }

    /// Whether its bytes are those that were put.
    pub(crate) fn is_whole(&self) -> bool {
        hash::checksum(self.part(0, self.key_bytes + self.metadata_bytes() + self.value_bytes))
            == self.header().checksum
    }

    #[inline]
    fn part(&self, start: u32, bytes: u32) -> &[u8] {
        assert!(!self.is_inherited(), "a hit was inherited through fork; get it again");
        // SAFETY: the parts were inside the body when the hit was made, and what it holds keeps the body as
        // it is: the pin, or the copy.
        unsafe { std::slice::from_raw_parts(self.body.as_ptr().add(start as usize), bytes as usize) }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        self.part(0, self.key_bytes)
    }

    fn flags(&self) -> Flags {
        match &self.held {
            Held::Pinned { record, .. } => record.flags(),
            Held::Copied(copied) => copied.header.flags,
        }
    }

    /// The metadata with its tags' part, as it stands in the volume that the entry was put into.
    fn tagged_metadata(&self) -> &[u8] {
        let all = self.part(self.key_bytes, self.metadata_bytes());
        let copied = self.volume.front_of.is_some().then(|| Origin::read(all)).flatten();
        copied.map_or(all, |(_, rest)| rest)
    }

    /// What was put as metadata; empty if nothing was.
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

    /// The tags that it was put with ([`crate::PutOptions::tags`]).
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.read_tags().into_iter().flat_map(Tags::names)
    }

    /// Why there is nothing: the reason code of a negative entry ([`crate::Cache::put_negative`]); `None` for values.
    pub fn reason(&self) -> Option<u16> {
        let reason = self.value().first_chunk::<2>().map(|bytes| u16::from_le_bytes(*bytes));
        reason.filter(|_| self.flags().has(Flags::NEGATIVE))
    }

    /// Whether its time to live was over when it was looked up, or a soft purge meant it: only
    /// [`crate::Cache::lookup`] and [`crate::Cache::iter_all`] give such hits.
    pub fn is_stale(&self) -> bool {
        self.metadata_and_stale & STALE != 0
    }

    /// With the tags.
    #[inline]
    fn metadata_bytes(&self) -> u32 {
        self.metadata_and_stale & !STALE
    }

    /// The value; the hit also derefs to it.
    #[inline]
    pub fn value(&self) -> &[u8] {
        self.part(self.key_bytes + self.metadata_bytes(), self.value_bytes)
    }

    /// Names this version of the entry, for [`crate::Cache::replace_if`] and [`crate::Touch::if_serial`].
    pub fn serial(&self) -> u64 {
        self.header().serial
    }

    /// When the entry was put, by the wall clock as it stands now.
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

    /// How long the entry stays valid; `None`: it never expires. Zero once it has expired. A soft purge since the look-up
    /// isn't seen.
    pub fn ttl_left(&self) -> Option<Duration> {
        let fresh = if self.is_stale() { Some(0) } else { self.header().times.fresh_for() };
        fresh.map(|fresh| Duration::from_millis(fresh.saturating_sub(self.age_ms())))
    }

    /// How long the entry may be used, fresh or stale ([`crate::PutOptions::stale`]); `None`: until it is evicted.
    pub fn usable_left(&self) -> Option<Duration> {
        let usable = self.header().times.usable_for();
        usable.map(|usable| Duration::from_millis(usable.saturating_sub(self.age_ms())))
    }

    /// Whether the bytes are a heap copy: too much of the cache is held, or this process can't hold bytes
    /// in place (read-only, or more threads than the volume has slots).
    pub fn is_copy(&self) -> bool {
        matches!(self.held, Held::Copied(_))
    }

    /// Whether it was held by the process that this one was forked from: then it must not be read here.
    #[inline]
    pub fn is_inherited(&self) -> bool {
        self.fork != fork::generation()
    }

    /// Whether what was read of the hit until now is what was put. False once bytes of the volume were lost
    /// ([`crate::Options::survive_sigbus`]): any of the hit's may read as zeros since. So it is asked behind the reads. A
    /// copy stays intact.
    #[inline]
    pub fn is_intact(&self) -> bool {
        self.is_copy() || !self.volume.has_failed()
    }

    /// The same, as an error.
    ///
    /// # Errors
    /// [`Failed`](crate::Error::Failed), unless it is intact.
    #[inline]
    pub fn check_intact(&self) -> Result<()> {
        if self.is_copy() { Ok(()) } else { self.volume.check_intact() }
    }

    /// Where the bytes lie in the region, and how many they are; `None` for a copy.
    pub(crate) fn span(&self) -> Option<(usize, usize)> {
        let Held::Pinned { record, .. } = &self.held else { return None };
        Some((record.body(), self.key_bytes as usize + self.metadata_bytes() as usize + self.value_bytes as usize))
    }

    /// Where the value lies in the volume's file ([`crate::Cache::path`]), for who reads it by a descriptor of his own. `None`
    /// for a copy, and where there is no such file: a volume without a name, or a tier's.
    ///
    /// The bytes are the value's only while the hit lives. **`sendfile` and `splice` return before they are read**: the hit must
    /// live until the other side has received them, which a socket doesn't tell.
    pub fn file_range(&self) -> Option<Range<u64>> {
        let (start, bytes) = self.span().filter(|_| self.volume.front_of.is_none())?;
        self.volume.membership.path()?;
        let end = (start + bytes) as u64;
        Some(end - u64::from(self.value_bytes)..end)
    }

    pub(crate) fn volume(&self) -> &Volume {
        self.volume
    }

    /// All but the bytes.
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
            Held::Pinned { pin, .. } => {
                // In a forked child the pin is the parent's.
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

/// Fork generation (a child must not share its parent's pins) and what the pin holds.
pub(crate) type SharedKey = (u32, u64);

/// A pin that several owned hits of one entry share.
pub(crate) struct SharedPin {
    volume: Arc<Volume>,
    /// Its lifetime is that of `volume`, which this struct keeps; it is dropped first.
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

/// A hit without a lifetime: it keeps the volume mapped, may be sent anywhere and dropped by any thread.
///
/// All owned hits of one entry in a process share one pin. `AsRef<[u8]>` gives the value, so that
/// `bytes::Bytes::from_owner` takes it.
#[derive(Debug, Clone)]
pub struct OwnedHit {
    shared: Arc<SharedPin>,
}

impl OwnedHit {
    pub(crate) fn new(volume: &Arc<Volume>, hit: Hit<'_>) -> Self {
        debug_assert!(std::ptr::eq(hit.volume, Arc::as_ptr(volume)));
        let key = match &hit.held {
            Held::Pinned { pin, .. } => Some((hit.fork, pin.load(Relaxed))),
            Held::Copied(_) => None,
        };
        // SAFETY: the hit borrows from the volume, which `SharedPin` keeps alive for longer than the hit.
        let hit: Hit<'static> = unsafe { std::mem::transmute::<Hit<'_>, Hit<'static>>(hit) };
        let mut shared = SharedPin { volume: Arc::clone(volume), hit: std::mem::ManuallyDrop::new(hit), key };
        let Some(key) = key else { return Self { shared: Arc::new(shared) } };
        // The gate, so that no child is forked while the map is locked.
        let gate = fork::gate();
        let mut pins = volume.shared_pins.lock().unwrap_or_else(PoisonError::into_inner);
        // While a pin on this position is held, no other record can come to stand there.
        if let Some(known) = pins.get(&key).and_then(Weak::upgrade) {
            drop((pins, gate));
            // Its pin isn't needed; the map knows the other one by this key.
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
