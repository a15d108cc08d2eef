//! [`Cache`]: everything that a user calls.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::hit::{Hit, Info, Lookup};
use crate::iter::Iter;
use crate::options::Options;
use crate::purge::{self, Epoch, Purge};
use crate::put::{Change, Counter, PutOptions, Touch, Updated};
use crate::read::{self, Use, Wanted};
use crate::resize::{self, Resized};
use crate::stats::{self, FoundTier, Stats, Written};
use crate::tier::{self, Tier, Tiers};
use crate::verify::{self, Check, Report};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// So many keys are looked up together.
const PREFETCHED: usize = 16;

/// An open volume: a cache that every process on the machine can share.
///
/// Cheap to clone, and all clones are one attachment. Any thread may use it.
///
/// Dropping the last clone (and the last [`crate::OwnedHit`]) leaves the volume. The last process to leave writes it to
/// storage, which may take seconds, and marks it clean: then all its entries survive a reboot. A process that ends by
/// `exit`, or keeps its cache in a `static`, leaves without that; what had reached storage survives then.
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
    tiers: Option<Arc<Tiers>>,
}

impl Cache {
    /// Opens the volume at `path`, or creates one with the defaults of [`Options`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn from_volume(volume: Arc<Volume>, tiers: Option<Arc<Tiers>>) -> Self {
        Self { volume, tiers }
    }

    /// The volume as it is now, after all resizes that this process can follow.
    pub(crate) fn volume(&self) -> &Volume {
        self.volume.present().unwrap_or(&self.volume)
    }

    /// The volume that was opened.
    pub(crate) fn own_volume(&self) -> &Volume {
        &self.volume
    }

    /// The valid entry of `key`, held in place; `None` on a miss. Takes no lock and copies nothing, and
    /// makes no system call, but for a thread's first call, and in volumes on a disk: one in some 256 calls, and some in each
    /// while the thread has to wait for storage.
    ///
    /// # Errors
    /// [`KeyEmpty`](crate::Error::KeyEmpty), [`KeyTooLong`](crate::Error::KeyTooLong). For readers that can't
    /// pin, [`Busy`](crate::Error::Busy) when writers keep changing the entry. [`Failed`](crate::Error::Failed), as from
    /// every call, where [`Options::survive_sigbus`] was asked for.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        let otherwise = || self.looked_for(|volume| self.look_up(volume, key, Wanted::Fresh));
        if self.tiers.is_some() {
            return otherwise();
        }
        read::get_plain(&self.volume, key, Use::Counts, otherwise)
    }

    /// In the tier first, where there is one.
    #[inline]
    fn look_up<'a>(&'a self, volume: &'a Volume, key: &[u8], wanted: Wanted) -> Result<Option<Hit<'a>>> {
        match self.tier_of(volume) {
            None => read::get_checked(volume, key, Use::Counts, wanted),
            Some(tier) => {
                write::check_key(volume, key)?;
                tier.get(volume, &volume.place(key), key, wanted)
            }
        }
    }

    #[inline]
    fn tier_of(&self, volume: &Volume) -> Option<&Tier> {
        self.tiers.as_ref()?.of(volume)
    }

    /// As [`Cache::get`], but leaves no trace: neither in the entry's frequency nor in the counters.
    pub fn peek(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        let otherwise = || self.looked_for(|volume| read::get_checked(volume, key, Use::Peeks, Wanted::Fresh));
        read::get_plain(&self.volume, key, Use::Peeks, otherwise)
    }

    /// As [`Cache::get`], of an entry that `takes` accepts; where there is none, or it is refused, the look-up leaves no trace.
    /// For a fast path to what can be used at once, with a full path behind it that looks again.
    ///
    /// Where there is a tier, an accepted entry is looked up twice.
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn get_if(&self, key: impl AsRef<[u8]>, takes: impl Fn(&Hit<'_>) -> bool) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        // It may be another entry by then.
        let otherwise = || match self.peek(key)?.filter(|hit| takes(hit)) {
            Some(_) => Ok(self.get(key)?.filter(|hit| takes(hit))),
            None => Ok(None),
        };
        if self.tiers.is_some() {
            return otherwise();
        }
        read::get_plain_if(&self.volume, key, &takes, otherwise)
    }

    /// Copies the value into `value`, whose old content is replaced on a hit and kept on a miss. For callers
    /// that would hold a hit for long. After an error the content is undefined.
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<Option<Info>> {
        let key = key.as_ref();
        loop {
            let Some(hit) = self.get(key)? else { return Ok(None) };
            value.clear();
            value.extend_from_slice(&hit);
            let info = self.vouched(|_| Ok(hit.info()))?;
            // Else it was of a tier, which has failed meanwhile and isn't asked again.
            if hit.is_intact() {
                return Ok(Some(info));
            }
        }
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
        self.put_if(key, value, options, Condition::Always).map(Option::unwrap_or_default)
    }

    /// Stores a draft; `None` where the condition didn't hold. What is purged while it is stored counts as stored before.
    fn put_if(&self, key: &[u8], value: &[u8], options: &PutOptions<'_>, condition: Condition) -> Result<Option<u64>> {
        self.vouched(|volume| {
            let draft = Draft::new(volume, key, value, options)?;
            Ok(match write::put(volume, &draft, condition)? {
                Outcome::Stored(serial) | Outcome::Superseded(serial) => Some(serial),
                Outcome::Unmet => None,
            })
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
        self.vouched(|volume| {
            let draft = Draft::new(volume, key.as_ref(), &value, options)?.negative();
            Ok(match write::put(volume, &draft, Condition::Always)? {
                Outcome::Stored(serial) | Outcome::Superseded(serial) => serial,
                Outcome::Unmet => unreachable!("nothing was asked of what is there"),
            })
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
        self.looked_for(|volume| self.look_up(volume, key, Wanted::Any)).map(Lookup::of)
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
        let claimed = self.claim(key)?;
        let change = change(claimed.entry());
        claimed.change(change, options)
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
        self.vouched(|volume| write::increment(volume, key, by, counter))
    }

    /// Gives the entry of `key`, fresh or stale, new times and metadata; its value, age and tags stay. False: there is none, or
    /// none of the serial that the touch is for ([`Touch::if_serial`]), and nothing was changed.
    ///
    /// Later times are stored in place. Earlier ones and metadata write the entry anew, inside the volume.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`].
    pub fn touch(&self, key: impl AsRef<[u8]>, touch: &Touch<'_>) -> Result<bool> {
        self.vouched(|volume| write::touch(volume, key.as_ref(), touch))
    }

    /// Looks many keys up at once: as [`Cache::get`] for each, in this order, but their cache lines are asked for together.
    /// Of one thread's hits seven at a time are held in place; the others are copies.
    ///
    /// # Errors
    /// Those of [`Cache::get`], for the first key that has one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Hit<'_>>>> {
        self.vouched(|volume| {
            let mut places = Vec::with_capacity(keys.len());
            for key in keys {
                write::check_key(volume, key.as_ref())?;
                places.push(volume.place(key.as_ref()));
            }
            let tier = self.tier_of(volume);
            let mut found = Vec::with_capacity(keys.len());
            for (number, key) in keys.iter().enumerate() {
                // Far enough ahead for memory to answer, near enough for the cache to hold it.
                if number % PREFETCHED == 0 {
                    for place in places[number..].iter().take(PREFETCHED) {
                        volume.prefetch_buckets(place);
                        if let Some(tier) = tier {
                            tier.prefetch(place);
                        }
                    }
                }
                let (place, key) = (&places[number], key.as_ref());
                found.push(match tier {
                    None => read::get_at(volume, place, key, Use::Counts, Wanted::Fresh)?,
                    Some(tier) => tier.get(volume, place, key, Wanted::Fresh)?,
                });
            }
            if found.iter().any(Option::is_none) {
                volume.check_present()?;
            }
            Ok(found)
        })
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
        self.vouched(|volume| purge::purge_tag(volume, tag, kind))
    }

    /// Purges all entries whose key begins with `prefix`; the empty prefix means all of them. As [`Cache::purge_tag`], but
    /// at most 64 prefixes are remembered at a time: a further one purges whatever is older than the oldest of them, too.
    /// [`Cache::sweep`] lets them be forgotten.
    ///
    /// # Errors
    /// [`KeyTooLong`](crate::Error::KeyTooLong), and those of [`Cache::purge_tag`].
    pub fn purge_prefix(&self, prefix: impl AsRef<[u8]>, kind: Purge) -> Result<()> {
        self.vouched(|volume| purge::purge_prefix(volume, prefix.as_ref(), kind))
    }

    /// Purges everything, in the time of a few stores.
    ///
    /// # Errors
    /// Those of [`Cache::purge_tag`].
    pub fn purge_all(&self, kind: Purge) -> Result<()> {
        self.vouched(|volume| purge::purge_all(volume, kind))
    }

    /// Now, as purges count: what is put with it later ([`PutOptions::begun_in`]) is meant by all purges that come from here on,
    /// whoever makes them. It is a look at memory.
    ///
    /// For whoever fetches what he stores from somewhere else: taken before the question, it keeps an answer of before a purge
    /// from being stored behind it.
    ///
    /// ```
    /// use eyewall::{Options, Purge, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// let asked = cache.epoch()?;
    /// // ... while the answer is on its way, it is wrong already:
    /// cache.purge_prefix("/shop/", Purge::Hard)?;
    /// cache.put_with("/shop/7", "<h1>Teapot</h1>", &PutOptions::new().begun_in(asked))?;
    /// assert!(cache.get("/shop/7")?.is_none());
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Failed`](crate::Error::Failed), [`Moved`](crate::Error::Moved).
    pub fn epoch(&self) -> Result<Epoch> {
        self.vouched(|volume| Ok(Epoch::now(volume)))
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
        self.vouched(purge::sweep)
    }

    /// Brings all that was stored, removed and purged before this call to storage, and waits for it.
    ///
    /// Once it has returned, power loss undoes none of these removals and purges, and takes none of these entries. What comes
    /// later may be lost, all of it or any part. Nobody calls it for you: a thread that does so now and then bounds the loss.
    ///
    /// # Errors
    /// As for [`Cache::sweep`]. After [`Io`](crate::Error::Io), some of it is not in storage, and a later call that succeeds
    /// doesn't change that: the kernel reports a page that it could not write once.
    pub fn sync(&self) -> Result<()> {
        self.vouched(purge::sync)
    }

    /// Removes the entry of `key`. True: there was a valid one.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.vouched(|volume| write::remove(volume, key.as_ref(), Condition::Always)).map(Option::unwrap_or_default)
    }

    /// Removes the entry of `key`, fresh or stale, if it still has this `serial`. False: it has another, has expired or is gone.
    pub fn remove_if(&self, key: impl AsRef<[u8]>, serial: u64) -> Result<bool> {
        self.vouched(|volume| write::remove(volume, key.as_ref(), Condition::Serial(serial)))
            .map(|removed| removed.is_some())
    }

    /// Removes all entries, one stripe after the other; returns how many. Puts meanwhile may survive it.
    pub fn clear(&self) -> Result<u64> {
        self.vouched(write::clear)
    }

    /// All valid entries, in no order; each is held while you look at it. Does not count as use. Entries
    /// that are put or evicted meanwhile may or may not be seen; one that stays is seen exactly once, or at most
    /// once where the index changes all the time. Ends early where the volume fails ([`Cache::is_failed`]).
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// As [`Cache::iter`], with stale and negative entries.
    pub fn iter_all(&self) -> Iter<'_> {
        Iter::all(self)
    }

    /// Numbers about the volume. Looks at the whole index, one stripe after the other.
    pub fn stats(&self) -> Result<Stats> {
        self.vouched(|volume| {
            let tier = self.tier_of(volume).map(Tier::stats).transpose()?.flatten();
            Ok(Stats { tier, ..stats::collect(volume)? })
        })
    }

    /// How much was put into the volume by all processes. Takes no lock and reads two words a stripe, so that it can be asked
    /// before each put: what the volume holds has grown by no more than this has. Begins anew with [`Cache::resize`].
    pub fn written(&self) -> Result<Written> {
        self.vouched(|volume| Ok(stats::written(volume)))
    }

    /// Gives the volume another size, entry-size hint or largest entry: what isn't set in `shape` stays as it is. Entries stay as
    /// far as they fit, the hot ones before the cold; open caches of all processes go on in the resized volume by themselves.
    ///
    /// The entries are copied to a new file beside the old one, under all locks, and brought to storage: until then there are
    /// two files, and writers wait (or return [`Busy`](crate::Error::Busy) at their lock deadline). Readers go on. A process
    /// that dies in the middle leaves the old volume or the new one. Counters of [`Stats`] begin anew. Large puts, updates and
    /// purges that are under way are done in the new volume; an iteration that is under way ends early.
    ///
    /// ```
    /// use eyewall::Options;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let cache = Options::new().size(1 << 20).open(folder.path().join("pages"))?;
    /// cache.put("/", "<h1>Hello</h1>")?;
    /// cache.resize(&Options::new().size(4 << 20))?;
    /// assert_eq!(cache.size(), 4 << 20);
    /// assert!(cache.contains("/")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Options::open`] about shape and room; [`Nameless`](crate::Error::Nameless),
    /// [`Busy`](crate::Error::Busy), [`ReadOnly`](crate::Error::ReadOnly), [`Io`](crate::Error::Io): the volume is as it was.
    /// [`Moved`](crate::Error::Moved), here and from every call, where this process can't follow.
    pub fn resize(&self, shape: &Options) -> Result<Resized> {
        self.vouched(|volume| resize::resize(volume, shape))
    }

    /// Walks the whole volume under its locks, one stripe at a time, and reports what contradicts the
    /// format. Writers wait meanwhile; readers don't.
    pub fn verify(&self) -> Result<Report> {
        self.vouched(|volume| verify::verify(volume, Check::new()))
    }

    /// The volume's file, not a link that leads to it; `None` for one without a name.
    pub fn path(&self) -> Option<&Path> {
        self.volume().membership.path()
    }

    /// The tier that others use before this volume, in this folder ([`Options::tier_folder`]), whether or not this cache was
    /// opened with one. It is only looked at, not joined; `None`: there is none, or what has its name can't be trusted.
    ///
    /// # Errors
    /// Those of [`Options::open`] for the tier's file.
    pub fn tier_in(&self, folder: impl AsRef<Path>) -> Result<Option<FoundTier>> {
        self.vouched(|volume| tier::look(folder.as_ref(), volume))
    }

    /// The file of the tier ([`Options::tier`]), where there is one.
    pub fn tier_path(&self) -> Option<&Path> {
        self.tier_of(self.volume())?.volume.membership.path()
    }

    /// Bytes of the volume, all overhead included: the hard cap.
    pub fn size(&self) -> u64 {
        self.volume().layout.size
    }

    /// The largest entry (header, key, metadata and value) that the volume accepts.
    pub fn entry_bytes_max(&self) -> u64 {
        self.volume().layout.entry_bytes_max
    }

    /// Whether it was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.volume().read_only
    }

    /// Maps every page now, so that no later read faults. Reads the file if it isn't in memory.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io), on kernels before 5.14 among others.
    pub fn populate(&self) -> Result<()> {
        let path = self.path().unwrap_or_else(|| Path::new("the volume"));
        let populating = |error| crate::Error::io("populating the map of", path, error);
        self.vouched(|volume| {
            volume.region.populate().map_err(populating)?;
            volume.mapped.all_is_read(&volume.region);
            Ok(())
        })
    }

    /// Why the volume's size is no promise on its file system, if it isn't: writing to the map may then end
    /// in SIGBUS when the disk is full.
    pub fn storage_warning(&self) -> Option<&'static str> {
        self.volume().membership.door()?.allocation_warning()
    }
}

impl<'a> IntoIterator for &'a Cache {
    type Item = Hit<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}
