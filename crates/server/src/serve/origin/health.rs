//! The health of origins, and the choice among several.
//!
//! ```text
//!            failures in a row               its time is over
//!   well ──────────────────────> ejected ─────────────────────> on trial: one request
//!     ^                             ^                              │        │
//!     │                             └── twice as long, bounded ────┘ fails  │
//!     └─────────────────────────────────────────────────────────────────────┘ answers
//! ```
//! An origin that fails its health checks is also left out, until it passes some. If all are out, requests go to the one whose
//! last failure is longest ago.
//!
//! All workers share it, under one lock that is held for a few instructions, and only by misses. The caller passes all times.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;

use crate::config::value::Statuses;

/// The thresholds for leaving an origin out, and the times.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HealthRules {
    /// Failures in a row that eject it; at least 1.
    pub(crate) failures_max: u32,
    /// The time of the first ejection; each further one in a row doubles it.
    pub(crate) ejection_min: Duration,
    /// The longest ejection.
    pub(crate) ejection_max: Duration,
    /// Failed checks in a row that leave it out; at least 1.
    pub(crate) checks_failed_max: u32,
    /// Passed checks in a row that bring it back; at least 1.
    pub(crate) checks_passed_min: u32,
}

impl Default for HealthRules {
    fn default() -> Self {
        Self {
            failures_max: 3,
            ejection_min: Duration::from_secs(1),
            ejection_max: Duration::from_mins(1),
            checks_failed_max: 2,
            checks_passed_min: 1,
        }
    }
}

/// The request of a health check, and its expected response.
#[derive(Debug, Clone)]
pub(crate) struct HealthCheck {
    pub(crate) path: PathAndQuery,
    pub(crate) interval: Duration,
    /// The timeout of a response.
    pub(crate) timeout: Duration,
    /// The statuses of a healthy origin.
    pub(crate) statuses: Vec<Statuses>,
}

/// The health of the origins of a site.
pub(crate) struct Health {
    rules: HealthRules,
    state: Mutex<State>,
}

struct State {
    /// The next origin of the round robin.
    next: usize,
    origins: Vec<Condition>,
}

#[derive(Clone, Default)]
struct Condition {
    failures_in_row: u32,
    failed_at: Option<Instant>,
    ejections_in_row: u32,
    ejected_until: Option<Instant>,
    /// Its ejection is over and one request tries it; no other request does until `ejected_until`.
    is_on_trial: bool,
    checks_failed_in_row: u32,
    checks_passed_in_row: u32,
    /// Whether its checks say so.
    is_out: bool,
    /// The last reported state. An outage is reported once, however many requests fail.
    is_told_to_fail: bool,
}

impl Condition {
    fn is_ejected(&self, now: Instant) -> bool {
        self.ejected_until.is_some_and(|until| now < until)
    }

    fn eject(&mut self, rules: &HealthRules, now: Instant) {
        let doubled = 1_u32.checked_shl(self.ejections_in_row.saturating_sub(1)).unwrap_or(u32::MAX);
        let time = rules.ejection_min.saturating_mul(doubled).min(rules.ejection_max);
        self.ejected_until = now.checked_add(time);
    }
}

impl Health {
    pub(crate) fn new(rules: HealthRules, origins: usize) -> Self {
        Self { rules, state: Mutex::new(State { next: 0, origins: vec![Condition::default(); origins] }) }
    }

    /// Takes over what another one knows of an origin.
    pub(crate) fn take_over(&self, origin: usize, from: &Self, their_origin: usize) {
        let Some(known) = from.lock().origins.get(their_origin).cloned() else { return };
        self.change(origin, |condition| {
            *condition = known;
            true
        });
    }

    /// The number of the next healthy origin in turn; `but` only if there is no other.
    pub(crate) fn choose(&self, now: Instant, but: Option<usize>) -> usize {
        let mut state = self.lock();
        let count = state.origins.len();
        let others = || (0..count).filter(|origin| Some(*origin) != but);
        let next = state.next;
        let well = |origin: &usize| {
            let condition = &state.origins[*origin];
            !condition.is_ejected(now) && !condition.is_out
        };
        let turn = |origin: &usize| (*origin + count - next % count.max(1)) % count.max(1);
        let Some(chosen) = others().filter(well).min_by_key(turn) else {
            return others().min_by_key(|origin| (state.origins[*origin].failed_at, turn(origin))).unwrap_or(0);
        };
        state.next = chosen + 1;
        let condition = &mut state.origins[chosen];
        if condition.ejected_until.is_some() {
            condition.is_on_trial = true;
            condition.eject(&self.rules, now);
        }
        chosen
    }

    /// Whether the origin is in use.
    pub(crate) fn is_well(&self, origin: usize, now: Instant) -> bool {
        self.lock().origins.get(origin).is_some_and(|condition| !condition.is_ejected(now) && !condition.is_out)
    }

    /// Notes a response. True if the state has changed.
    pub(crate) fn succeeded(&self, origin: usize) -> bool {
        self.change(origin, |condition| {
            let was_failing = condition.is_told_to_fail;
            *condition = Condition {
                failed_at: condition.failed_at,
                checks_failed_in_row: condition.checks_failed_in_row,
                checks_passed_in_row: condition.checks_passed_in_row,
                is_out: condition.is_out,
                ..Condition::default()
            };
            was_failing
        })
    }

    /// Notes a failure. True if the state has changed.
    pub(crate) fn failed(&self, origin: usize, now: Instant) -> bool {
        self.change(origin, |condition| {
            condition.failures_in_row = condition.failures_in_row.saturating_add(1);
            condition.failed_at = Some(now);
            // A request from before the ejection that fails now is no further failure.
            let counts = condition.is_on_trial || !condition.is_ejected(now);
            if counts && condition.failures_in_row >= self.rules.failures_max {
                condition.is_on_trial = false;
                condition.ejections_in_row = condition.ejections_in_row.saturating_add(1);
                condition.eject(&self.rules, now);
            }
            !std::mem::replace(&mut condition.is_told_to_fail, true)
        })
    }

    /// Notes the result of a check. True if the origin is now in or out.
    pub(crate) fn checked(&self, origin: usize, is_well: bool, now: Instant) -> bool {
        self.change(origin, |condition| {
            let was_out = condition.is_out;
            if is_well {
                condition.checks_failed_in_row = 0;
                condition.checks_passed_in_row = condition.checks_passed_in_row.saturating_add(1);
                condition.is_out &= condition.checks_passed_in_row < self.rules.checks_passed_min;
            } else {
                condition.checks_passed_in_row = 0;
                condition.checks_failed_in_row = condition.checks_failed_in_row.saturating_add(1);
                condition.failed_at = Some(now);
                condition.is_out |= condition.checks_failed_in_row >= self.rules.checks_failed_max;
            }
            was_out != condition.is_out
        })
    }

    fn change(&self, origin: usize, change: impl FnOnce(&mut Condition) -> bool) -> bool {
        self.lock().origins.get_mut(origin).is_some_and(change)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: HealthRules = HealthRules {
        failures_max: 2,
        ejection_min: Duration::from_secs(10),
        ejection_max: Duration::from_secs(35),
        checks_failed_max: 2,
        checks_passed_min: 2,
    };

    fn fail(health: &Health, origin: usize, now: Instant) {
        for _ in 0..RULES.failures_max {
            health.failed(origin, now);
        }
    }

    fn choices<const N: usize>(health: &Health, now: Instant) -> [usize; N] {
        std::array::from_fn(|_| health.choose(now, None))
    }

    #[test]
    fn healthy_origins_take_turns() {
        let (health, now) = (Health::new(RULES, 3), Instant::now());
        assert_eq!(choices(&health, now), [0, 1, 2, 0]);
        assert_eq!(health.choose(now, Some(1)), 2);
        fail(&health, 1, now);
        assert_eq!(choices(&health, now), [0, 2, 0, 2]);
    }

    #[test]
    fn failures_count_only_in_a_row() {
        let (health, now) = (Health::new(RULES, 2), Instant::now());
        health.failed(0, now);
        health.succeeded(0);
        health.failed(0, now);
        assert_eq!(choices(&health, now), [0, 1]);
    }

    #[test]
    fn one_request_tries_an_ejected_origin_and_each_ejection_is_longer_up_to_a_bound() {
        let (health, start) = (Health::new(RULES, 2), Instant::now());
        let mut now = start;
        fail(&health, 0, now);
        for seconds in [10, 20, 35, 35] {
            assert_eq!(choices(&health, now + Duration::from_millis(seconds * 1000 - 1)), [1, 1]);
            now += Duration::from_secs(seconds);
            assert_eq!(
                choices::<3>(&health, now).iter().filter(|chosen| **chosen == 0).count(),
                1,
                "after {seconds} s"
            );
            health.failed(0, now);
        }
        now += Duration::from_secs(35);
        choices::<2>(&health, now);
        health.succeeded(0);
        assert_eq!(choices::<4>(&health, now).iter().filter(|chosen| **chosen == 0).count(), 2);
        fail(&health, 0, now);
        assert_eq!(choices::<2>(&health, now + Duration::from_secs(9)), [1, 1], "it begins with the short time again");
        assert!(choices::<2>(&health, now + Duration::from_secs(10)).contains(&0));
    }

    #[test]
    fn a_trial_that_never_ends_is_followed_by_another() {
        let (health, start) = (Health::new(RULES, 2), Instant::now());
        fail(&health, 0, start);
        for count in 1..4 {
            let now = start + Duration::from_secs(10 * count);
            assert_eq!(choices::<3>(&health, now).iter().filter(|chosen| **chosen == 0).count(), 1);
        }
    }

    #[test]
    fn if_all_are_out_the_one_whose_failure_is_longest_ago_is_chosen() {
        let (health, start) = (Health::new(RULES, 3), Instant::now());
        for (origin, second) in [(1, 0), (2, 1), (0, 2)] {
            fail(&health, origin, start + Duration::from_secs(second));
        }
        let now = start + Duration::from_secs(3);
        assert_eq!(choices(&health, now), [1, 1]);
        assert_eq!(health.choose(now, Some(1)), 2);
        let alone = Health::new(RULES, 1);
        fail(&alone, 0, now);
        assert_eq!((alone.choose(now, None), alone.choose(now, Some(0))), (0, 0));
    }

    #[test]
    fn checks_leave_it_out_until_enough_are_passed() {
        let (health, now) = (Health::new(RULES, 2), Instant::now());
        assert!(!health.checked(0, false, now));
        assert_eq!(choices(&health, now), [0, 1]);
        assert!(health.checked(0, false, now), "out, which is news");
        assert!(!health.checked(0, false, now));
        assert_eq!(choices(&health, now), [1, 1]);
        assert!(!health.checked(0, true, now), "one is not enough");
        assert!(!health.checked(0, false, now));
        assert!(!health.checked(0, true, now));
        assert_eq!(choices(&health, now), [1, 1]);
        assert!(health.checked(0, true, now), "in again, which is news");
        assert!(choices::<2>(&health, now).contains(&0));
    }

    #[test]
    fn what_another_knows_of_an_origin_is_taken_over() {
        let (old, new, now) = (Health::new(RULES, 1), Health::new(RULES, 2), Instant::now());
        fail(&old, 0, now);
        new.take_over(1, &old, 0);
        assert_eq!(choices(&new, now), [0, 0]);
        assert!(new.succeeded(1), "that it fails was known, so that this is news");
    }

    #[test]
    fn news_is_told_once() {
        let (health, now) = (Health::new(RULES, 1), Instant::now());
        assert!(!health.succeeded(0));
        assert_eq!([health.failed(0, now), health.failed(0, now), health.failed(0, now)], [true, false, false]);
        assert_eq!([health.succeeded(0), health.succeeded(0)], [true, false]);
        assert!(health.failed(0, now));
    }
}
