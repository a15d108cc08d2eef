//! For volumes that erase: dead entries are overwritten with zeros.
//!
//! One store first turns a dead record into filler, so that the log still reads as one. Then its bytes are erased.
//! What a reader still holds, or a death leaves half erased, is erased when the hand frees it, since all bytes leave
//! a log through the hand.

use super::ring::Ring;
use super::{Head, RingId, Stripe, Word};
use crate::format::UNIT_BYTES;
use crate::protocol;
use crate::thread;
use crate::volume::Volume;

impl Stripe<'_> {
    /// Erases a record of the log that no slot names any more, unless somebody holds it. A damaged slot may have
    /// named bytes inside of another record, or a record that a second slot names.
    pub(super) fn erase_dead(&self, position: u64) {
        if !self.volume.erases || self.must_reset(RingId::of(self.volume, position)) {
            return;
        }
        let Some((record, lengths, _)) = self.entry_at(position) else { return };
        let Some(place) = self.proven_place(position, record) else { return };
        let untiled = self.is_untiled(position);
        // An unverified record there may be none at all. The hand erases it on its way.
        let unsure = untiled && !self.is_verified(position);
        if unsure || self.slots_of(&place, position).next().is_some() || self.is_pinned(position) {
            return;
        }
        // Lost pins hold nothing back.
        if self.volume.has_failed() {
            return;
        }
        let bytes = lengths.record_bytes();
        record.set_head(Head::Filler(bytes));
        if !untiled {
            self.shift(Word::FillerBytes, bytes, 0);
        }
        self.zero(record.offset + UNIT_BYTES as usize, bytes - UNIT_BYTES);
    }

    /// Erases room of the log that nobody will publish, unless somebody holds it.
    pub(super) fn erase_room(&self, id: RingId, at: u64, bytes: u64) {
        let ring = self.ring(id);
        let keeps = !self.volume.erases || self.must_reset(id) || self.is_pinned(ring.position(at));
        if keeps || self.volume.has_failed() {
            return;
        }
        self.put_filler(&ring, at, bytes);
        self.shift(Word::FillerBytes, bytes, 0);
        self.zero(self.offset_of(&ring, at) + UNIT_BYTES as usize, bytes - UNIT_BYTES);
    }

    fn is_pinned(&self, position: u64) -> bool {
        let mut held = false;
        protocol::collect_pins(thread::pins(self.volume).map(|(_, pin)| pin), |word| {
            held |= Volume::pinned(word) == Some((self.number, position));
        });
        held
    }

    /// Erases `[from, to)` of a log before the tail passes it, when nobody holds any of it. It is one filler for each
    /// of its laps afterwards.
    pub(super) fn erase_freed(&self, ring: &Ring<'_>, from: u64, to: u64) {
        if !self.volume.erases || from == to {
            return;
        }
        let mut at = from;
        while at < to {
            let bytes = ring.bytes_to_end(at).min(to - at);
            if bytes == 0 {
                at = ring.next_lap(at);
                continue;
            }
            crate::seam::kill_point();
            self.put_filler(ring, at, bytes);
            self.zero(self.offset_of(ring, at) + UNIT_BYTES as usize, bytes - UNIT_BYTES);
            at += bytes;
        }
    }

    /// Erases bytes that were written into free space and never became part of a log.
    pub(crate) fn erase_unused(&self, id: RingId, at: u64, bytes: u64) {
        if self.volume.erases {
            self.zero(self.offset_of(&self.ring(id), at), bytes);
        }
    }

    /// Erases a whole ring that holds nothing.
    pub(super) fn erase_ring(&self, ring: &Ring<'_>) {
        if self.volume.erases {
            self.zero(self.offset_of(ring, 0), ring.most);
        }
    }

    fn zero(&self, offset: usize, bytes: u64) {
        // SAFETY: the bytes belong to nobody: no slot names them, no pin holds them, and we hold the lock.
        unsafe { self.volume.region.zero(offset, bytes as usize) }
    }
}
