//! Request collapsing: one caller fills an entry that many ask for, and the others wait.
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
//! Waiting callers sleep on the claim's word. All of them wake at once and look the key up without a lock, so they
//! don't queue for the entry.

use std::fmt;
use std::time::{Duration, Instant};

use super::{FillOptions, Filled, NotStored, Writer, second_level};
use crate::cache::Cache;
use crate::claim::{Attempt, Claim};
use crate::error::{Error, Result};
use crate::hit::Lookup;
use crate::purge::Epoch;
use crate::put::PutOptions;
use crate::read::{self, Use, Wanted};
use crate::volume::Volume;
use crate::write::{self, Condition, Draft, Outcome};

/// The right to fill one key ([`Cache::begin_fill`]). It lasts as long as this value lives. If it is dropped without
/// a stored value, or its process dies, one of the waiting callers fills next.
pub struct Flight<'a> {
    pub(super) cache: &'a Cache,
    volume: &'a Volume,
    pub(super) key: Box<[u8]>,
    claim: Claim<'a>,
    /// The purge epoch in which the fill began.
    epoch: u32,
}

/// What a caller that asks for an entry has to do ([`Cache::begin_fill`]).
#[derive(Debug)]
pub enum Filling<'a> {
    /// Nothing: here is the answer. Never [`Filled::Stored`] or [`Filled::NotStored`].
    Found(Filled<'a>),
    /// Make the value and store it by this flight.
    Ours(Flight<'a>),
}

impl<'a> Flight<'a> {
    /// Finds the entry, or waits for it, or gets the right to fill it.
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
        let mut is_asked = cache.second_level().is_none();
        loop {
            let attempt = match Claim::attempt(volume, &place)? {
                Attempt::Got(claim) => match Self::begin(cache, volume, key, claim)? {
                    Filling::Ours(flight) if !is_asked => {
                        if let Err(flight) = second_level::ask(flight) {
                            return Ok(Filling::Ours(flight));
                        }
                        is_asked = true;
                        continue;
                    }
                    filling => return Ok(filling),
                },
                other => other,
            };
            // While the claim is taken, waiting callers don't need the stripe's lock.
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
            // Another caller may have filled the key between our look-up and our claim.
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

    /// Stores the value, unless somebody else changed the entry meanwhile. Returns the entry's serial.
    ///
    /// # Errors
    /// [`NotStored`]: the callers that wait for the key fill it.
    pub fn store(self, value: impl AsRef<[u8]>, options: &PutOptions<'_>) -> std::result::Result<u64, NotStored> {
        let value = value.as_ref();
        let serial = self.store_quietly(value, options)?;
        second_level::offer(&self, value, options);
        Ok(serial)
    }

    /// Stores the value, and doesn't offer it.
    pub(super) fn store_quietly(&self, value: &[u8], options: &PutOptions<'_>) -> std::result::Result<u64, NotStored> {
        self.stored(|volume| Draft::new(volume, &self.key, value, options))
    }

    /// When the work on the value began.
    pub(super) fn begun(&self) -> Epoch {
        Epoch::numbered(self.volume, self.epoch)
    }

    /// Writes the value piece by piece. The callers that wait for the key continue to wait until the writer is
    /// committed or dropped. `length` is the length of the value, if known; see [`Cache::writer`].
    ///
    /// # Errors
    /// Those of [`Cache::writer`], except about claims of others, since the flight holds the claim.
    /// [`Interrupted`](Error::Interrupted): this is a forked child, or the volume was resized. Then a waiting caller
    /// fills the key.
    pub fn into_writer(self, options: &PutOptions<'_>, length: Option<u64>) -> Result<Writer> {
        let Self { volume, key, claim, epoch, .. } = self;
        if !claim.line().is_own() {
            return Err(Error::Interrupted { why: "the flight belongs to the process that this one was forked from" });
        }
        Writer::begin_by(volume, &key, options, length, |_| Ok((claim, epoch))).map_err(|error| match error {
            Error::Moved { .. } => Error::Interrupted { why: "the volume was resized" },
            error => error,
        })
    }

    /// Notes for this time that there is nothing ([`Cache::put_negative`]). If the note can't be stored, it is lost,
    /// and the next caller asks again.
    pub fn remember(self, reason: u16, ttl: Duration) {
        let _ = self.remember_with(reason, &PutOptions::new().ttl(ttl));
    }

    /// Does the same with tags and all other options of a put, so that a purge covers the note as it would the value.
    /// Returns the entry's serial.
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

    /// Stores a draft in the volume that it was made for, or in the one that has replaced it. In that one there is no
    /// claim; whether the entry is still absent shows whether anybody interfered.
    fn put<'d>(&self, draft: impl Fn(&Volume) -> Result<Draft<'d>>) -> Result<Outcome> {
        // A flight that was inherited through fork belongs to the parent.
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

/// What a look-up tells a caller that would fill.
enum Seen<'a> {
    /// An answer.
    Fresh(Filled<'a>),
    /// A stale answer, which some callers accept.
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
