//! Paging, for volumes that are larger than memory: reads what a look-up needs in one go, and tells the kernel what
//! is used.
//!
//! The data are mapped for random access, so the kernel reads nothing around a page. Left alone, it would read an
//! entry page by page as each is touched. When it needs memory, it doesn't check which pages of such a map are in
//! use. So a thread that recently had to wait for storage makes three or four system calls in each hit. A thread that
//! finds everything in memory makes one in each [`LOOK_EVERY`] look-ups, and none in volumes that are in memory
//! anyway.

use std::cell::Cell;

use eyewall_region::page::PAGE_BYTES;
use eyewall_region::residency::waits_of_thread;

use crate::format::record::{HEADER_BYTES, Lengths, Record};
use crate::volume::Volume;

/// A thread checks once in this many look-ups how often it had to wait.
const LOOK_EVERY: u32 = 256;
/// How much of a large entry is read in, or made room for, at once. The rest waits page by page, without the stripe's
/// lock.
pub(crate) const AHEAD_BYTES_MAX: u64 = 1 << 20;
/// An entry of this size or more is read in before it is verified.
const VERIFIED_BYTES_MIN: u64 = 16 << 10;
/// The pages of a room of this size or more are made before it is filled.
const ROOM_BYTES_MIN: usize = 256 << 10;
/// The waits of a thread that hasn't checked yet: more than any count.
const UNKNOWN: u64 = u64::MAX;

/// What a thread knows about its waits.
struct Watch {
    /// Look-ups until the next check.
    left: Cell<u32>,
    /// How often the thread had waited at the last check.
    waits: Cell<u64>,
    /// Whether it had to wait recently.
    is_paging: Cell<bool>,
    /// Whether something wasn't in memory since the last check. Bytes that are read in ahead cause no wait.
    missed: Cell<bool>,
}

thread_local! {
    static WATCH: Watch = const {
        Watch { left: Cell::new(0), waits: Cell::new(UNKNOWN), is_paging: Cell::new(false), missed: Cell::new(false) }
    };
}

/// Counts a look-up by the calling thread, and returns whether the thread should read ahead.
#[inline]
pub(crate) fn is_paging(volume: &Volume) -> bool {
    if !volume.region.is_stored() {
        return false;
    }
    WATCH.with(|watch| {
        match watch.left.get() {
            0 => watch.look(),
            left => watch.left.set(left - 1),
        }
        watch.is_paging.get()
    })
}

/// Returns the same without counting.
#[inline]
pub(crate) fn has_waited(volume: &Volume) -> bool {
    volume.region.is_stored() && WATCH.with(|watch| watch.is_paging.get())
}

impl Watch {
    #[cold]
    fn look(&self) {
        let (waits, missed) = (waits_of_thread(), self.missed.replace(false));
        let before = self.waits.replace(waits);
        // A count that has fallen belongs to a forked child, which starts again; its waits are unknown.
        let has_waited = waits > before;
        self.is_paging.set(missed || has_waited);
        self.left.set(LOOK_EVERY);
    }
}

/// Fills the pages between `from` and `to` with zeros, as far as they aren't in memory, by a write, which needs no
/// read. All bytes up to `end` are free.
#[cold]
pub(crate) fn renew(volume: &Volume, from: usize, to: usize, end: usize) {
    let to = to.min(from + AHEAD_BYTES_MAX as usize);
    let start = from.next_multiple_of(PAGE_BYTES);
    let end = to.next_multiple_of(PAGE_BYTES).min(end / PAGE_BYTES * PAGE_BYTES);
    let Some(door) = volume.membership.door() else { return };
    if start >= end || volume.region.is_resident(start, end - start).unwrap_or(true) {
        return;
    }
    WATCH.with(|watch| watch.missed.set(true));
    // If this fails, the pages are read when they are written to.
    let _ = door.write_zeros(start as u64, end as u64);
}

/// Makes the pages of a room that aren't in memory, before its owner fills the bytes between `from` and `to`, which are all the
/// owner's. A write makes them in larger folios than faults, which in a map for random access make each page alone and reserve its
/// block alone. Called without the lock of the stripe.
pub(crate) fn make_room(volume: &Volume, from: usize, to: usize) {
    let start = from.next_multiple_of(PAGE_BYTES);
    let end = to / PAGE_BYTES * PAGE_BYTES;
    if end < start + ROOM_BYTES_MIN || !volume.region.is_stored() {
        return;
    }
    let Some(door) = volume.membership.door() else { return };
    let mut next = start;
    while next < end {
        let at = next;
        next = (at + 1).next_multiple_of(ROOM_BYTES_MIN).min(end);
        let bytes = next - at;
        // If the write fails, the owner meets the faults.
        if !volume.region.is_resident(at, bytes).unwrap_or(true) && door.write_zeros(at as u64, next as u64).is_ok() {
            volume.region.map_for_writing(at, bytes);
        }
    }
}

/// Starts to read a typical entry, before the record at an offset is looked at. `room` is the number of bytes to the
/// end of its ring.
#[cold]
pub(crate) fn begin(volume: &Volume, (offset, room): (usize, u64)) {
    let bytes = HEADER_BYTES.saturating_add(volume.layout.entry_size_hint).min(room) as usize;
    will_need(volume, offset, bytes);
}

/// Starts to read those of these bytes that aren't in memory.
#[cold]
pub(crate) fn will_need(volume: &Volume, offset: usize, bytes: usize) {
    // If the kernel can't tell, reading them does no harm.
    if !volume.region.is_resident(offset, bytes).unwrap_or(false) {
        WATCH.with(|watch| watch.missed.set(true));
        volume.region.will_need(offset, bytes);
    }
}

/// Starts to read a record that is about to be verified, which reads all of it. No look-up of this attachment has done that, so nothing is
/// known of where it is.
pub(crate) fn before_verifying(volume: &Volume, record: Record<'_>, lengths: Lengths) {
    if lengths.record_bytes() >= VERIFIED_BYTES_MIN && volume.region.is_stored() {
        will_need(volume, record.offset, lengths.record_bytes() as usize);
    }
}

/// Reads a hit before it is returned, and lets the kernel note its use.
#[cold]
pub(crate) fn finish(volume: &Volume, record: Record<'_>, lengths: Lengths) {
    // The reader of the bytes meets the error again.
    let _ = volume.region.prefault(record.offset, lengths.record_bytes().min(AHEAD_BYTES_MAX) as usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_has_fallen_says_nothing() {
        WATCH.with(|watch| {
            for (before, is_paging) in [(UNKNOWN, false), (waits_of_thread() + 1000, false)] {
                watch.waits.set(before);
                watch.look();
                assert_eq!(watch.is_paging.get(), is_paging);
            }
        });
    }
}
