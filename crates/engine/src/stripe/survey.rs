//! A map of the extents in a stripe's rings.
//!
//! The walk follows only words of the map, and checks each before it uses it. So a process that can't write may make
//! it without the lock. The log may then change during the walk.

use serde::Serialize;

use super::ring::Ring;
use super::{RingId, Stripe, load};
use crate::format::UNIT_BYTES;
use crate::format::record::{Head, RECORD_BYTES_MIN};
use crate::protocol;
use crate::thread;
use crate::volume::Volume;

/// What bytes of a ring hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ExtentKind {
    /// Entries that can be found. Expired ones count until they are evicted.
    Live,
    /// Bytes that hits hold or that puts are filling.
    Pinned,
    /// Overwritten, removed or unpublished entries, until the hand passes.
    Dead,
    /// Bytes lost at ring ends and beside entries that were held in place, until the hand passes.
    Filler,
    /// Bytes that are neither used nor waiting to be freed.
    Free,
    /// Bytes that the index has taken from the small ring.
    Index,
    /// Bytes whose log can't be read: it is damaged, or was changed while a process that can't lock it looked.
    Unreadable,
}

/// The positions that slots and pins name, each list sorted.
#[derive(Debug, Default)]
pub(crate) struct Landmarks {
    live: Vec<u64>,
    pinned: Vec<u64>,
}

impl Stripe<'_> {
    /// Collects what slots name and what pins hold in this stripe.
    pub(crate) fn landmarks(&self) -> Landmarks {
        let mut landmarks = Landmarks::default();
        self.each_slot(|slot| {
            if slot.is_live() {
                landmarks.live.push(slot.position());
            }
        });
        let number = self.number;
        protocol::collect_pins(thread::pins(self.volume).map(|(_, pin)| pin), |word| {
            let held = Volume::pinned(word).filter(|(stripe, _)| *stripe == number);
            landmarks.pinned.extend(held.map(|(_, position)| position));
        });
        landmarks.live.sort_unstable();
        landmarks.pinned.sort_unstable();
        landmarks
    }

    /// Calls `f` for each piece of a ring, from its tail on, with its start in the ring, its length and its kind. The
    /// pieces cover the ring completely.
    pub(crate) fn survey(&self, id: RingId, landmarks: &Landmarks, mut f: impl FnMut(u64, u64, ExtentKind)) {
        let ring = self.ring(id);
        let (head, tail) = (ring.head(), ring.tail());
        let is_log = tail <= head && head - tail <= ring.size && tail.is_multiple_of(8) && head.is_multiple_of(8);
        if ring.most < ring.size {
            f(ring.most, ring.size - ring.most, ExtentKind::Index);
        }
        if !is_log || self.must_reset(id) {
            return f(0, ring.most, ExtentKind::Unreadable);
        }
        let mut at = tail;
        while at < head {
            let void = ring.void_at(at).min(head - at);
            if void > 0 {
                around(&ring, at, void, ExtentKind::Free, &mut f);
                at += void;
                continue;
            }
            let Some((bytes, piece)) = self.piece_at(&ring, at, head, landmarks) else {
                around(&ring, at, head - at, ExtentKind::Unreadable, &mut f);
                break;
            };
            f(at % ring.size, bytes, piece);
            at += bytes;
        }
        around(&ring, head, ring.size - (head - tail), ExtentKind::Free, &mut f);
    }

    fn piece_at(&self, ring: &Ring<'_>, at: u64, head: u64, landmarks: &Landmarks) -> Option<(u64, ExtentKind)> {
        let room = ring.bytes_to_end(at).min(head - at);
        let position = ring.position(at);
        let (bytes, piece) = match Head::from_word(load(self.word_at(ring, at))).filter(|_| room >= UNIT_BYTES)? {
            Head::Filler(bytes) => (bytes, ExtentKind::Filler),
            Head::Room(bytes) => (bytes, ExtentKind::Pinned),
            Head::Entry(..) if room < RECORD_BYTES_MIN => return None,
            Head::Entry(..) => {
                let bytes = self.record_at(ring, at).lengths().record_bytes();
                let has = |positions: &[u64]| positions.binary_search(&position).is_ok();
                let piece = match (has(&landmarks.pinned), has(&landmarks.live)) {
                    (true, _) => ExtentKind::Pinned,
                    (false, true) => ExtentKind::Live,
                    (false, false) => ExtentKind::Dead,
                };
                (bytes, piece)
            }
        };
        (bytes > 0 && bytes <= room).then_some((bytes, piece))
    }
}

/// Gives `f` a piece that may go around the physical end, without what the index has of it.
fn around(ring: &Ring<'_>, at: u64, mut bytes: u64, piece: ExtentKind, f: &mut impl FnMut(u64, u64, ExtentKind)) {
    let mut place = at % ring.size;
    while bytes > 0 {
        let some = bytes.min(ring.size - place);
        let left = ring.most.saturating_sub(place).min(some);
        if left > 0 {
            f(place, left, piece);
        }
        bytes -= some;
        place = 0;
    }
}
