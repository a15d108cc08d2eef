//! Reading, changing and writing an entry under its key's claim.

use std::fmt;

use crate::cache::Cache;
use crate::claim::Claim;
use crate::error::Result;
use crate::hit::Hit;
use crate::put::{Change, PutOptions, Updated};
use crate::read::{self, Use, Wanted};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// The right to change one key, which lasts as long as this value lives ([`Cache::claim`]). Dropping it leaves the
/// entry as it is, and so does the death of its process.
pub struct Claimed<'a> {
    cache: &'a Cache,
    volume: &'a Volume,
    key: Box<[u8]>,
    claim: Claim<'a>,
    entry: Option<Hit<'a>>,
    /// The serial of the entry.
    serial: Option<u64>,
    /// The purge epoch in which the entry was read.
    epoch: u32,
}

impl<'a> Claimed<'a> {
    fn begin(cache: &'a Cache, volume: &'a Volume, key: &[u8]) -> Result<Self> {
        write::check_key(volume, key)?;
        volume.check_writable()?;
        let claim = Claim::acquire(volume, &volume.place(key))?;
        let epoch = volume.purges().epoch() as u32;
        let mut entry = read::get(volume, key, Use::Counts, Wanted::Fresh)?;
        while claim.renew() {
            entry = read::get(volume, key, Use::Peeks, Wanted::Fresh)?;
        }
        volume.check_intact()?;
        // In a volume that was resized meanwhile, absence means nothing.
        volume.check_present()?;
        let serial = entry.as_ref().map(Hit::serial);
        Ok(Self { cache, volume, key: key.into(), claim, entry, serial, epoch })
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The valid entry at the time of the claim.
    pub fn entry(&self) -> Option<&Hit<'a>> {
        self.entry.as_ref()
    }

    /// Takes the entry, to hold it for longer than the claim.
    pub fn take_entry(&mut self) -> Option<Hit<'a>> {
        self.entry.take()
    }

    /// Stores `value`, and releases the claim.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`].
    pub fn put(mut self, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<Updated> {
        // Released, so that its own room can be used.
        self.entry = None;
        self.cache.vouched(|volume| {
            let Some((condition, _again)) = self.condition(volume)? else { return Ok(Updated::Superseded) };
            let draft = Draft::new(volume, &self.key, value.as_ref(), options)?.begun_in(self.epoch);
            Ok(match write::put(volume, &draft, condition)? {
                Outcome::Stored(serial) => Updated::Stored(serial),
                Outcome::Superseded(_) | Outcome::Unmet => Updated::Superseded,
            })
        })
    }

    /// Removes the entry, and releases the claim.
    ///
    /// # Errors
    /// Those of [`Cache::remove`].
    pub fn remove(mut self) -> Result<Updated> {
        self.entry = None;
        self.cache.vouched(|volume| {
            let Some((condition, _again)) = self.condition(volume)? else { return Ok(Updated::Superseded) };
            let removed = write::remove(volume, &self.key, condition)?;
            Ok(if removed.is_some() { Updated::Removed } else { Updated::Superseded })
        })
    }

    /// Does what a closure has decided.
    pub(crate) fn change(self, change: Change, options: &PutOptions<'_>) -> Result<Updated> {
        match change {
            Change::Keep => self.cache.vouched(|_| Ok(Updated::Kept)),
            Change::Put(value) => self.put(value, options),
            Change::Remove => self.remove(),
        }
    }

    /// The condition of the change. `None` if this is a forked child, since the change belongs to its parent.
    ///
    /// In a volume that has replaced the claim's own, the key is claimed again, so that nobody else's claim there is
    /// voided. Whether anybody interfered is seen from the entry.
    fn condition<'v>(&self, volume: &'v Volume) -> Result<Option<(Condition, Option<Claim<'v>>)>> {
        if !self.claim.line().is_own() {
            return Ok(None);
        }
        if std::ptr::eq(volume, self.volume) {
            return Ok(Some((Condition::Claimed(self.claim.line()), None)));
        }
        let again = Claim::acquire(volume, &volume.place(&self.key))?;
        Ok(Some((self.serial.map_or(Condition::Absent, Condition::Serial), Some(again))))
    }
}

impl fmt::Debug for Claimed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claimed").field("key", &self.key).field("entry", &self.entry).finish_non_exhaustive()
    }
}

impl Cache {
    /// Claims `key`, to read its entry and change it. Over all processes, there is one claim on a key at a time. For
    /// callers that can't pass a closure to [`Cache::update`].
    ///
    /// While the [`Claimed`] lives, other claims, updates, writers and fills of the key wait for it, up to their
    /// deadlines. If this process dies, they continue. Plain puts and removes don't wait; see
    /// [`Updated::Superseded`].
    ///
    /// ```
    /// use eyewall::{Options, PutOptions};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put("greeting", "hello")?;
    /// let claimed = cache.claim("greeting")?;
    /// let loud = claimed.entry().map_or_else(Vec::new, |entry| entry.to_ascii_uppercase());
    /// claimed.put(loud, &PutOptions::new())?;
    /// assert_eq!(&*cache.get("greeting")?.unwrap(), b"HELLO");
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors about keys, [`ReadOnly`](crate::Error::ReadOnly). [`Busy`](crate::Error::Busy) if another claim on
    /// the key, or claims on many other keys, last longer than the lock deadline. A claim on a key that this thread
    /// has claimed already always gets it.
    pub fn claim(&self, key: impl AsRef<[u8]>) -> Result<Claimed<'_>> {
        let key = key.as_ref();
        self.vouched(|volume| Claimed::begin(self, volume, key))
    }
}
