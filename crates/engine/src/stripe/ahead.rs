//! Reading ahead, for volumes that are larger than memory. The hand looks at every record on its way, and puts
//! overwrite what it has freed. Page by page, both would wait for storage while the stripe is locked.

use super::Stripe;
use super::ring::Ring;
use crate::paging;

/// The hand's way is read one window at a time: the window after the one that the hand has reached. Not further
/// ahead: in a stripe with few puts, the kernel would have dropped it again.
const WINDOW_BYTES: u64 = 64 << 10;

impl<'a> Stripe<'a> {
    /// Starts to read what the hand needs next, when the tail has moved.
    pub(super) fn read_ahead(&self, ring: &Ring<'a>, from: u64, to: u64) {
        if from / WINDOW_BYTES != to / WINDOW_BYTES {
            self.will_need(ring, (to / WINDOW_BYTES).saturating_add(1).saturating_mul(WINDOW_BYTES), WINDOW_BYTES);
        }
    }

    /// Starts to read what the hand needs to make this many bytes free, in one go: what the kernel has dropped of the
    /// window, or what exceeds the window.
    pub(super) fn read_ahead_of(&self, ring: &Ring<'a>, bytes: u64) {
        self.will_need(ring, ring.tail(), bytes.clamp(WINDOW_BYTES / 2, paging::AHEAD_BYTES_MAX));
    }

    /// Starts to read bytes of the log, up to the physical end and on from the start. Offsets of a damaged log may be
    /// any number.
    fn will_need(&self, ring: &Ring<'a>, mut at: u64, bytes: u64) {
        let end = at.saturating_add(bytes.min(ring.size));
        while paging::has_waited(self.volume) && at < end {
            let some = ring.bytes_to_end(at).min(end - at);
            if some == 0 {
                at = ring.next_lap(at);
                continue;
            }
            paging::will_need(self.volume, self.offset_of(ring, at), some as usize);
            at += some;
        }
    }

    /// Prepares pages before `bytes` bytes are written to the free space at `at`. Nobody needs their old content, so
    /// they are made new instead of read. This includes the last page if all the rest of it is free.
    pub(super) fn renew_pages(&self, ring: &Ring<'a>, at: u64, bytes: u64) {
        if !paging::is_paging(self.volume) {
            return;
        }
        let from = self.offset_of(ring, at);
        let free = ring.free().min(ring.bytes_to_end(at)) as usize;
        // Lost words of the ring would say that all of it is free.
        if self.volume.has_failed() {
            return;
        }
        paging::renew(self.volume, from, from + bytes as usize, from + free);
    }
}
