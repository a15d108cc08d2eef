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

/// The right to change one key, for as long as it lives ([`Cache::claim`]). Dropped, it leaves the entry as it is; so does
/// the death of its process.
pub struct Claimed<'a> {
    cache: &'a Cache,
    volume: &'a Volume,
    key: Box<[u8]>,
    claim: Claim<'a>,
    entry: Option<Hit<'a>>,
    /// Of the entry.
    serial: Option<u64>,
    /// The purge epoch in which the entry was looked at.
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
        // Of a volume that was resized meanwhile, absence means nothing.
        volume.check_present()?;
        let serial = entry.as_ref().map(Hit::serial);
        Ok(Self { cache, volume, key: key.into(), claim, entry, serial, epoch })
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The valid entry, as it was when the key was claimed.
    pub fn entry(&self) -> Option<&Hit<'a>> {
        self.entry.as_ref()
    }

    /// The same, to be held for longer than the claim.
    pub fn take_entry(&mut self) -> Option<Hit<'a>> {
        self.entry.take()
    }

    /// Stores this value, and gives the claim back.
    ///
    /// # Errors
    /// Those of [`Cache::put_with`].
    pub fn put(mut self, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> Result<Updated> {
        // So that room can be made of its own.
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

    /// Removes the entry, and gives the claim back.
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

    /// On what the change depends; `None`: it is a forked child's, and its parent's to make.
    ///
    /// In a volume that took the place of the claim's own, the key is claimed again, so that nobody's claim there is voided. What
    /// tells whether anybody came in between is the entry.
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
    /// Claims `key`, to look at its entry and change it: one claim on a key at a time, over all processes.
    ///
    /// What [`Cache::update`] does around a closure, for callers that can't have one. As long as the [`Claimed`] lives, other
    /// claims, updates, writers and fills of the key wait for it, up to their deadlines; if this process dies, they go on.
    /// Plain puts and removes don't wait; see [`Updated::Superseded`].
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
    /// The key's errors, [`ReadOnly`](crate::Error::ReadOnly). [`Busy`](crate::Error::Busy) when another claim on the key, or
    /// claims on many other keys, last longer than the lock deadline; so does a claim on a key that this thread has claimed.
    pub fn claim(&self, key: impl AsRef<[u8]>) -> Result<Claimed<'_>> {
        let key = key.as_ref();
        self.vouched(|volume| Claimed::begin(self, volume, key))
    }
}
