//! When to renew a certificate, and when to try again: pure functions of times.

use std::time::{Duration, SystemTime};

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::clock::{of_unix_seconds, unix_seconds};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// How long a failure holds up the next attempt: this after the first, twice as long after each that follows, up to the most.
const BACK_OFF: Duration = MINUTE;
const BACK_OFF_MAX: Duration = Duration::from_hours(6);

/// After this time a process tries again that was started since the failure: its operator may have mended what was wrong. A process that
/// is started over and over still doesn't spend the limits of its authority.
const AFTER_START: Duration = Duration::from_mins(10);

/// Where the authority says nothing useful of renewals, it is asked again after this time.
pub(super) const ASK_AGAIN: Duration = HOUR;

/// The time that an authority suggests for a renewal (RFC 9773, section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) start: SystemTime,
    pub(super) end: SystemTime,
}

/// The times of a certificate, and its share of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Lifetime {
    pub(super) not_before: SystemTime,
    pub(super) not_after: SystemTime,
    /// From 0 to 1.
    pub(super) share: f64,
}

impl Lifetime {
    fn length(&self) -> Duration {
        self.not_after.duration_since(self.not_before).unwrap_or_default()
    }

    /// When to renew. In the authority's window, a random point; else at two thirds of the lifetime, however short that is. Never later than
    /// at nine tenths, whatever the authority says: a renewal may take several attempts.
    pub(super) fn renewal(&self, window: Option<Window>) -> SystemTime {
        let latest = self.not_after - self.length() / 10;
        let point = match window.filter(|window| window.end > window.start) {
            Some(Window { start, end }) => {
                start + end.duration_since(start).unwrap_or_default().mul_f64(self.share.clamp(0.0, 1.0))
            }
            None => self.not_after - self.length() / 3,
        };
        point.min(latest)
    }

    /// For how long a certificate isn't replaced that was just issued. Authorities and clocks may be wrong, and must not make a loop of
    /// orders.
    pub(super) fn pause(&self) -> Duration {
        (self.length() / 10).min(HOUR)
    }
}

/// A certificate's share of a window: random among certificates, and the same in every process and after a restart, since it is made of
/// the certificate.
pub(super) fn share(certificate: &[u8]) -> f64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest(&SHA256, certificate).as_ref()[..8]);
    // The upper 53 bits: as many as a float holds.
    (u64::from_be_bytes(bytes) >> 11) as f64 / (1_u64 << 53) as f64
}

/// When to ask the authority again for its window: as it says, within a minute and a day (RFC 9773, section 4.3.2).
pub(super) fn ask_again(now: SystemTime, wanted: Duration) -> SystemTime {
    now + wanted.clamp(MINUTE, DAY)
}

/// The attempts to get a certificate. All processes share this by a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Attempts {
    /// Those that failed since the last success.
    pub(super) failures: u32,
    /// When the last one ended, in seconds since 1970.
    pub(super) last: u64,
    /// When the next one may begin, in seconds since 1970.
    pub(super) next: u64,
    /// Whether the authority said when.
    pub(super) is_told: bool,
    /// When a certificate was issued, in seconds since 1970.
    pub(super) issued: u64,
    /// Why the last one failed.
    pub(super) error: Option<String>,
}

impl Attempts {
    /// Notes a failure. `told` is how long the authority wants to be left alone (Retry-After; RFC 8555, section 6.6), `chance` from 0 to 1.
    pub(super) fn failed(&mut self, now: SystemTime, error: String, told: Option<Duration>, chance: f64) {
        self.failures = self.failures.saturating_add(1);
        self.last = unix_seconds(now);
        let pause = back_off(self.failures, chance);
        self.next = unix_seconds(now + told.map_or(pause, |told| told.max(pause).min(7 * DAY)));
        self.is_told = told.is_some();
        self.error = Some(error);
    }

    /// Notes a success.
    pub(super) fn succeeded(&mut self, now: SystemTime) {
        *self = Self { last: unix_seconds(now), issued: unix_seconds(now), ..Self::default() };
    }

    /// When the next attempt may begin, in a process that was started then.
    pub(super) fn next(&self, started: SystemTime) -> SystemTime {
        let next = of_unix_seconds(self.next);
        if self.is_told || self.last >= unix_seconds(started) {
            return next;
        }
        next.min(of_unix_seconds(self.last) + AFTER_START)
    }

    /// Until when a certificate that was issued isn't replaced.
    pub(super) fn pause(&self, lifetime: &Lifetime) -> SystemTime {
        of_unix_seconds(self.issued) + lifetime.pause()
    }
}

/// How long to wait after so many failures in a row: from three quarters to five quarters, by chance, of what doubles each time.
fn back_off(failures: u32, chance: f64) -> Duration {
    let doubled = BACK_OFF.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(BACK_OFF_MAX).mul_f64(0.75 + chance.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_800_000_000;

    fn at(hours: u64) -> SystemTime {
        of_unix_seconds(START + hours * 3600)
    }

    fn lifetime(hours: u64, share: f64) -> Lifetime {
        Lifetime { not_before: at(0), not_after: at(hours), share }
    }

    #[test]
    fn without_a_window_two_thirds_of_the_lifetime_go_by_however_short() {
        assert_eq!(lifetime(90 * 24, 0.5).renewal(None), at(60 * 24));
        assert_eq!(lifetime(6 * 24, 0.5).renewal(None), at(4 * 24));
        assert_eq!(lifetime(3, 0.5).renewal(None), at(2));
        assert_eq!(lifetime(0, 0.5).renewal(None), at(0));
        // A window that ends before it starts is none (RFC 9773, section 4.2).
        let window = Window { start: at(5), end: at(5) };
        assert_eq!(lifetime(90 * 24, 0.5).renewal(Some(window)), at(60 * 24));
    }

    #[test]
    fn in_a_window_each_certificate_has_its_point() {
        let window = Window { start: at(100), end: at(200) };
        for (share, hours) in [(0.0, 100), (0.25, 125), (1.0, 200)] {
            assert_eq!(lifetime(1000, share).renewal(Some(window)), at(hours));
        }
        // Revoked: the window is over.
        let window = Window { start: of_unix_seconds(START - 7200), end: of_unix_seconds(START - 3600) };
        assert!(lifetime(1000, 0.5).renewal(Some(window)) < at(0));
        // Later than is safe.
        let window = Window { start: at(990), end: at(2000) };
        assert_eq!(lifetime(1000, 0.5).renewal(Some(window)), at(900));
    }

    #[test]
    fn shares_are_spread_and_each_stays() {
        let shares: Vec<f64> = (0..1000_u32).map(|number| share(&number.to_be_bytes())).collect();
        for tenth in 0..10 {
            let of_tenth = shares.iter().filter(|share| (**share * 10.0) as u32 == tenth).count();
            assert!((50..200).contains(&of_tenth), "{of_tenth} of 1000 in tenth {tenth}");
        }
        assert!((share(&7_u32.to_be_bytes()) - shares[7]).abs() < f64::EPSILON);
    }

    #[test]
    fn the_authority_is_asked_again_when_it_says_within_reason() {
        for (told, expected) in [(0, 60), (59, 60), (21_600, 21_600), (1_000_000, 86_400)] {
            assert_eq!(ask_again(at(0), Duration::from_secs(told)), of_unix_seconds(START + expected));
        }
    }

    #[test]
    fn attempts_back_off_from_a_minute_to_six_hours() {
        let mut attempts = Attempts::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            attempts.failed(at(0), "no".to_owned(), None, 0.5);
            waits.push((attempts.next - START) / 60);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360]);
        attempts.failures = u32::MAX;
        attempts.failed(at(0), "no".to_owned(), None, 0.0);
        assert_eq!(attempts.next - START, 6 * 3600 * 3 / 4);
        attempts.failed(at(0), "no".to_owned(), None, 1.0);
        assert_eq!(attempts.next - START, 6 * 3600 * 5 / 4);
        attempts.succeeded(at(1));
        assert_eq!((attempts.failures, attempts.next, attempts.error.as_deref()), (0, 0, None));
        assert_eq!(attempts.pause(&lifetime(100, 0.0)), at(2));
        assert_eq!(attempts.pause(&lifetime(5, 0.0)), at(1) + HOUR / 2);
    }

    #[test]
    fn an_authority_that_says_when_is_obeyed_for_a_week() {
        let mut attempts = Attempts::default();
        attempts.failed(at(0), "too many".to_owned(), Some(Duration::from_hours(50)), 0.5);
        assert_eq!(attempts.next(at(1)), at(50));
        attempts.failed(at(0), "too many".to_owned(), Some(Duration::from_secs(u64::MAX / 4)), 0.5);
        assert_eq!(attempts.next(at(0)), at(7 * 24));
        // Not sooner than we would have come by ourselves.
        attempts.failed(at(0), "too many".to_owned(), Some(Duration::ZERO), 0.5);
        assert_eq!(attempts.next(at(0)), of_unix_seconds(START + 4 * 60));
    }

    #[test]
    fn a_restart_tries_again_sooner_but_not_at_once() {
        let mut attempts = Attempts::default();
        for _ in 0..9 {
            attempts.failed(at(0), "no".to_owned(), None, 0.5);
        }
        let next = |started| unix_seconds(attempts.next(started)) - START;
        assert_eq!(next(at(0)), 256 * 60);
        assert_eq!(next(at(1)), 600);
    }
}
