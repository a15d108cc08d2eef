//! Offers on their way to the store: bounded, and paused while the store takes none.

use std::time::Duration;

use bytes::Bytes;

/// So many offers may wait.
const OFFERS_MAX: usize = 1024;
/// So many bytes of them.
const BYTES_MAX: usize = 32 << 20;
/// So many failures in a row begin a pause.
const FAILURES_MAX: u32 = 3;
/// The first pause and the longest.
const PAUSES_MS: (u64, u64) = (500, 60_000);

/// An object for the store.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Bytes,
    pub(crate) ttl: Duration,
}

/// What waits, and whether the store takes offers. Times are of one clock that never goes back.
#[derive(Debug)]
pub(crate) struct Offers {
    waiting: usize,
    bytes: usize,
    failures: u32,
    pause_ms: u64,
    paused_until_ms: u64,
}

impl Default for Offers {
    fn default() -> Self {
        Self { waiting: 0, bytes: 0, failures: 0, pause_ms: PAUSES_MS.0, paused_until_ms: 0 }
    }
}

impl Offers {
    /// Whether the queue takes an offer of this length.
    pub(crate) fn takes(&self, now_ms: u64, bytes: usize) -> bool {
        now_ms >= self.paused_until_ms && self.waiting < OFFERS_MAX && self.bytes + bytes <= BYTES_MAX
    }

    /// The number of offers on their way.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting as u64
    }

    /// An offer is queued.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.waiting += 1;
        self.bytes += bytes;
    }

    /// The store has dealt with an offer. After failures in a row, offers pause; a single one ends the pause or prolongs it.
    pub(crate) fn done(&mut self, now_ms: u64, bytes: usize, has_failed: bool) {
        self.waiting = self.waiting.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if !has_failed {
            (self.failures, self.pause_ms) = (0, PAUSES_MS.0);
            return;
        }
        self.failures += 1;
        if self.failures >= FAILURES_MAX && now_ms >= self.paused_until_ms {
            self.paused_until_ms = now_ms + self.pause_ms;
            self.pause_ms = (self.pause_ms * 2).min(PAUSES_MS.1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_bounded_by_number_and_bytes() {
        let mut offers = Offers::default();
        assert!(offers.takes(0, BYTES_MAX) && !offers.takes(0, BYTES_MAX + 1));
        for _ in 0..OFFERS_MAX {
            assert!(offers.takes(0, 1));
            offers.add(1);
        }
        assert!(!offers.takes(0, 1));
        offers.done(0, 1, false);
        assert!(offers.takes(0, 1) && !offers.takes(0, BYTES_MAX));
    }

    #[test]
    fn offers_pause_longer_and_longer_until_one_succeeds() {
        let mut offers = Offers::default();
        for _ in 1..FAILURES_MAX {
            offers.done(0, 0, true);
            assert!(offers.takes(0, 1));
        }
        let (mut now_ms, mut pause_ms) = (0, PAUSES_MS.0);
        for _ in 0..20 {
            offers.done(now_ms, 0, true);
            // Those that were under way count as one.
            offers.done(now_ms, 0, true);
            assert!(!offers.takes(now_ms + pause_ms - 1, 1) && offers.takes(now_ms + pause_ms, 1));
            now_ms += pause_ms;
            pause_ms = (pause_ms * 2).min(PAUSES_MS.1);
        }
        offers.done(now_ms, 0, false);
        offers.done(now_ms, 0, true);
        assert!(offers.takes(now_ms, 1));
    }
}
