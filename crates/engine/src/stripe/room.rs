//! Room that is filled while the stripe's lock is free: how it grows, ends early, or is given up.
//!
//! ```text
//!   begins   [room........]                  first word, then the head moves over it
//!   grows    [room........][filler....]      filler, then the head moves over it,
//!            [room....................]      then one store of the room's first word
//!   ends     [room..............|filler]     filler inside, behind what was used,
//!            [entry............][filler]     then one store of the room's first word
//! ```
//!
//! After each of these stores the log reads as one. The writer has pinned the room before it began.

use super::ring::Ring;
use super::{Head, RingId, Stripe, Word, Work};
use crate::claim;
use crate::error::{Error, Result};
use crate::format::record::Header;
use crate::seam;

impl Stripe<'_> {
    /// Takes `bytes` free bytes at `at` into the log, as room for an entry with this header.
    pub(crate) fn begin_room(&self, id: RingId, at: u64, bytes: u64, header: &Header) {
        let record = self.record_at(&self.ring(id), at);
        record.set_header(header);
        seam::kill_point();
        record.set_head(Head::Room(bytes));
        self.advance(id, at, bytes);
    }

    /// Lets the room of `bytes` bytes at `at` grow by `more`, a multiple of 8, in place. Returns false if something
    /// or the ring's end lies behind it, or nothing there can be evicted.
    pub(crate) fn grow_room(&mut self, id: RingId, at: u64, bytes: u64, more: u64) -> Result<bool> {
        let (ring, end) = (self.ring(id), at + bytes);
        if self.must_reset(id) || !is_last(&ring, at, bytes, more) {
            return Ok(false);
        }
        match self.make_room(id, more, &mut Work::new(more)) {
            // What the hand copies or skips also goes to the head.
            Ok(free) if free == end => {}
            Ok(_) | Err(Error::Pinned { .. }) => return Ok(false),
            Err(error) => return Err(error),
        }
        seam::kill_point();
        self.put_filler(&ring, end, more);
        self.advance(id, end, more);
        // If the head was lost, the room would reach beyond the log.
        self.volume.check_intact()?;
        seam::kill_point();
        self.record_at(&ring, at).set_head(Head::Room(bytes + more));
        Ok(true)
    }

    /// Makes the room at `at` filler behind its first `used` bytes, before these become an entry.
    pub(crate) fn trim_room(&self, id: RingId, at: u64, bytes: u64, used: u64) {
        if used < bytes {
            seam::kill_point();
            self.put_filler(&self.ring(id), at + used, bytes - used);
            self.shift(Word::FillerBytes, bytes - used, 0);
        }
    }

    /// Called when nobody will publish the room at `at`. Erases it now if the volume erases and nobody holds it.
    pub(crate) fn give_up_room(&self, id: RingId, at: u64, bytes: u64) {
        self.erase_room(id, at, bytes);
    }

    /// Called for a record that the hand lets go of. It may be room that a dead writer's claim names, or that its
    /// writer has given up. Afterwards nobody can start to pin it. The pins are scanned after this.
    pub(super) fn forget_room(&self, head: Head, position: u64) {
        if matches!(head, Head::Room(_)) {
            claim::forget_rooms(self, |at| at == position);
        }
    }

    /// Like [`Stripe::forget_room`], for a ring that is to be emptied.
    pub(super) fn forget_rooms(&self, id: RingId) {
        claim::forget_rooms(self, |position| RingId::of(self.volume, position) == id);
    }
}

/// Whether the room is the last record of its log, and has `more` bytes behind it before the ring's physical end.
fn is_last(ring: &Ring<'_>, at: u64, bytes: u64, more: u64) -> bool {
    ring.head() == at + bytes && bytes + more <= ring.bytes_to_end(at)
}
