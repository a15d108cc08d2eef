//! [`Cache`]: everything that a user calls.

use std::path::Path;
use std::sync::Arc;

use crate::claim::Claim;
use crate::error::Result;
use crate::format::hash::Place;
use crate::hit::{Hit, Info, Lookup};
use crate::iter::Iter;
use crate::options::Options;
use crate::purge::{self, Purge};
use crate::put::{Change, Counter, PutOptions, Touch, Updated};
use crate::read::{self, Use, Wanted};
use crate::stats::{self, Stats};
use crate::tier::Tier;
use crate::verify::{self, Report};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// So many keys are looked up together.
const PREFETCHED: usize = 16;

/// An open volume: a cache that every process on the machine can share.
///
/// Cheap to clone, and all clones are one attachment. Any thread may use it.
///
/// Dropping the last clone (and the last [`crate::OwnedHit`]) leaves the volume. The last process to leave writes it to
/// storage, which may take seconds, and marks it clean: only then do its entries survive a reboot. A process that ends by
/// `exit`, or keeps its cache in a `static`, leaves without that.
///
/// ```
/// use eyewall::Options;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pages");
/// let cache = Options::new().size(8 << 20).open(&path)?;
/// cache.put("/", "<h1>Hello</h1>")?;
///
/// // In this process or in any other:
/// let same = eyewall::Cache::open(&path)?;
/// let hit = same.get("/")?.expect("just put");
/// assert_eq!(&*hit, b"<h1>Hello</h1>"); // in the map: nothing was copied
/// assert!(same.get("/absent")?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cache {
    volume: Arc<Volume>,
    tier: Option<Arc<Tier>>,
}

impl Cache {
    /// Opens the volume at `path`, or creates one with the defaults of [`Options`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn from_volume(volume: Arc<Volume>, tier: Option<Arc<Tier>>) -> Self {
        Self { volume, tier }
    }

    pub(crate) fn volume(&self) -> &Volume {
        &self.volume
    }

    /// The valid entry of `key`, held in place; `None` on a miss. Takes no lock, makes no system call (but
    /// for a thread's first call) and copies nothing.
    ///
    /// # Errors
    /// [`KeyEmpty`](crate::Error::KeyEmpty), [`KeyTooLong`](crate::Error::KeyTooLong). For readers that can't
    /// pin, [`Busy`](crate::Error::Busy) when writers keep changing the entry.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        write::check_key(&self.volume, key)?;
        self.look_up(&self.volume.place(key), key, Wanted::Fresh)
    }

    /// In the tier first, where there is one.
    #[inline]
    fn look_up(&self, place: &Place, key: &[u8], wanted: Wanted) -> Result<Option<Hit<'_>>> {
        match &self.tier {
            None => read::get_at(&self.volume, place, key, Use::Counts, wanted),
            Some(tier) => tier.get(&self.volume, place, key, wanted),
        }
    }

    /// As [`Cache::get`], but leaves no trace: neither in the entry's frequency nor in the counters.
    pub fn peek(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        write::check_key(&self.volume, key)?;
        read::get(&self.volume, key, Use::Peeks, Wanted::Fresh)
    }

    /// Copies the value into `value`, whose old content is replaced on a hit and kept on a miss. For callers
    /// that would hold a hit for long.
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<Option<Info>> {
        let Some(hit) = self.get(key)? else { return Ok(None) };
        value.clear();
        value.extend_from_slice(&hit);
        Ok(Some(hit.info()))
    }

    /// Whether there is a valid entry of `key`. Does not count as use.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.peek(key)?.is_some())
    }

    /// Stores `value` under `key`, in place of any former entry; returns the entry's serial. Whatever must
    /// go to make room is evicted now.
    ///
    /// # Errors
    /// [`EntryTooLarge`](crate::Error::EntryTooLarge) and the key's errors: nothing was changed.
    /// [`Pinned`](crate::Error::Pinned): readers hold too much; nothing was evicted.
    /// [`Busy`](crate::Error::Busy): a stopped process held the stripe for longer than the lock deadline.
    /// [`ReadOnly`](crate::Error::ReadOnly).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<u64> {
        self.put_with(key, value, &PutOptions::new())
    }

    /// As [`Cache::put`], with a time to live and metadata.
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<u64> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let stored = self.put_if(key, value, options, Condition::Always)?;
        Ok(stored.unwrap_or_default())
    }

    /// Stores a draft; `None` where the condition didn't hold. What is purged while it is stored counts as stored before.
    fn put_if(
        &self,
        key: &[u8],
        value: &[u8],
        options: &PutOptions<'_>,
        condition: Condition<'_>,
    ) -> Result<Option<u64>> {
        let draft = Draft::new(&self.volume, key, value, options)?;
        Ok(match write::put(&self.volume, &draft, condition)? {
            Outcome::Stored(serial) | Outcome::Superseded(serial) => Some(serial),
            Outcome::Unmet => None,
        })
    }

    /// Remembers that there is nothing under `key`, and why, for as long as `options` say: a few bytes that
    /// [`Cache::lookup`] gives as [`Lookup::Negative`], and that [`Cache::get`] misses. `reason` means what the caller wants
    /// it to mean. Returns the entry's serial.
    ///
    /// # Errors
    /// Those of [`Cache::put`].
    pub fn put_negative(&self, key: impl AsRef<[u8]>, reason: u16, options: &PutOptions<'_>) -> Result<u64> {
        let value = reason.to_le_bytes();
        let draft = Draft::new(&self.volume, key.as_ref(), &value, options)?.negative();
        Ok(match write::put(&self.volume, &draft, Condition::Always)? {
            Outcome::Stored(serial) | Outcome::Superseded(serial) => serial,
            Outcome::Unmet => unreachable!("nothing was asked of what is there"),
        })
    }

    /// Everything that is known about `key`: a valid value, a stale one that may still be used, or why there is nothing.
    /// Stale and negative entries count as hits here.
    ///
    /// ```
    /// use std::time::Duration;
    /// use eyewall::{Lookup, Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put_negative("/gone", 404, &PutOptions::new().ttl(Duration::from_secs(10)))?;
    /// match cache.lookup("/gone")? {
    ///     Lookup::Fresh(page) => println!("{} bytes", page.len()),
    ///     Lookup::Stale(page) => println!("{} bytes, and ask the origin again", page.len()),
    ///     Lookup::Negative(hit) => assert_eq!(hit.reason(), Some(404)),
    ///     Lookup::Miss => unreachable!(),
    /// }
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn lookup(&self, key: impl AsRef<[u8]>) -> Result<Lookup<'_>> {
        let key = key.as_ref();
        write::check_key(&self.volume, key)?;
        Ok(Lookup::of(self.look_up(&self.volume.place(key), key, Wanted::Any)?))
    }

    /// Stores `value` only if there is no valid entry of `key`; `None`: there was one.
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<Option<u64>> {
        self.put_if(key.as_ref(), value.as_ref(), options, Condition::Absent)
    }

    /// Stores `value` only if the entry of `key` still has this `serial`; `None`: it has another, has expired or is gone.
    pub fn replace_if(
        &self,
        key: impl AsRef<[u8]>,
        serial: u64,
        value: impl AsRef<[u8]>,
        options: &PutOptions<'_>,
    ) -> Result<Option<u64>> {
        self.put_if(key.as_ref(), value.as_ref(), options, Condition::Serial(serial))
    }

    /// Reads, changes and writes the entry of `key`, one updater at a time over all processes.
    ///
    /// `change` gets the present entry and runs exactly once, outside every lock: it may take its time, use
    /// the cache, or panic. Other updates of the key wait for it, up to the lock deadline; if this process
    /// dies, they go on. Plain puts and removes don't wait; see [`Updated::Superseded`].
    ///
    /// # Errors
    /// Those of [`Cache::put_with`]. [`Busy`](crate::Error::Busy) when another update of the key, or updates of many other
    /// keys, take longer than the lock deadline; so does an update of the same key inside its own closure.
    ///
    /// ```
    /// use eyewall::{Change, Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// for _ in 0..3 {
    ///     cache.update("visits", &PutOptions::new(), |entry| {
    ///         let count = entry.map_or(0, |hit| u64::from_le_bytes(hit[..].try_into().unwrap()));
    ///         Change::Put((count + 1).to_le_bytes().to_vec())
    ///     })?;
    /// }
    /// assert_eq!(&*cache.get("visits")?.unwrap(), 3_u64.to_le_bytes());
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    pub fn update<F>(&self, key: impl AsRef<[u8]>, options: &PutOptions<'_>, change: F) -> Result<Updated>
    where
        F: FnOnce(Option<&Hit<'_>>) -> Change,
    {
        let (key, volume) = (key.as_ref(), self.volume());
        write::check_key(volume, key)?;
        volume.check_writable()?;
        let claim = Claim::acquire(volume, &volume.place(key))?;
        let epoch = volume.purges().epoch() as u32;
        let mut entry = read::get(volume, key, Use::Counts, Wanted::Fresh)?;
        while claim.renew() {
            entry = read::get(volume, key, Use::Peeks, Wanted::Fresh)?;
        }
        let change = change(entry.as_ref());
        drop(entry);
        Ok(match change {
            Change::Keep => Updated::Kept,
            Change::Put(value) => {
                let draft = Draft::new(volume, key, &value, options)?.begun_in(epoch);
                match write::put(volume, &draft, Condition::Claimed(&claim))? {
                    Outcome::Stored(serial) => Updated::Stored(serial),
                    Outcome::Superseded(_) | Outcome::Unmet => Updated::Superseded,
                }
            }
            Change::Remove => match write::remove(volume, key, Some(&claim))? {
                Some(_) => Updated::Removed,
                None => Updated::Superseded,
            },
        })
    }

    /// Adds `by` to the counter of `key`, in one step over all processes; returns what it is then. A counter is an entry whose
    /// value is eight bytes, an `i64` in little-endian order. An absent one is created.
    ///
    /// # Errors
    /// [`NotACounter`](crate::Error::NotACounter): nothing was changed. Those of [`Cache::put_with`].
    ///
    /// ```
    /// use eyewall::{Counter, Options};
    ///
    /// let cache = Options::new().heap()?;
    /// let stock = Counter::new().start(10).bounds(0, 10);
    /// assert_eq!(cache.increment("stock", -3, &stock)?, 7);
    /// assert_eq!(cache.increment("stock", -30, &stock)?, 0);
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64, counter: &Counter<'_>) -> Result<i64> {
        let key = key.as_ref();
        write::check_key(&self.volume, key)?;
        write::increment(&self.volume, key, by, counter)
    }

    /// Gives the entry of `key`, fresh or stale, new times and metadata; its value, age and tags stay. False: there is none.
    ///
    /// Later times are stored in place. Earlier ones and metadata write the entry anew, inside the volume.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`].
    pub fn touch(&self, key: impl AsRef<[u8]>, touch: &Touch<'_>) -> Result<bool> {
        write::touch(&self.volume, key.as_ref(), touch)
    }

    /// Looks many keys up at once: as [`Cache::get`] for each, in this order, but their cache lines are asked for together.
    /// Of one thread's hits seven at a time are held in place; the others are copies.
    ///
    /// # Errors
    /// Those of [`Cache::get`], for the first key that has one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Hit<'_>>>> {
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            write::check_key(&self.volume, key.as_ref())?;
            places.push(self.volume.place(key.as_ref()));
        }
        let mut found = Vec::with_capacity(keys.len());
        for (number, key) in keys.iter().enumerate() {
            // Far enough ahead for memory to answer, near enough for the cache to hold it.
            if number % PREFETCHED == 0 {
                for place in places[number..].iter().take(PREFETCHED) {
                    self.volume.prefetch_buckets(place);
                    self.tier.iter().for_each(|tier| tier.prefetch(place));
                }
            }
            found.push(self.look_up(&places[number], key.as_ref(), Wanted::Fresh)?);
        }
        Ok(found)
    }

    /// Stores many entries, each as [`Cache::put_with`] does; returns what became of each, in this order. One that fails
    /// doesn't keep the others from being stored.
    pub fn put_many<K, V>(&self, entries: &[(K, V)], options: &PutOptions<'_>) -> Vec<Result<u64>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        entries.iter().map(|(key, value)| self.put_with(key, value, options)).collect()
    }

    /// Purges all entries that carry `tag` ([`PutOptions::tags`]), in the time of a few stores, however many there are.
    ///
    /// What is being put or filled meanwhile is purged, too, if the work on it began before. Their bytes are given back as
    /// puts go on, or by [`Cache::sweep`].
    ///
    /// The volume remembers some thousands of purged tags (seven for each 64 KiB of its size, in groups of seven). Beyond
    /// that it purges too much, never too little: see [`Stats::purge_overflows`].
    ///
    /// # Errors
    /// [`TagLength`](crate::Error::TagLength), [`ReadOnly`](crate::Error::ReadOnly), [`Busy`](crate::Error::Busy),
    /// [`Io`](crate::Error::Io): nothing was purged.
    ///
    /// ```
    /// use eyewall::{Options, Purge, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put_with("/shop/7", "<h1>Teapot</h1>", &PutOptions::new().tags(&["product:7", "shop"]))?;
    /// cache.purge_tag("product:7", Purge::Hard)?;
    /// assert!(cache.get("/shop/7")?.is_none());
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    pub fn purge_tag(&self, tag: &str, kind: Purge) -> Result<()> {
        purge::purge_tag(&self.volume, tag, kind)
    }

    /// Purges all entries whose key begins with `prefix`; the empty prefix means all of them. As [`Cache::purge_tag`], but
    /// at most 64 prefixes are remembered at a time: a further one purges whatever is older than the oldest of them, too.
    /// [`Cache::sweep`] lets them be forgotten.
    ///
    /// # Errors
    /// [`KeyTooLong`](crate::Error::KeyTooLong), and those of [`Cache::purge_tag`].
    pub fn purge_prefix(&self, prefix: impl AsRef<[u8]>, kind: Purge) -> Result<()> {
        purge::purge_prefix(&self.volume, prefix.as_ref(), kind)
    }

    /// Purges everything, in the time of a few stores.
    ///
    /// # Errors
    /// Those of [`Cache::purge_tag`].
    pub fn purge_all(&self, kind: Purge) -> Result<()> {
        purge::purge_all(&self.volume, kind)
    }

    /// Drops all entries that are purged or have lived their time, lets the purges be forgotten, and brings the volume to
    /// storage if there were any ([`Cache::sync`]). Returns how many entries were dropped.
    ///
    /// Nobody needs to call it: each put sweeps a little. For a background thread, so that memory comes back sooner; it may
    /// take seconds, and holds a stripe's lock for less than a millisecond at a time.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly), [`Busy`](crate::Error::Busy), [`Io`](crate::Error::Io).
    pub fn sweep(&self) -> Result<u64> {
        purge::sweep(&self.volume)
    }

    /// Brings all that was stored and purged before this call to storage, and waits for it.
    ///
    /// # Errors
    /// As for [`Cache::sweep`].
    pub fn sync(&self) -> Result<()> {
        purge::sync(&self.volume)
    }

    /// Removes the entry of `key`. True: there was a valid one.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(write::remove(&self.volume, key.as_ref(), None)?.unwrap_or_default())
    }

    /// Removes all entries, one stripe after the other; returns how many. Puts meanwhile may survive it.
    pub fn clear(&self) -> Result<u64> {
        write::clear(&self.volume)
    }

    /// All valid entries, in no order; each is held while you look at it. Does not count as use. Entries
    /// that are put or evicted meanwhile may or may not be seen; one that stays is seen exactly once.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// As [`Cache::iter`], with stale and negative entries.
    pub fn iter_all(&self) -> Iter<'_> {
        Iter::all(self)
    }

    /// Numbers about the volume. Looks at the whole index, one stripe after the other.
    pub fn stats(&self) -> Result<Stats> {
        let tier = self.tier.as_ref().map(|tier| stats::collect_tier(&tier.volume)).transpose()?;
        Ok(Stats { tier, ..stats::collect(&self.volume)? })
    }

    /// Walks the whole volume under its locks, one stripe at a time, and reports what contradicts the
    /// format. Writers wait meanwhile; readers don't.
    pub fn verify(&self) -> Result<Report> {
        verify::verify(&self.volume)
    }

    /// The volume's file; `None` for one without a name.
    pub fn path(&self) -> Option<&Path> {
        self.volume.membership.path()
    }

    /// The file of the tier ([`Options::tier`]), where there is one.
    pub fn tier_path(&self) -> Option<&Path> {
        self.tier.as_ref()?.volume.membership.path()
    }

    /// Bytes of the volume, all overhead included: the hard cap.
    pub fn size(&self) -> u64 {
        self.volume.layout.size
    }

    /// The largest entry (header, key, metadata and value) that the volume accepts.
    pub fn entry_bytes_max(&self) -> u64 {
        self.volume.layout.entry_bytes_max
    }

    /// Whether it was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.volume.read_only
    }

    /// Maps every page now, so that no later read faults. Reads the file if it isn't in memory.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io), on kernels before 5.14 among others.
    pub fn populate(&self) -> Result<()> {
        let path = self.path().unwrap_or_else(|| Path::new("the volume"));
        self.volume.region.populate().map_err(|error| crate::Error::io("populating the map of", path, error))
    }

    /// Why the volume's size is no promise on its file system, if it isn't: writing to the map may then end
    /// in SIGBUS when the disk is full.
    pub fn storage_warning(&self) -> Option<&'static str> {
        self.volume.membership.door()?.allocation_warning()
    }
}

impl<'a> IntoIterator for &'a Cache {
    type Item = Hit<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
