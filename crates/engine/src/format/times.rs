//! How long an entry is fresh, and how long it may be used as a stale one after that.
//!
//! ```text
//!  63                     32 31                      0
//! +------------------------+-------------------------+
//! | stale for, after fresh | fresh for, after created |     each: exponent 4 | mantissa 28; all ones: for ever
//! +------------------------+-------------------------+
//! ```
//!
//! A duration is `mantissa x 2^exponent` milliseconds. It is exact up to 74 hours. Above, it is rounded down by less
//! than 2^-27 of itself, up to 278 years.

use std::time::Duration;

/// All ones: without end.
const EVER: u32 = u32::MAX;
const MANTISSA_BITS: u32 = 28;
/// Entries that other processes put just now may have a creation time that is ahead by less than this.
const SKEW_MS: u64 = 2000;

/// Two durations in one word, which changes in one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times(pub(crate) u64);

/// The phase of an entry's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Valid.
    Fresh,
    /// Expired, but its writer allowed it to be used for a while.
    Stale,
    /// Counts as absent.
    Over,
}

fn pack(duration: Option<Duration>) -> u32 {
    let Some(duration) = duration else { return EVER };
    if duration.is_zero() {
        return 0;
    }
    pack_ms(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn pack_ms(ms: u64) -> u32 {
    let bits = u64::BITS - ms.leading_zeros();
    let exponent = bits.saturating_sub(MANTISSA_BITS);
    if exponent > 15 {
        return EVER - 1;
    }
    ((exponent << MANTISSA_BITS) | (ms >> exponent) as u32).min(EVER - 1)
}

/// In milliseconds; `None`: without end.
fn unpack(packed: u32) -> Option<u64> {
    let mantissa = u64::from(packed & ((1 << MANTISSA_BITS) - 1));
    (packed != EVER).then(|| mantissa << (packed >> MANTISSA_BITS))
}

impl Times {
    /// Fresh until evicted.
    #[cfg(test)]
    pub(crate) const EVER: Self = Self(EVER as u64);

    /// `fresh` is `None` for a time without end.
    pub(crate) fn new(fresh: Option<Duration>, stale: Duration) -> Self {
        Self(u64::from(pack(fresh)) | (u64::from(pack(Some(stale))) << 32))
    }

    /// From two spans after the creation, in milliseconds; `None` is a time without end.
    pub(crate) fn of(fresh: Option<u64>, usable: Option<u64>) -> Self {
        let stale = match (fresh, usable) {
            (Some(fresh), Some(usable)) => pack_ms(usable.saturating_sub(fresh)),
            (Some(_), None) => EVER,
            (None, _) => 0,
        };
        Self(u64::from(fresh.map_or(EVER, pack_ms)) | (u64::from(stale) << 32))
    }

    /// Whether it is fresh without end, so that no clock has to be read.
    #[inline]
    pub(crate) fn is_ever(self) -> bool {
        self.0 as u32 == EVER
    }

    /// How long after its creation the entry stays fresh, in milliseconds.
    pub(crate) fn fresh_for(self) -> Option<u64> {
        unpack(self.0 as u32)
    }

    /// How long after its creation the entry may be used at all, fresh or stale.
    pub(crate) fn usable_for(self) -> Option<u64> {
        let fresh = self.fresh_for()?;
        Some(fresh + unpack((self.0 >> 32) as u32)?)
    }

    /// The phase of an entry that was created at `created`. An entry from the future is over, since its clock meant
    /// something else, unless it is fresh without end. A small difference is allowed: two processes don't agree to
    /// the millisecond how long the machine has slept.
    #[inline]
    pub(crate) fn phase(self, created: u64, now: impl FnOnce() -> u64) -> Phase {
        if self.is_ever() {
            return Phase::Fresh;
        }
        let Some(age) = now().saturating_add(SKEW_MS).checked_sub(created) else { return Phase::Over };
        let age = age.saturating_sub(SKEW_MS);
        if self.fresh_for().is_none_or(|fresh| age < fresh) {
            Phase::Fresh
        } else if self.usable_for().is_none_or(|usable| age < usable) {
            Phase::Stale
        } else {
            Phase::Over
        }
    }

    /// The same ends, counted from a creation that lies `shift` milliseconds earlier.
    pub(crate) fn later(self, shift: u64) -> Self {
        Self::of(self.fresh_for().map(|fresh| fresh + shift), self.usable_for().map(|usable| usable + shift))
    }

    /// Stale from the start, and usable until the same time.
    pub(crate) fn staled(self) -> Self {
        Self::of(Some(0), self.usable_for())
    }

    /// Whether neither end comes before that of `other`.
    pub(crate) fn outlasts(self, other: Self) -> bool {
        let ends = |times: Self| [times.fresh_for(), times.usable_for()].map(|end| end.unwrap_or(u64::MAX));
        ends(self).iter().zip(ends(other)).all(|(mine, theirs)| *mine >= theirs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_duration_is_rounded_down_by_little(ms in 0..1_u64 << 43) {
            let back = unpack(pack_ms(ms)).unwrap();
            prop_assert!(back <= ms && ms - back <= ms >> 27);
            prop_assert!(ms >= 1 << 28 || back == ms);
        }

        #[test]
        fn longer_never_packs_shorter(one in 0..1_u64 << 50, two in 0..1_u64 << 50) {
            prop_assert_eq!(pack_ms(one.min(two)) <= pack_ms(one.max(two)), true);
        }
    }

    #[test]
    fn an_entry_is_fresh_then_stale_then_over() {
        let times = Times::new(Some(Duration::from_millis(100)), Duration::from_millis(50));
        for (now, phase) in [(1000, Phase::Fresh), (1099, Phase::Fresh), (1100, Phase::Stale), (1150, Phase::Over)] {
            assert_eq!(times.phase(1000, || now), phase, "{now}");
        }
        assert_eq!(times.phase(5000, || 4999), Phase::Fresh, "another process's clock is a little ahead");
        assert_eq!(times.phase(5000, || 2999), Phase::Over, "from the future");
        assert_eq!(Times::EVER.phase(1000, || 0), Phase::Fresh);
        assert_eq!(Times::new(Some(Duration::ZERO), Duration::ZERO).phase(7, || 7), Phase::Over);
        assert_eq!(Times::new(Some(Duration::MAX), Duration::MAX).phase(0, || 1 << 42), Phase::Fresh);
    }

    #[test]
    fn a_staled_entry_stays_usable_as_long_as_before() {
        let times = Times::new(Some(Duration::from_millis(100)), Duration::from_millis(50)).staled();
        assert_eq!([0, 149, 150].map(|now| times.phase(0, || now)), [Phase::Stale, Phase::Stale, Phase::Over]);
        assert_eq!(Times::EVER.staled().phase(0, || 1 << 60), Phase::Stale);
    }

    #[test]
    fn later_times_outlast_earlier_ones() {
        let times = Times::new(Some(Duration::from_secs(1)), Duration::from_secs(2));
        assert!(times.later(500).outlasts(times) && !times.outlasts(times.later(500)));
        assert!(Times::EVER.outlasts(times) && !times.outlasts(Times::EVER));
        assert!(!Times::new(None, Duration::ZERO).staled().outlasts(Times::EVER), "fresh no more");
        assert_eq!(Times::EVER.later(9), Times::EVER);
    }
}
