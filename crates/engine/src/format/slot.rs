//! Slots: the 64 bits with which the index names an entry, or remembers one.
//!
//! ```text
//!  63            45 44   42 41 40 39   34 33                                0
//! +----------------+-------+-----+-------+-----------------------------------+
//! |  fingerprint   |  freq | st  |  lap  |  position, in units of 8 bytes    |  live
//! +----------------+-------+-----+-------+-----------------------------------+
//! |  fingerprint   |   0   | st  |   more hash, 16   |    stamp, 24 bits     |  ghost
//! +----------------+-------+-----+-------------------------------------------+
//! ```

use std::sync::atomic::AtomicU64;

use eyewall_region::probe;

use super::hash::Place;
use super::{POSITION_BITS, POSITIONS_MAX};

const LAP_SHIFT: u32 = POSITION_BITS;
const STATE_SHIFT: u32 = 40;
const FREQUENCY_SHIFT: u32 = 42;
const FINGERPRINT_SHIFT: u32 = 45;

/// Bits that a reader may change while a writer holds the lock.
const FREQUENCY_MASK: u64 = 7 << FREQUENCY_SHIFT;
const STATE_MASK: u64 = 3 << STATE_SHIFT;
const LIVE: u64 = 1 << STATE_SHIFT;
const GHOST: u64 = 2 << STATE_SHIFT;
/// What a live slot has in common with its key.
const NAME_MASK: u64 = (u64::MAX << FINGERPRINT_SHIFT) | STATE_MASK;

/// The highest frequency. Readers never write a slot that has reached it.
pub(crate) const FREQUENCY_MAX: u64 = 7;
/// Ghost stamps count evictions modulo this.
pub(crate) const STAMPS: u64 = 1 << 24;

/// One index slot. Zero means empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Slot(pub(crate) u64);

impl Slot {
    pub(crate) const EMPTY: Self = Self(0);

    /// A live slot for the record at `position` (units), written in `lap` of its ring.
    pub(crate) fn live(place: &Place, position: u64, lap: u64, frequency: u64) -> Self {
        debug_assert!(position < POSITIONS_MAX && frequency <= FREQUENCY_MAX);
        Self(
            (place.fingerprint << FINGERPRINT_SHIFT)
                | (frequency << FREQUENCY_SHIFT)
                | LIVE
                | ((lap & 63) << LAP_SHIFT)
                | position,
        )
    }

    /// The ghost of an entry that left the small ring when the eviction counter was at `stamp`.
    pub(crate) fn ghost(place: &Place, stamp: u64) -> Self {
        Self((place.fingerprint << FINGERPRINT_SHIFT) | GHOST | (place.ghost_hash << 24) | (stamp % STAMPS))
    }

    #[inline]
    pub(crate) fn is_live(self) -> bool {
        self.0 & STATE_MASK == LIVE
    }

    pub(crate) fn is_ghost(self) -> bool {
        self.0 & STATE_MASK == GHOST
    }

    /// The low bits of the ring's lap in which the record was written.
    #[inline]
    pub(crate) fn lap(self) -> u64 {
        (self.0 >> LAP_SHIFT) & 63
    }

    /// Whether this slot may name the entry of `place`: it is live and has the fingerprint.
    #[inline]
    pub(crate) fn may_hold(self, place: &Place) -> bool {
        self.has_name_of(place.fingerprint)
    }

    /// Which slots of a bucket may hold the entry of a key with this fingerprint: bit *n* stands for slot *n*. Slots may change meanwhile,
    /// so it is a hint.
    #[inline]
    pub(crate) fn hints(bucket: &[AtomicU64; 8], fingerprint: u64) -> u32 {
        const _: () = assert!(STATE_SHIFT >= 32 && FINGERPRINT_SHIFT >= 32);
        probe::matching(bucket, (NAME_MASK >> 32) as u32, (Self::name(fingerprint) >> 32) as u32)
    }

    /// Whether this slot may name the entry of a key with this fingerprint.
    #[inline]
    pub(crate) fn has_name_of(self, fingerprint: u64) -> bool {
        self.0 & NAME_MASK == Self::name(fingerprint)
    }

    #[inline]
    fn name(fingerprint: u64) -> u64 {
        (fingerprint << FINGERPRINT_SHIFT) | LIVE
    }

    /// Whether this slot remembers the key of `place`, from at most `memory` evictions ago.
    pub(crate) fn remembers(self, place: &Place, stamp: u64, memory: u64) -> bool {
        self.is_ghost()
            && self.0 >> FINGERPRINT_SHIFT == place.fingerprint
            && (self.0 >> 24) & 0xffff == place.ghost_hash
            && !self.is_void(stamp, memory)
    }

    /// Whether this ghost is too old to count.
    pub(crate) fn is_void(self, stamp: u64, memory: u64) -> bool {
        let age = stamp.wrapping_sub(self.0) % STAMPS;
        age > memory.min(STAMPS / 2)
    }

    /// The position, in units from the start of the stripe's data.
    #[inline]
    pub(crate) fn position(self) -> u64 {
        self.0 & (POSITIONS_MAX - 1)
    }

    #[inline]
    pub(crate) fn frequency(self) -> u64 {
        (self.0 & FREQUENCY_MASK) >> FREQUENCY_SHIFT
    }

    pub(crate) fn with_frequency(self, frequency: u64) -> Self {
        Self((self.0 & !FREQUENCY_MASK) | (frequency << FREQUENCY_SHIFT))
    }

    /// The slot after one more use; `None`: it counts no more.
    #[inline]
    pub(crate) fn used_once_more(self) -> Option<Self> {
        (self.0 & FREQUENCY_MASK != FREQUENCY_MASK).then(|| Self(self.0 + (1 << FREQUENCY_SHIFT)))
    }

    /// Whether both name the same record: they are equal except for the frequency.
    #[inline]
    pub(crate) fn same_record(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FREQUENCY_MASK == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { hash: 0, stripe: 0, picks: [0, 1], fingerprint: 0x7_fff1, ghost_hash: 0xabcd };

    #[test]
    fn a_live_slot_keeps_its_parts() {
        let slot = Slot::live(&PLACE, POSITIONS_MAX - 1, 65, 3);
        assert!(slot.is_live() && !slot.is_ghost() && slot.may_hold(&PLACE));
        assert_eq!((slot.position(), slot.frequency()), (POSITIONS_MAX - 1, 3));
        assert!(slot.same_record(slot.with_frequency(7)));
        assert!(!slot.same_record(Slot::live(&PLACE, POSITIONS_MAX - 1, 66, 3)));
        assert!(!slot.may_hold(&Place { fingerprint: 0x7_fff0, ..PLACE }));
    }

    #[test]
    fn a_slot_counts_up_to_the_highest_frequency() {
        // With the fingerprint of only ones, one more would carry out of the word.
        let place = Place { fingerprint: 0x7_ffff, ..PLACE };
        let once = Slot::live(&place, 1, 1, FREQUENCY_MAX - 1).used_once_more().unwrap();
        assert_eq!((once.frequency(), once.has_name_of(0x7_ffff)), (FREQUENCY_MAX, true));
        assert_eq!(once.used_once_more(), None);
    }

    #[test]
    fn a_ghost_is_remembered_for_so_many_evictions() {
        let ghost = Slot::ghost(&PLACE, STAMPS - 2);
        assert!(ghost.is_ghost() && !ghost.may_hold(&PLACE));
        assert!(ghost.remembers(&PLACE, STAMPS + 8, 10));
        assert!(!ghost.remembers(&PLACE, STAMPS + 9, 10));
        assert!(!ghost.remembers(&Place { ghost_hash: 1, ..PLACE }, STAMPS, 10));
        assert!(!Slot::EMPTY.remembers(&PLACE, 0, 10));
    }
}
