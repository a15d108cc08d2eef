//! The arithmetic of token buckets, and the one bucket of all clients together.
//!
//! A bucket is one time: when it will be full again, if no request comes (the generic cell rate algorithm). A request moves that
//! time on by the interval between two requests, and is refused if the time is further away than the burst allows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toml::Spanned;

use crate::config::value::Within;

const SECOND: u64 = 1_000_000_000;

/// How often requests may come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rate {
    pub(super) per_second: u64,
    /// How many may come at once after a pause.
    pub(super) burst: u64,
}

impl Rate {
    pub(super) fn of<const MAX: u64>(
        per_second: Option<Within<1, MAX>>,
        burst: Option<&Spanned<Within<1, MAX>>>,
    ) -> Option<Self> {
        let per_second = per_second?.0;
        Some(Self { per_second, burst: burst.map_or(per_second, |burst| burst.get_ref().0) })
    }

    /// Nanoseconds between two requests.
    fn interval(self) -> u64 {
        SECOND / self.per_second
    }

    /// Whether a bucket that will be full then has a token now, in nanoseconds.
    ///
    /// # Errors
    /// The seconds until it has one.
    pub(super) fn check(self, full_at: u64, now: u64) -> Result<(), u64> {
        let allowed = now.saturating_add(self.interval().saturating_mul(self.burst - 1));
        if full_at > allowed { Err((full_at - allowed).div_ceil(SECOND).max(1)) } else { Ok(()) }
    }

    /// When the bucket will be full without this token.
    pub(super) fn without_one(self, full_at: u64, now: u64) -> u64 {
        full_at.max(now).saturating_add(self.interval())
    }

    /// When a bucket of another rate will be full that lacks as many tokens as this one: all of them at most.
    pub(super) fn converted(self, other: Self, full_at: u64, now: u64) -> u64 {
        let lacking = full_at.saturating_sub(now).div_ceil(self.interval().max(1)).min(other.burst);
        now.saturating_add(lacking.saturating_mul(other.interval()))
    }
}

/// The bucket of all clients.
pub(super) struct Total {
    rate: Rate,
    began: Instant,
    /// Nanoseconds from the beginning to when it is full. It is a number of its own, so it needs no ordering.
    full_at: AtomicU64,
}

impl Total {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, began: Instant::now(), full_at: AtomicU64::new(0) }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// The same bucket for another rate.
    pub(super) fn renewed(&self, rate: Rate) -> Self {
        let full_at = self.rate.converted(rate, self.full_at.load(Ordering::Relaxed), self.now());
        Self { rate, began: self.began, full_at: AtomicU64::new(full_at) }
    }

    /// Whether there is a token.
    ///
    /// # Errors
    /// The seconds until there is one.
    pub(super) fn check(&self) -> Result<(), u64> {
        self.rate.check(self.full_at.load(Ordering::Relaxed), self.now())
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The seconds until there is one.
    pub(super) fn take(&self) -> Result<(), u64> {
        let now = self.now();
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            self.rate.check(full_at, now)?;
            let next = self.rate.without_one(full_at, now);
            match self.full_at.compare_exchange_weak(full_at, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(other) => full_at = other,
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_together_get_the_burst() {
        let total = Total::new(Rate { per_second: 1, burst: 1000 });
        let taken: usize = std::thread::scope(|scope| {
            let take = || (0..1000).filter(|_| total.take().is_ok()).count();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        // A token comes each second.
        assert!((1000..1100).contains(&taken), "{taken}");
        assert!(total.check().is_err());
    }

    #[test]
    fn another_rate_finds_the_tokens_that_are_left() {
        let (slow, fast) = (Rate { per_second: 1, burst: 100 }, Rate { per_second: 1000, burst: 50 });
        // Ten are lacking, and all.
        for (full_at, expected) in [(17, 17 - 7), (107, 50)] {
            let converted = slow.converted(fast, full_at * SECOND, 7 * SECOND);
            assert_eq!(converted, 7 * SECOND + expected * (SECOND / 1000));
        }
        assert_eq!(fast.converted(slow, 3, 7), 7, "a full one is full");
    }
}
