//! The number of buckets in a stripe's index, and which of them belong to a key: a linear hash table (Litwin, VLDB
//! 1980).
//!
//! ```text
//!   buckets  0 ... b ... 2^l - 1 | 2^l ... 2^l + b     With 2^l < n <= 2^(l+1) buckets, those from 2^l on were split from
//!                  |                         ^         the ones that are so many before them: by the bit l of their keys'
//!                  +-------------------------+         picks.
//! ```
//!
//! The table grows by splitting one bucket, and shrinks by merging the last one. So a step moves at most eight slots.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::hash::Place;
use super::layout::Layout;

const STEPS_SHIFT: u32 = 32;

/// The buckets of a stripe. The low half of their word counts them; the high half counts the steps, so a step always
/// changes the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// The word as in the file.
    pub(crate) word: u64,
    /// The number of the last bucket.
    last: u64,
    /// The bits of a pick that number a bucket, if a bucket with that number exists.
    mask: u64,
}

impl Buckets {
    /// The buckets of a new stripe.
    pub(crate) fn new(count: u64) -> Self {
        Self::of_word(count, count)
    }

    #[inline]
    fn of_word(word: u64, count: u64) -> Self {
        Self::up_to(word, count - 1)
    }

    #[inline]
    fn up_to(word: u64, last: u64) -> Self {
        Self { word, last, mask: u64::MAX >> (last | 1).leading_zeros() }
    }

    /// The buckets of a word as a look-up reads it, and none beyond the possible ones. A damaged word may count fewer
    /// than there always are.
    ///
    /// `mask` remembers what follows from a word, until the number of buckets has doubled or halved. A look-up can
    /// check it faster than compute it. It orders nothing else, so it is relaxed.
    #[inline]
    pub(crate) fn bounded(word: u64, layout: &Layout, mask: &AtomicU32) -> Self {
        let (last, known) = ((word as u32).wrapping_sub(1), mask.load(Relaxed));
        if last ^ known > known >> 1 || u64::from(last) >= layout.buckets_max {
            return Self::learn(word, layout, mask);
        }
        Self { word, last: u64::from(last), mask: u64::from(known) }
    }

    #[cold]
    fn learn(word: u64, layout: &Layout, mask: &AtomicU32) -> Self {
        let buckets = Self::up_to(word, u64::from((word as u32).wrapping_sub(1)).min(layout.buckets_max - 1));
        mask.store(buckets.mask as u32, Relaxed);
        buckets
    }

    /// The buckets of a word, limited to a possible number, since the file may be damaged.
    #[inline]
    pub(crate) fn checked(word: u64, layout: &Layout) -> Self {
        Self::of_word(word, (word & u64::from(u32::MAX)).clamp(layout.buckets, layout.buckets_max))
    }

    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.last + 1
    }

    /// Whether the word itself counts a possible number of buckets.
    pub(crate) fn is_within_bounds(self) -> bool {
        self.count() == self.word & u64::from(u32::MAX)
    }

    /// The number of steps so far, modulo 2^32.
    pub(crate) fn steps(self) -> u64 {
        self.word >> STEPS_SHIFT
    }

    /// The buckets after a step to another count.
    pub(crate) fn step_to(self, count: u64) -> Self {
        Self::of_word((self.steps().wrapping_add(1) << STEPS_SHIFT) | count, count)
    }

    /// The bucket of a pick.
    #[inline]
    pub(crate) fn of(self, pick: u32) -> u64 {
        let bucket = u64::from(pick) & self.mask;
        if bucket <= self.last { bucket } else { bucket & (self.mask >> 1) }
    }

    /// Whether a bucket belongs to a key.
    pub(crate) fn are_of(self, place: &Place, bucket: u64) -> bool {
        place.picks.iter().any(|pick| self.of(*pick) == bucket)
    }

    /// The bucket that the last one was split from, and would be merged into.
    pub(crate) fn origin_of_last(self) -> u64 {
        self.last - (1 << self.last.ilog2())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_moves_keys_of_one_bucket_to_the_last_and_no_others() {
        for count in 2..200_u64 {
            let (before, after) = (Buckets::new(count), Buckets::new(count).step_to(count + 1));
            assert_eq!((after.count(), after.steps()), (count + 1, 1));
            for pick in (0..2_000_u32).map(|pick| pick.wrapping_mul(0x9e37_79b9)) {
                let (from, to) = (before.of(pick), after.of(pick));
                assert!(from < count && (from == to || (to == count && from == after.origin_of_last())));
            }
        }
    }

    #[test]
    fn every_bucket_has_picks() {
        for count in 2..70_u64 {
            let mut met = vec![0; count as usize];
            (0..128).for_each(|pick| met[Buckets::new(count).of(pick) as usize] += 1);
            assert!(met.iter().all(|met| *met >= 1), "{count}: {met:?}");
        }
    }

    #[test]
    fn a_damaged_count_is_limited_to_a_possible_one() {
        let layout = Layout::new(1 << 20, 1024, None).unwrap();
        assert_eq!(Buckets::checked(7 << 32, &layout).count(), layout.buckets);
        assert_eq!(Buckets::checked(u64::MAX, &layout).count(), layout.buckets_max);
        assert_eq!(Buckets::checked((7 << 32) | layout.buckets, &layout).steps(), 7);
        for count in [0, 1, 2, layout.buckets_max, layout.buckets_max + 1, u64::from(u32::MAX)] {
            let mask = AtomicU32::new(0);
            let buckets = Buckets::bounded((7 << 32) | count, &layout, &mask);
            assert_eq!(Buckets::bounded((7 << 32) | count, &layout, &mask), buckets);
            let picks = (0..1000_u32).map(|pick| pick.wrapping_mul(0x9e37_79b9)).chain([u32::MAX]);
            assert!(picks.map(|pick| buckets.of(pick)).all(|bucket| bucket < layout.buckets_max), "{count}");
            assert!((1..=layout.buckets_max).contains(&buckets.count()));
        }
    }
}
