//! Who fills an entry that many ask for, and how the others wait.
//!
//! ```text
//!   look up --fresh, negative--> found
//!      |  ^
//!      |  +--- woken, or 5 ms later ---+
//!      v                               |
//!   claim taken? --by another: stale? -+--> found
//!      |
//!      v  ours
//!   look up again --> fill
//! ```
//!
//! Those that wait sleep on the claim's word, all wake at once, and look up without a lock: they don't queue for the entry.

use std::fmt;
use std::time::{Duration, Instant};

use super::{FillOptions, Filled, NotStored, Writer};
use crate::cache::Cache;
use crate::claim::{Attempt, Claim};
use crate::error::{Error, Result};
use crate::hit::Lookup;
use crate::put::PutOptions;
use crate::read::{self, Use, Wanted};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// The right to fill one key, for as long as it lives ([`Cache::begin_fill`]). Dropped without a value, it lets one of those that
/// wait be the next to fill; so does the death of its process.
pub struct Flight<'a> {
    cache: &'a Cache,
    volume: &'a Volume,
    key: Box<[u8]>,
    claim: Claim<'a>,
    /// The purge epoch in which the fill begins.
    epoch: u32,
}

/// What whoever asks for an entry is to do ([`Cache::begin_fill`]).
#[derive(Debug)]
pub enum Filling<'a> {
    /// Nothing: here it is. Never [`Filled::Stored`] or [`Filled::NotStored`].
    Found(Filled<'a>),
    /// To make the value, and to store it by this.
    Ours(Flight<'a>),
}

impl<'a> Flight<'a> {
    /// Finds the entry, or waits for it, or becomes the one that fills it.
    pub(super) fn join(
        cache: &'a Cache,
        volume: &'a Volume,
        key: &[u8],
        (start, deadline): (Instant, Duration),
        options: &FillOptions<'_>,
    ) -> Result<Filling<'a>> {
        write::check_key(volume, key)?;
        let place = volume.place(key);
        if let Some(found) = look_up(volume, key, Use::Counts)?.fresh() {
            return Ok(Filling::Found(found));
        }
        volume.check_present()?;
        volume.check_writable()?;
        loop {
            let attempt = match Claim::attempt(volume, &place)? {
                Attempt::Got(claim) => return Self::begin(cache, volume, key, claim),
                other => other,
            };
            // As long as the claim is taken, nobody needs the stripe's lock.
            loop {
                match look_up(volume, key, Use::Peeks)? {
                    Seen::Fresh(found) => return Ok(Filling::Found(found)),
                    Seen::Stale(found) if options.use_stale => return Ok(Filling::Found(found)),
                    Seen::Stale(_) | Seen::Nothing => {}
                }
                volume.check_intact()?;
                let waited = start.elapsed();
                let Some(left) = deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                    volume.count_busy();
                    return Err(Error::Busy { what: "another fill of the same key", waited });
                };
                attempt.wait(volume, left);
                if !options.is_wanted() {
                    return Err(Error::Busy { what: "another fill of the same key", waited: start.elapsed() });
                }
                match attempt {
                    Attempt::Held(holder) if !holder.is_gone(volume) => {}
                    _ => break,
                }
            }
            if let Some(found) = look_up(volume, key, Use::Peeks)?.fresh() {
                return Ok(Filling::Found(found));
            }
        }
    }

    fn begin(cache: &'a Cache, volume: &'a Volume, key: &[u8], claim: Claim<'a>) -> Result<Filling<'a>> {
        let epoch = volume.purges().epoch() as u32;
        loop {
            // Somebody may have filled it between our look and our claim.
            if let Some(found) = look_up(volume, key, Use::Peeks)?.fresh() {
                return Ok(Filling::Found(found));
            }
            if !claim.renew() {
                return Ok(Filling::Ours(Self { cache, volume, key: key.into(), claim, epoch }));
            }
        }
    }

    /// The key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Stores what was made, unless somebody else has changed the entry meanwhile; returns the entry's serial.
    ///
    /// # Errors
    /// [`NotStored`]: who waits for the key fills it.
    pub fn store(self, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> std::result::Result<u64, NotStored> {
        self.stored(|volume| Draft::new(volume, &self.key, value.as_ref(), options))
    }

    /// Writes the value piece by piece. Whoever waits for the key goes on waiting until the writer is committed or dropped.
    /// `length` is that of the value, where it is known; see [`Cache::writer`].
    ///
    /// # Errors
    /// Those of [`Cache::writer`], but for a claim of somebody else's: this is the claim.
    /// [`Interrupted`](Error::Interrupted): this is a forked child, or the volume was resized. Who waits for the key fills it
    /// then.
    pub fn into_writer(self, options: &PutOptions<'_>, length: Option<u64>) -> Result<Writer> {
        let Self { volume, key, claim, epoch, .. } = self;
        if !claim.line().is_own() {
            return Err(Error::Interrupted { why: "the flight is that of the process that this one was forked from" });
        }
        Writer::begin_by(volume, &key, options, length, |_| Ok((claim, epoch))).map_err(|error| match error {
            Error::Moved { .. } => Error::Interrupted { why: "the volume was resized" },
            error => error,
        })
    }

    /// Notes that there is nothing, for so long ([`Cache::put_negative`]). If that can't be stored, it isn't known: the next
    /// one asks again.
    pub fn remember(self, reason: u16, ttl: Duration) {
        // Not known, then.
        let _ = self.remember_with(reason, &PutOptions::new().ttl(ttl));
    }

    /// The same with tags and all that goes with a put, so that it is purged as the value would be; returns the entry's serial.
    ///
    /// # Errors
    /// [`NotStored`].
    pub fn remember_with(self, reason: u16, options: &PutOptions<'_>) -> std::result::Result<u64, NotStored> {
        let value = reason.to_le_bytes();
        self.stored(|volume| Ok(Draft::new(volume, &self.key, &value, options)?.negative()))
    }

    fn stored<'d>(&self, draft: impl Fn(&Volume) -> Result<Draft<'d>>) -> std::result::Result<u64, NotStored> {
        match self.put(draft) {
            Ok(Outcome::Stored(serial)) => Ok(serial),
            Ok(Outcome::Superseded(_) | Outcome::Unmet) => Err(NotStored::Superseded),
            Err(error) => Err(NotStored::Refused(error)),
        }
    }

    /// Stores a draft in the volume that it was made for, or in the one that took its place meanwhile. There is no claim
    /// there: what tells whether anybody came in between is the entry.
    fn put<'d>(&self, draft: impl Fn(&Volume) -> Result<Draft<'d>>) -> Result<Outcome> {
        // Else it is its parent's to store.
        if !self.claim.line().is_own() {
            return Ok(Outcome::Unmet);
        }
        self.cache.vouched(|volume| {
            let same = std::ptr::eq(volume, self.volume);
            let condition = if same { Condition::Claimed(self.claim.line()) } else { Condition::Absent };
            write::put(volume, &draft(volume)?.begun_in(self.epoch), condition)
        })
    }
}

impl fmt::Debug for Flight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What a look-up says to somebody that would fill.
enum Seen<'a> {
    /// An answer.
    Fresh(Filled<'a>),
    /// One that may do.
    Stale(Filled<'a>),
    Nothing,
}

impl<'a> Seen<'a> {
    fn fresh(self) -> Option<Filled<'a>> {
        match self {
            Self::Fresh(found) => Some(found),
            Self::Stale(_) | Self::Nothing => None,
        }
    }
}

fn look_up<'a>(volume: &'a Volume, key: &[u8], usage: Use) -> Result<Seen<'a>> {
    Ok(match Lookup::of(read::get(volume, key, usage, Wanted::Any)?) {
        Lookup::Fresh(hit) => Seen::Fresh(Filled::Hit(hit)),
        Lookup::Negative(hit) => Seen::Fresh(Filled::Negative(hit.reason().unwrap_or_default())),
        Lookup::Stale(hit) => Seen::Stale(Filled::Stale(hit)),
        Lookup::Miss => Seen::Nothing,
    })
}
