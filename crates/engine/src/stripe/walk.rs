//! An order to visit all buckets of a stripe in while the index may grow and shrink.
//!
//! Buckets are visited by the low bits of their numbers, counted up from the highest of these bits. A split and a
//! merge move slots only between buckets of the same low bits, so both of them were visited, or neither (the scan of
//! Redis, by P. Noordhuis). A bucket may be visited twice, but none is left out.

use crate::format::buckets::Buckets;

/// The state of such a walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    place: u64,
    is_over: bool,
}

impl Walk {
    /// The present buckets of the walk: those of one class, of which the second may have been split from the first.
    /// `None` if all were visited.
    pub(crate) fn class(self, buckets: Buckets) -> Option<(u64, Option<u64>)> {
        let whole = whole_of(buckets);
        let first = self.place & (whole - 1);
        let second = Some(first + whole).filter(|second| *second < buckets.count());
        (!self.is_over).then_some((first, second))
    }

    /// The walk after that class.
    pub(crate) fn next(self, buckets: Buckets) -> Self {
        let whole = whole_of(buckets);
        let place = (self.place | !(whole - 1)).reverse_bits().wrapping_add(1).reverse_bits();
        Self { place, is_over: place == 0 }
    }
}

/// The largest power of two up to the count: the number of classes.
fn whole_of(buckets: Buckets) -> u64 {
    1 << buckets.count().ilog2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The walk meets every key that stays while the table grows and shrinks at random.
        #[test]
        fn keys_that_stay_are_met(start in 2..70_u64, steps in prop::collection::vec(0..5_u8, 400)) {
            let mut buckets = Buckets::new(start);
            let picks: Vec<u32> = (0..300_u32).map(|pick| pick.wrapping_mul(0x9e37_79b9)).collect();
            let mut met = vec![false; picks.len()];
            let (mut walk, mut steps) = (Walk::default(), steps.into_iter().cycle());
            while let Some((first, second)) = walk.class(buckets) {
                for (pick, met) in picks.iter().zip(&mut met) {
                    let bucket = buckets.of(*pick);
                    *met |= bucket == first || Some(bucket) == second;
                }
                walk = walk.next(buckets);
                match steps.next() {
                    Some(0) => buckets = buckets.step_to(buckets.count() + 1),
                    Some(1) if buckets.count() > 2 => buckets = buckets.step_to(buckets.count() - 1),
                    _ => {}
                }
            }
            prop_assert!(met.iter().all(|met| *met));
        }
    }
}
