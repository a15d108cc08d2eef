//! Volumes that are larger than memory: reading in one go what a look-up needs, and letting the kernel know what is used.
//!
//! The data are mapped for access at random, so that nothing is read around a page. Left alone, the kernel would read an entry
//! page by page, each when it is touched, and it doesn't look which pages of such a map are in use when it needs memory. So a
//! thread that had to wait for storage lately makes three or four system calls in each hit. One that finds everything in
//! memory makes one in each [`LOOK_EVERY`] look-ups, and none in volumes that lie in memory anyway.

use std::cell::Cell;

use eyewall_region::region::PAGE_BYTES;
use eyewall_region::residency::waits_of_thread;

use crate::format::record::{HEADER_BYTES, Lengths, Record};
use crate::volume::Volume;

/// Look-ups of a thread between two looks at how often it had to wait.
const LOOK_EVERY: u32 = 256;
/// So much of a large entry is read in, or made room for, at once; the rest waits page by page, without the stripe's lock.
pub(crate) const AHEAD_BYTES_MAX: u64 = 1 << 20;
/// What a thread has waited that hasn't looked yet: more than any count.
const UNKNOWN: u64 = u64::MAX;

/// What a thread knows.
struct Watch {
    /// Look-ups until the next look.
    left: Cell<u32>,
    /// How often it had to wait until the last.
    waits: Cell<u64>,
    /// It had to, lately.
    is_paging: Cell<bool>,
    /// Something wasn't in memory since the last look: what is read in beforehand isn't waited for.
    missed: Cell<bool>,
}

thread_local! {
    static WATCH: Watch = const {
        Watch { left: Cell::new(0), waits: Cell::new(UNKNOWN), is_paging: Cell::new(false), missed: Cell::new(false) }
    };
}

/// Counts a look-up by the calling thread. Whether it should read ahead.
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

/// The same, without counting.
#[inline]
pub(crate) fn has_waited(volume: &Volume) -> bool {
    volume.region.is_stored() && WATCH.with(|watch| watch.is_paging.get())
}

impl Watch {
    #[cold]
    fn look(&self) {
        let (waits, missed) = (waits_of_thread(), self.missed.replace(false));
        let before = self.waits.replace(waits);
        // A count that has fallen is that of a child, which begins anew: of it nothing is known yet.
        let has_waited = waits > before;
        self.is_paging.set(missed || has_waited);
        self.left.set(LOOK_EVERY);
    }
}

/// Fills the pages between `from` and `to` with zeros, as far as they aren't in memory: as a write, which needs no read. All is
/// free up to `end`.
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
    // What fails is read, then, when it is written to.
    let _ = door.write_zeros(start as u64, end as u64);
}

/// Before the record at an offset is looked at, with `room` bytes to its ring's end: begins to read what an entry of the usual
/// size takes.
#[cold]
pub(crate) fn begin(volume: &Volume, (offset, room): (usize, u64)) {
    let bytes = HEADER_BYTES.saturating_add(volume.layout.entry_size_hint).min(room) as usize;
    will_need(volume, offset, bytes);
}

/// Begins to read what isn't in memory of so many bytes.
#[cold]
pub(crate) fn will_need(volume: &Volume, offset: usize, bytes: usize) {
    // Where it can't be said, nothing is lost by reading it.
    if !volume.region.is_resident(offset, bytes).unwrap_or(false) {
        WATCH.with(|watch| watch.missed.set(true));
        volume.region.will_need(offset, bytes);
    }
}

/// Before a hit is handed out: reads it, and has the kernel note its use.
#[cold]
pub(crate) fn finish(volume: &Volume, record: Record<'_>, lengths: Lengths) {
    // An error is met again by whoever touches the bytes.
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
