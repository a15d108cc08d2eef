//! [`Cache`]: all operations that a user calls.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::fill::SecondLevel;
use crate::format::superblock::Attachment;
use crate::hit::{Hit, Info, Lookup};
use crate::iter::Iter;
use crate::options::Options;
use crate::purge::{self, Epoch};
use crate::put::{Change, Counter, PutOptions, Touch, Updated};
use crate::read::{self, Use, Wanted};
use crate::resize::{self, Resized};
use crate::stats::{self, FoundTier, Stats, Written};
use crate::tier::{self, Tier, Tiers};
use crate::verify::{self, Check, Report};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// How many keys are prefetched together.
const PREFETCHED: usize = 16;

/// An open volume: a cache that every process on the machine can share.
///
/// A `Cache` is cheap to clone; all clones are one attachment. Any thread may use it.
///
/// Dropping the last clone (and the last [`crate::OwnedHit`]) leaves the volume. The last process to leave writes the
/// volume to storage, which may take seconds, and marks it clean. All entries then survive a reboot. A process that
/// ends by `exit`, or keeps its cache in a `static`, leaves without this step; then only the entries that had reached
/// storage survive.
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
    /// Purges don't go into the outbox.
    keeps_purges: bool,
    second_level: Option<Arc<dyn SecondLevel>>,
}

impl Cache {
    /// Opens the volume at `path`, or creates one with the defaults of [`Options`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn from_volume(volume: Arc<Volume>, tiers: Option<Arc<Tiers>>) -> Self {
        Self { volume, tiers, keeps_purges: false, second_level: None }
    }

    pub(crate) fn keeping_purges(&self) -> Self {
        Self { keeps_purges: true, ..self.clone() }
    }

    pub(crate) fn beside(&self, second_level: Arc<dyn SecondLevel>) -> Self {
        Self { second_level: Some(second_level), ..self.clone() }
    }

    pub(crate) fn second_level(&self) -> Option<&dyn SecondLevel> {
        self.second_level.as_deref()
    }

    pub(crate) fn keeps_purges(&self) -> bool {
        self.keeps_purges
    }

    /// The current volume, after all resizes that this process can follow.
    pub(crate) fn volume(&self) -> &Volume {
        self.volume.present().unwrap_or_else(|_| self.volume.latest_known())
    }

    /// The volume that was opened.
    pub(crate) fn own_volume(&self) -> &Volume {
        &self.volume
    }

    /// Returns the valid entry of `key`, held in place, or `None` on a miss.
    ///
    /// Takes no lock and copies nothing. It makes no system call, with two exceptions: a thread's first call, and, in
    /// volumes on a disk, about one call in 256. While the thread has to wait for storage, every call makes some.
    ///
    /// # Errors
    /// [`KeyEmpty`](crate::Error::KeyEmpty), [`KeyTooLong`](crate::Error::KeyTooLong). [`Busy`](crate::Error::Busy),
    /// only for readers that can't pin, when writers keep changing the entry. [`Failed`](crate::Error::Failed), with
    /// [`Options::survive_sigbus`]: every call may return it.
    #[inline]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        let otherwise = || self.looked_for(|volume| self.look_up(volume, key, Wanted::Fresh));
        if self.tiers.is_some() {
            return otherwise();
        }
        read::get_plain(&self.volume, key, Use::Counts, otherwise)
    }

    /// Asks the tier first, if there is one.
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

    /// Like [`Cache::get`], but leaves no trace in the entry's frequency or in the counters.
    pub fn peek(&self, key: impl AsRef<[u8]>) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        let otherwise = || self.looked_for(|volume| read::get_checked(volume, key, Use::Peeks, Wanted::Fresh));
        read::get_plain(&self.volume, key, Use::Peeks, otherwise)
    }

    /// Like [`Cache::get`], but only for an entry that `takes` accepts. If there is none, or `takes` refuses it, the
    /// look-up leaves no trace: neither a hit nor a miss is counted.
    ///
    /// For a fast path that answers only what can be used at once, with a full path behind it that looks the key up
    /// again. With a tier, an accepted entry is looked up twice.
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn get_if(&self, key: impl AsRef<[u8]>, takes: impl Fn(&Hit<'_>) -> bool) -> Result<Option<Hit<'_>>> {
        let key = key.as_ref();
        // Another put may have replaced the entry between the two look-ups.
        let otherwise = || match self.peek(key)?.filter(|hit| takes(hit)) {
            Some(_) => Ok(self.get(key)?.filter(|hit| takes(hit))),
            None => Ok(None),
        };
        if self.tiers.is_some() {
            return otherwise();
        }
        read::get_plain_if(&self.volume, key, &takes, otherwise)
    }

    /// Copies the value into `value`. A hit replaces its content, a miss keeps it, and after an error it is
    /// undefined. For callers that would otherwise hold a hit for long.
    pub fn get_into(&self, key: impl AsRef<[u8]>, value: &mut Vec<u8>) -> Result<Option<Info>> {
        let key = key.as_ref();
        loop {
            let Some(hit) = self.get(key)? else { return Ok(None) };
            value.clear();
            value.extend_from_slice(&hit);
            let info = self.vouched(|_| Ok(hit.info()))?;
            // Otherwise the hit came from a tier that has failed meanwhile; the next round doesn't ask it.
            if hit.is_intact() {
                return Ok(Some(info));
            }
        }
    }

    /// Stores `value` under `key` and replaces any former entry. Returns the new entry's serial. Evicts other entries
    /// at once if it needs their room.
    ///
    /// # Errors
    /// [`EntryTooLarge`](crate::Error::EntryTooLarge) and the errors about keys: nothing was changed.
    /// [`Pinned`](crate::Error::Pinned): readers hold too much; nothing was evicted. [`Busy`](crate::Error::Busy): a
    /// stopped process held the stripe for longer than the lock deadline. [`ReadOnly`](crate::Error::ReadOnly).
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<u64> {
        self.put_with(key, value, &PutOptions::new())
    }

    /// Like [`Cache::put`], with a time to live, metadata and tags.
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<u64> {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.put_if(key, value, options, Condition::Always).map(Option::unwrap_or_default)
    }

    /// Stores a draft, or returns `None` if the condition doesn't hold. A purge that comes while the draft is being
    /// stored counts as coming after it.
    fn put_if(&self, key: &[u8], value: &[u8], options: &PutOptions<'_>, condition: Condition) -> Result<Option<u64>> {
        self.vouched(|volume| {
            let draft = Draft::new(volume, key, value, options)?;
            Ok(match write::put(volume, &draft, condition)? {
                Outcome::Stored(serial) | Outcome::Superseded(serial) => Some(serial),
                Outcome::Unmet => None,
            })
        })
    }

    /// Notes for as long as `options` say that there is nothing under `key`, and why. The entry takes a few bytes.
    /// [`Cache::lookup`] returns it as [`Lookup::Negative`]; for [`Cache::get`] it is a miss. The caller chooses what
    /// `reason` means. Returns the entry's serial.
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

    /// Returns everything that is known about `key`: a valid value, a stale value that may still be used, or the
    /// reason why there is nothing. Stale and negative entries count as hits here.
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

    /// Stores `value` only if `key` has no valid entry. `None`: it has one, and nothing was changed.
    pub fn add(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<Option<u64>> {
        self.put_if(key.as_ref(), value.as_ref(), options, Condition::Absent)
    }

    /// Stores `value` only if the entry of `key` still has this `serial`. `None`: it has another serial, has expired
    /// or is gone.
    pub fn replace_if(
        &self,
        key: impl AsRef<[u8]>,
        serial: u64,
        value: impl AsRef<[u8]>,
        options: &PutOptions<'_>,
    ) -> Result<Option<u64>> {
        self.put_if(key.as_ref(), value.as_ref(), options, Condition::Serial(serial))
    }

    /// Reads, changes and writes the entry of `key`. Over all processes, one update of a key runs at a time.
    ///
    /// `change` receives the present entry. It runs exactly once and outside every lock, so it may take its time, use
    /// the cache, or panic. Other updates of the key wait for it, up to the lock deadline. If this process dies, they
    /// continue. Plain puts and removes don't wait; see [`Updated::Superseded`].
    ///
    /// # Errors
    /// Those of [`Cache::put_with`]. [`Busy`](crate::Error::Busy) if another update of the key, or updates of many
    /// other keys, take longer than the lock deadline. An update of the same key inside of `change` always gets it.
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

    /// Adds `by` to the counter of `key` and returns the new sum, as one atomic step over all processes. A counter is
    /// an entry whose value is an `i64` of eight bytes in little-endian order. An absent counter is created.
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

    /// Gives the entry of `key`, fresh or stale, new times and metadata. Its value, age and tags stay as they are.
    /// Returns false, and changes nothing, if there is no entry, or none with the serial that [`Touch::if_serial`]
    /// asks for.
    ///
    /// Later times are stored in place. Earlier times and new metadata write the entry again, inside the volume.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`].
    pub fn touch(&self, key: impl AsRef<[u8]>, touch: &Touch<'_>) -> Result<bool> {
        self.vouched(|volume| write::touch(volume, key.as_ref(), touch))
    }

    /// Looks many keys up at once. Does the same as [`Cache::get`] for each key, in this order, but fetches their
    /// cache lines together. A thread holds at most seven of these hits in place; the others are copies.
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
                // Far enough ahead that memory answers in time, and near enough that the lines are still in the CPU's
                // cache.
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

    /// Stores many entries, each as [`Cache::put_with`] does. Returns one result for each entry, in the same order.
    /// An entry that fails doesn't stop the others.
    pub fn put_many<K, V>(&self, entries: &[(K, V)], options: &PutOptions<'_>) -> Vec<Result<u64>>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        entries.iter().map(|(key, value)| self.put_with(key, value, options)).collect()
    }

    /// Returns the current moment, as purges count time. Every later purge, by any process, also covers an entry that
    /// is put with this epoch ([`PutOptions::begun_in`]). The call only reads memory.
    ///
    /// For callers that store answers of an origin. Take the epoch before asking the origin: if a purge comes before
    /// the answer, the outdated answer is not kept.
    ///
    /// ```
    /// use eyewall::{Options, Purge, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// let asked = cache.epoch()?;
    /// // ... a purge comes while the answer, already outdated, is on its way:
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

    /// How often this volume was opened after a power loss, or as a copy of a file. Entries that were put before may then be older than they
    /// were, and purges may be gone ([what survives](Cache)). So an entry that says how far something else was read is only right if this
    /// number is the same as when it was put.
    ///
    /// # Errors
    /// [`Failed`](crate::Error::Failed), [`Moved`](crate::Error::Moved).
    pub fn crashes(&self) -> Result<u64> {
        self.vouched(|volume| Ok(Attachment(&volume.region).crashes()))
    }

    /// Drops all purged and expired entries, and lets the volume forget the purges. If there were purges, also writes
    /// the volume to storage ([`Cache::sync`]). Returns how many entries were dropped.
    ///
    /// Nobody has to call it, since each put sweeps a little. A background thread may call it to get memory back
    /// sooner. It may take seconds, but holds a stripe's lock for less than a millisecond at a time.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly), [`Busy`](crate::Error::Busy), [`Io`](crate::Error::Io).
    pub fn sweep(&self) -> Result<u64> {
        self.sweep_while(|| true)
    }

    /// Writes to storage all that was stored, removed and purged before this call, and waits for it.
    ///
    /// Once the call has returned, power loss undoes none of these removals and purges, and takes none of these
    /// entries. It may take all or any part of what comes later. The engine never calls this on its own: call it
    /// regularly from a thread to bound the loss.
    ///
    /// # Errors
    /// Those of [`Cache::sweep`]. After [`Io`](crate::Error::Io), some of the data is not in storage. A later call
    /// that succeeds doesn't change that, since the kernel reports a page that it could not write only once.
    pub fn sync(&self) -> Result<()> {
        self.vouched(purge::sync)
    }

    /// Removes the entry of `key`. Returns true if there was a valid one.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.vouched(|volume| write::remove(volume, key.as_ref(), Condition::Always)).map(Option::unwrap_or_default)
    }

    /// Removes the entry of `key`, fresh or stale, if it still has this `serial`. Returns false if it has another,
    /// has expired or is gone.
    pub fn remove_if(&self, key: impl AsRef<[u8]>, serial: u64) -> Result<bool> {
        self.vouched(|volume| write::remove(volume, key.as_ref(), Condition::Serial(serial)))
            .map(|removed| removed.is_some())
    }

    /// Removes all entries, one stripe after the other, and returns how many. Entries that are put meanwhile may
    /// survive.
    pub fn clear(&self) -> Result<u64> {
        self.vouched(write::clear)
    }

    /// Iterates over all valid entries, in no order. Each entry is held while you look at it, and doesn't count as
    /// used.
    ///
    /// An entry that stays during the iteration is seen exactly once, or at most once if the index changes all the
    /// time. Entries that are put or evicted meanwhile may or may not be seen. The iteration ends early if the volume
    /// fails ([`Cache::is_failed`]).
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// Like [`Cache::iter`], but also gives stale and negative entries.
    pub fn iter_all(&self) -> Iter<'_> {
        Iter::all(self)
    }

    /// Returns numbers about the volume. Looks at the whole index, one stripe after the other.
    pub fn stats(&self) -> Result<Stats> {
        self.vouched(|volume| {
            let tier = self.tier_of(volume).map(Tier::stats).transpose()?.flatten();
            Ok(Stats { tier, ..stats::collect(volume)? })
        })
    }

    /// Returns how much all processes have put into the volume. Takes no lock and reads two words for each stripe, so
    /// a caller can ask before each put. The content of the volume has grown by at most the growth of these numbers.
    /// [`Cache::resize`] starts them at zero again.
    pub fn written(&self) -> Result<Written> {
        self.vouched(|volume| Ok(stats::written(volume)))
    }

    /// Gives the volume another size, entry-size hint or largest entry. What `shape` doesn't set stays as it is. Hot
    /// entries are kept before cold ones, as far as they fit. The open caches of all processes continue in the
    /// resized volume by themselves.
    ///
    /// The call holds all locks, copies the entries to a new file beside the old one, and writes that to storage.
    /// Until then there are two files. Readers continue; writers wait, or return [`Busy`](crate::Error::Busy) at
    /// their lock deadline. If the process dies halfway, either the old or the new volume remains. The counters of
    /// [`Stats`] start at zero again. Large puts, updates and purges under way are done in the new volume; an
    /// iteration under way ends early.
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
    /// The errors of [`Options::open`] about shape and room; [`Nameless`](crate::Error::Nameless),
    /// [`Busy`](crate::Error::Busy), [`ReadOnly`](crate::Error::ReadOnly), [`Io`](crate::Error::Io): the volume is as
    /// it was. [`Moved`](crate::Error::Moved), from this call and every later one, if this process can't follow.
    pub fn resize(&self, shape: &Options) -> Result<Resized> {
        self.vouched(|volume| resize::resize(volume, shape))
    }

    /// Checks the whole volume, one stripe at a time under its lock, and reports what contradicts the format. Writers
    /// wait meanwhile; readers don't.
    pub fn verify(&self) -> Result<Report> {
        self.vouched(|volume| verify::verify(volume, Check::new()))
    }

    /// The volume's file, with symbolic links resolved; `None` for a volume without a name.
    pub fn path(&self) -> Option<&Path> {
        self.volume().membership.path()
    }

    /// Looks in this folder ([`Options::tier_folder`]) for the tier that others use in front of this volume, whether
    /// or not this cache was opened with one. Only looks at the tier and doesn't join it. `None`: there is none, or
    /// the file of that name can't be trusted.
    ///
    /// # Errors
    /// Those of [`Options::open`] for the tier's file.
    pub fn tier_in(&self, folder: impl AsRef<Path>) -> Result<Option<FoundTier>> {
        self.vouched(|volume| tier::look(folder.as_ref(), volume))
    }

    /// The file of the tier ([`Options::tier`]), if there is one.
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

    /// Whether the cache was opened for reading only.
    pub fn is_read_only(&self) -> bool {
        self.volume().read_only
    }

    /// Maps every page now, so that no later read causes a page fault. Reads the file from storage where it isn't in
    /// memory.
    ///
    /// # Errors
    /// [`Io`](crate::Error::Io), for instance on kernels before 5.14.
    pub fn populate(&self) -> Result<()> {
        let path = self.path().unwrap_or_else(|| Path::new("the volume"));
        let populating = |error| crate::Error::io("populating the map of", path, error);
        self.vouched(|volume| {
            volume.region.populate().map_err(populating)?;
            volume.mapped.all_is_read(&volume.region);
            Ok(())
        })
    }

    /// Why the file system doesn't guarantee the volume's size; `None` if it does. Without the guarantee, writing to
    /// the map may raise SIGBUS when the disk is full.
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
