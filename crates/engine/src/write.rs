//! Writing: room is made and slots are stored under the stripe's lock; large values are copied outside it.
//!
//! ```text
//!            lock                        (large)          lock again
//!   check -> make room -> header, head --> fill bytes --> check -> header -> slot
//!                              `-- small: filled and published at once --'
//! ```
//!
//! A record whose writer hasn't published it yet is garbage that its writer pins: a death leaves nothing to
//! clean but the pin.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use eyewall_region::clock;

use crate::claim::{self, Claim};
use crate::error::{Error, Result};
use crate::format::hash::{Place, checksum};
use crate::format::owner::Owner;
use crate::format::record::{
    HEADER_BYTES, Head, Header, KEY_BYTES_MAX, Lengths, METADATA_BYTES_MAX, Record, is_expired,
};
use crate::protocol;
use crate::put::PutOptions;
use crate::seam;
use crate::stripe::{Count, Found, RingId, Stamp, Stripe, Work};
use crate::thread::Thread;
use crate::volume::Volume;

/// Entries up to this many bytes are filled under the lock: a second round of it costs more.
const FILL_UNDER_LOCK: u64 = 8 << 10;

/// When a put may happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition<'a> {
    Always,
    Absent,
    Serial(u64),
    /// The claim wasn't voided meanwhile.
    Claimed(&'a Claim<'a>),
}

/// What is to be stored.
#[derive(Debug, Clone, Copy)]
struct Draft<'a> {
    key: &'a [u8],
    metadata: &'a [u8],
    value: &'a [u8],
    lengths: Lengths,
    created_ms: u64,
    expires_ms: u64,
}

/// Refuses keys that can't be any entry's.
pub(crate) fn check_key(volume: &Volume, key: &[u8]) -> Result<()> {
    let max = KEY_BYTES_MAX.min((volume.layout.entry_bytes_max - HEADER_BYTES) as usize);
    if key.is_empty() {
        return Err(Error::KeyEmpty);
    }
    if key.len() > max {
        return Err(Error::KeyTooLong { bytes: key.len(), max });
    }
    Ok(())
}

fn draft<'a>(volume: &Volume, key: &'a [u8], value: &'a [u8], options: &PutOptions<'a>) -> Result<Draft<'a>> {
    check_key(volume, key)?;
    let metadata = options.metadata;
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(Error::MetadataTooLong { bytes: metadata.len(), max: METADATA_BYTES_MAX });
    }
    let lengths = Lengths { key: key.len() as u64, metadata: metadata.len() as u64, value: value.len() as u64 };
    let (bytes, max) = (lengths.record_bytes(), volume.layout.entry_bytes_max);
    if bytes > max {
        return Err(Error::EntryTooLarge { bytes, max });
    }
    let created_ms = clock::now_ms();
    let expires_ms = options.ttl.map_or(0, |ttl| expiry(created_ms, ttl));
    Ok(Draft { key, metadata, value, lengths, created_ms, expires_ms })
}

/// Never 0, which means "never".
fn expiry(created_ms: u64, ttl: Duration) -> u64 {
    let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    created_ms.saturating_add(ttl_ms).max(1)
}

/// Stores an entry if `condition` holds. `None`: it didn't, and nothing was stored.
pub(crate) fn put(
    volume: &Volume,
    key: &[u8],
    value: &[u8],
    options: &PutOptions<'_>,
    condition: Condition<'_>,
) -> Result<Option<u64>> {
    let draft = draft(volume, key, value, options)?;
    volume.check_writable()?;
    volume.mark_unclean()?;
    let place = volume.place(key);
    volume.prefetch_buckets(&place);
    let bytes = draft.lengths.record_bytes();
    let mut stripe = Stripe::lock(volume, place.stripe)?;
    let Some(ring) = choose_ring(&stripe, &place, &draft, condition) else { return Ok(None) };
    let (ring, at) = make_room(&mut stripe, ring, bytes)?;
    // What is to be replaced may have made room itself. As long as the lock is held, nobody can know.
    let replaces_nothing = matches!(condition, Condition::Serial(_)) && stripe.find(&place, key).is_none();
    match writer_pin(volume, bytes).filter(|_| !replaces_nothing) {
        None => {
            let checksum = fill(volume, record(&stripe, ring, at), &draft);
            let spot = Spot { ring, at, checksum, advance: true };
            Ok(Some(finish(&stripe, &place, spot, &draft, condition)))
        }
        Some(pin) => put_in_two_steps(stripe, &place, (ring, at), &draft, condition, pin),
    }
}

/// Room in `ring`; or in main, where readers hold too much of small: newcomers that are being sent to slow
/// clients can fill it before an eighth of the stripe is held.
fn make_room(stripe: &mut Stripe<'_>, ring: RingId, bytes: u64) -> Result<(RingId, u64)> {
    let mut room = stripe.make_room(ring, bytes, &mut Work::new(bytes)).map(|at| (ring, at));
    if ring == RingId::Small && matches!(room, Err(Error::Pinned { .. })) {
        room = stripe.make_room(RingId::Main, bytes, &mut Work::new(bytes)).map(|at| (RingId::Main, at));
    }
    if matches!(room, Err(Error::Pinned { .. })) {
        stripe.tally(Count::PinnedRefusals, 1);
    }
    room
}

/// What a writer pins while it fills a large entry outside the lock; `None`: it fills under the lock.
fn writer_pin(volume: &Volume, bytes: u64) -> Option<&AtomicU64> {
    if bytes <= FILL_UNDER_LOCK {
        return None;
    }
    Thread::current(volume).map(Thread::transient_pin)
}

fn put_in_two_steps<'a>(
    stripe: Stripe<'a>,
    place: &Place,
    (ring, at): (RingId, u64),
    draft: &Draft<'_>,
    condition: Condition<'_>,
    pin: &'a AtomicU64,
) -> Result<Option<u64>> {
    let volume = stripe.volume;
    let record = record(&stripe, ring, at);
    let unpin = Unpin(pin);
    protocol::Word::store_fenced(pin, Volume::pin_word(stripe.number, stripe.ring(ring).position(at)));
    promise(&stripe, record, draft);
    stripe.advance(ring, at, draft.lengths.record_bytes());
    volume.check_intact()?;
    drop(stripe);
    let checksum = fill(volume, record, draft);
    let stripe = Stripe::lock(volume, place.stripe)?;
    let allowed = allows(&stripe, condition, stripe.find(place, draft.key).as_ref());
    let spot = Spot { ring, at, checksum, advance: false };
    let serial = allowed.then(|| finish(&stripe, place, spot, draft, condition));
    drop(unpin);
    Ok(serial)
}

/// Frees the writer's pin, also on an error.
struct Unpin<'a>(&'a AtomicU64);

impl Drop for Unpin<'_> {
    fn drop(&mut self) {
        protocol::unpin(self.0);
    }
}

fn record<'a>(stripe: &Stripe<'a>, ring: RingId, at: u64) -> Record<'a> {
    stripe.record_at(&stripe.ring(ring), at)
}

/// Makes free space a pending record of the draft's size.
fn promise<'a>(stripe: &Stripe<'a>, record: Record<'a>, draft: &Draft<'_>) {
    let volume = stripe.volume;
    record.set_header(&Header {
        lengths: draft.lengths,
        mac: 0,
        checksum: 0,
        created_ms: draft.created_ms,
        expires_ms: draft.expires_ms,
        generation: volume.generation(),
    });
    seam::kill_point();
    let owner = Owner::from_word(volume.membership.owner_word());
    let owner = owner.unwrap_or(Owner { process: 0, incarnation: 0 });
    record.set_head(Head::Pending(owner, draft.lengths.check()));
}

/// Copies key, metadata and value behind the header; returns their checksum.
fn fill(volume: &Volume, record: Record<'_>, draft: &Draft<'_>) -> u32 {
    let mut at = record.body();
    for part in [draft.key, draft.metadata, draft.value] {
        // SAFETY: the space is free, or this writer's own pending record: nobody else reads or writes it.
        unsafe { volume.region.store(at, part) };
        at += part.len();
    }
    // SAFETY: as above.
    checksum(unsafe { volume.region.bytes(record.body(), at - record.body()) })
}

/// Where a new entry goes, or `None` if the condition doesn't hold.
fn choose_ring(stripe: &Stripe<'_>, place: &Place, draft: &Draft<'_>, condition: Condition<'_>) -> Option<RingId> {
    let found = stripe.find(place, draft.key);
    if !allows(stripe, condition, found.as_ref()) {
        return None;
    }
    let too_large_for_small = draft.lengths.record_bytes() > stripe.volume.layout.small / 2;
    let known = match found {
        Some(found) => RingId::of(stripe.volume, found.seen.position()) == RingId::Main,
        None => stripe.is_remembered(place),
    };
    Some(if known || too_large_for_small { RingId::Main } else { RingId::Small })
}

fn allows(stripe: &Stripe<'_>, condition: Condition<'_>, found: Option<&Found<'_>>) -> bool {
    let valid = found.filter(|found| !has_expired(found));
    match condition {
        Condition::Always => true,
        Condition::Absent => valid.is_none(),
        Condition::Serial(serial) => valid.is_some_and(|found| found.serial == serial),
        Condition::Claimed(claim) => !claim.is_void(stripe),
    }
}

fn has_expired(found: &Found<'_>) -> bool {
    is_expired(found.record.created_ms(), found.record.expires_ms(), clock::now_ms)
}

/// Where a draft's bytes stand.
#[derive(Debug, Clone, Copy)]
struct Spot {
    ring: RingId,
    at: u64,
    checksum: u32,
    /// Whether they still lie in free space, before the head.
    advance: bool,
}

/// Under the lock, with all bytes in place and the condition checked since it was taken: completes the header
/// and publishes the slot.
fn finish(stripe: &Stripe<'_>, place: &Place, spot: Spot, draft: &Draft<'_>, condition: Condition<'_>) -> u64 {
    let found = stripe.find(place, draft.key);
    let bytes = draft.lengths.record_bytes();
    let record = record(stripe, spot.ring, spot.at);
    let ring = stripe.ring(spot.ring);
    let at = spot.at;
    let stamp = Stamp {
        lengths: draft.lengths,
        created_ms: draft.created_ms,
        expires_ms: draft.expires_ms,
        checksum: spot.checksum,
        serial: stripe.next_serial(),
    };
    stripe.seal(record, ring.position(at), place, &stamp);
    if spot.advance {
        stripe.advance(ring.id, at, bytes);
    }
    // Record or head may not have reached the file: nobody is to find it.
    if stripe.volume.has_failed() {
        return stamp.serial;
    }
    stripe.publish(place, ring.position(at), ring.lap(at), bytes, found);
    if !matches!(condition, Condition::Claimed(_)) {
        claim::void(stripe, Some(place.hash));
    }
    stripe.tally(Count::Puts, 1);
    stripe.tally(Count::BytesWritten, bytes);
    stamp.serial
}

/// Drops the entry of `key`. True: there was a valid one. `claim`: only while that wasn't voided.
pub(crate) fn remove(volume: &Volume, key: &[u8], claimed: Option<&Claim<'_>>) -> Result<Option<bool>> {
    check_key(volume, key)?;
    volume.check_writable()?;
    volume.mark_unclean()?;
    let place = volume.place(key);
    let stripe = Stripe::lock(volume, place.stripe)?;
    if claimed.is_some_and(|claim| claim.is_void(&stripe)) {
        return Ok(None);
    }
    let mut was_there = false;
    while let Some(found) = stripe.find(&place, key) {
        was_there |= !has_expired(&found);
        stripe.unlink(&found);
    }
    if claimed.is_none() {
        claim::void(&stripe, Some(place.hash));
    }
    if was_there {
        stripe.tally(Count::Removes, 1);
    }
    Ok(Some(was_there))
}

/// Drops every entry. Returns how many there were, expired ones included.
pub(crate) fn clear(volume: &Volume) -> Result<u64> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let mut dropped = 0;
    for number in 0..volume.layout.stripes as usize {
        let stripe = Stripe::lock(volume, number)?;
        let count = stripe.unlink_all(|_| true);
        claim::void(&stripe, None);
        stripe.tally(Count::Removes, count);
        dropped += count;
    }
    Ok(dropped)
}
