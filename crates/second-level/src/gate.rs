//! The gate before the store: it decides whether a client waits for the store, and how long.
//!
//! ```text
//!         three failures in a row, or it costs more time than it saves
//! closed ───────────────────────────────────────────────────────────────> open: clients don't wait
//!    ^                                                                      │ after a pause
//!    │ eight good answers in a row                                          v
//!    └───────────────────────────────────────────────────────────────── probing: one question at a time, for which no client waits
//!                                                  open, twice as long <──── a bad answer
//! ```
//! The words are those of a circuit: while it is closed, questions pass. Times are of one clock that never goes back.

use std::time::Duration;

/// So many failures in a row open the gate.
const FAILURES_MAX: u32 = 3;
/// So many good answers to probes close it.
const PROBES: u32 = 8;
/// The first pause and the longest.
const PAUSES_MS: (u64, u64) = (500, 60_000);
/// After this time a probe without an answer is forgotten.
const PROBE_LOST_MS: u64 = 10_000;
/// The gate doesn't judge before so many answers.
const ANSWERS_MIN: f64 = 16.0;
/// The weight of earlier answers is halved whenever there are so many.
const ANSWERS_MAX: f64 = 128.0;
/// A question may cost this much without saving anything. A store that has just been started is empty.
const FREE_MS: f64 = 1.0;
/// A client waits at least this long, even if the origin is faster.
const LIMIT_MIN: Duration = Duration::from_millis(5);
/// The weight of a new time in the origin's mean.
const WEIGHT: f64 = 0.125;

/// What a request does about the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It asks, and waits this long at most.
    Ask(Duration),
    /// It asks, but doesn't wait: the answer only shows how the store is doing.
    Probe(Duration),
    /// It doesn't ask.
    Skip,
}

/// What came of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The store had the object.
    Hit,
    /// The store had no such object.
    Miss,
    /// The store didn't answer in time, or failed.
    Failure,
}

/// Why the gate is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It failed, or didn't answer in time.
    Failures,
    /// It answered, but the questions took more time than the hits saved.
    Slow,
}

/// The gate.
#[derive(Debug)]
pub struct Gate {
    limit_max: Duration,
    state: State,
    failures: u32,
    pause_ms: u64,
    worth: Worth,
    /// The mean time of the origin, once there is one.
    origin_ms: Option<f64>,
    opened: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Closed,
    Open { until_ms: u64, why: Why },
    Probing { good: u32, asked_ms: Option<u64>, why: Why },
}

/// The time that questions took, and that hits saved.
#[derive(Debug, Default)]
struct Worth {
    answers: f64,
    spent_ms: f64,
    hits: f64,
}

impl Worth {
    fn add(&mut self, outcome: Outcome, took_ms: f64) {
        if self.answers >= ANSWERS_MAX {
            (self.answers, self.spent_ms, self.hits) = (self.answers / 2.0, self.spent_ms / 2.0, self.hits / 2.0);
        }
        self.answers += 1.0;
        self.spent_ms += took_ms;
        self.hits += f64::from(u8::from(outcome == Outcome::Hit));
    }

    /// Whether the questions took more time than the hits saved.
    fn is_loss(&self, origin_ms: Option<f64>) -> bool {
        origin_ms.is_some_and(|origin_ms| self.spent_ms > self.hits * origin_ms + self.answers * FREE_MS)
    }
}

impl Gate {
    /// A closed gate. No client waits longer than `limit_max`.
    pub fn new(limit_max: Duration) -> Self {
        Self {
            limit_max,
            state: State::Closed,
            failures: 0,
            pause_ms: PAUSES_MS.0,
            worth: Worth::default(),
            origin_ms: None,
            opened: 0,
        }
    }

    /// Whether the next request asks. Each [`Turn::Ask`] and [`Turn::Probe`] is followed by [`Gate::record`].
    pub fn turn(&mut self, now_ms: u64) -> Turn {
        let limit = self.limit();
        match &mut self.state {
            State::Closed => Turn::Ask(limit),
            State::Open { until_ms, .. } if now_ms < *until_ms => Turn::Skip,
            State::Open { why, .. } => {
                self.state = State::Probing { good: 0, asked_ms: Some(now_ms), why: *why };
                self.worth = Worth::default();
                Turn::Probe(limit)
            }
            State::Probing { asked_ms: Some(asked_ms), .. } if now_ms.saturating_sub(*asked_ms) < PROBE_LOST_MS => {
                Turn::Skip
            }
            State::Probing { asked_ms, .. } => {
                *asked_ms = Some(now_ms);
                Turn::Probe(limit)
            }
        }
    }

    /// What came of a question, and how long it took. `is_probe`: it was a [`Turn::Probe`].
    pub fn record(&mut self, now_ms: u64, is_probe: bool, outcome: Outcome, took: Duration) {
        match (&mut self.state, is_probe) {
            (State::Closed, false) => {
                self.worth.add(outcome, took.as_secs_f64() * 1000.0);
                self.failures = if outcome == Outcome::Failure { self.failures + 1 } else { 0 };
                if self.failures >= FAILURES_MAX {
                    self.open(now_ms, Why::Failures);
                } else if self.worth.answers >= ANSWERS_MIN && self.worth.is_loss(self.origin_ms) {
                    self.open(now_ms, Why::Slow);
                }
            }
            (State::Probing { good, asked_ms, why }, true) => {
                self.worth.add(outcome, took.as_secs_f64() * 1000.0);
                (*good, *asked_ms) = (*good + 1, None);
                let (is_done, why) = (*good >= PROBES, *why);
                if outcome == Outcome::Failure {
                    self.open_longer(now_ms, Why::Failures);
                } else if is_done && self.worth.is_loss(self.origin_ms) {
                    self.open_longer(now_ms, why);
                } else if is_done {
                    self.state = State::Closed;
                    (self.failures, self.pause_ms) = (0, PAUSES_MS.0);
                }
            }
            // The answer to a question of before the gate opened, or closed again.
            (State::Closed | State::Open { .. } | State::Probing { .. }, _) => {}
        }
    }

    /// How long the origin took for a response.
    pub fn origin_took(&mut self, took: Duration) {
        let took_ms = took.as_secs_f64() * 1000.0;
        self.origin_ms = Some(self.origin_ms.map_or(took_ms, |mean| mean + (took_ms - mean) * WEIGHT));
    }

    /// Why the gate is open; `None` while it is closed.
    pub fn why_open(&self) -> Option<Why> {
        match self.state {
            State::Closed => None,
            State::Open { why, .. } | State::Probing { why, .. } => Some(why),
        }
    }

    /// How often it has opened.
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// How long a client waits: not longer than the origin takes.
    fn limit(&self) -> Duration {
        let origin = self.origin_ms.map_or(Duration::MAX, |origin_ms| Duration::from_secs_f64(origin_ms / 1000.0));
        origin.max(LIMIT_MIN).min(self.limit_max)
    }

    fn open(&mut self, now_ms: u64, why: Why) {
        self.state = State::Open { until_ms: now_ms + self.pause_ms, why };
        self.opened += 1;
    }

    fn open_longer(&mut self, now_ms: u64, why: Why) {
        self.pause_ms = (self.pause_ms * 2).min(PAUSES_MS.1);
        self.state = State::Open { until_ms: now_ms + self.pause_ms, why };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_millis(100);

    fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// A gate with an origin that takes 20 ms.
    fn gate() -> Gate {
        let mut gate = Gate::new(LIMIT);
        gate.origin_took(ms(20));
        gate
    }

    fn ask(gate: &mut Gate, now_ms: u64, outcome: Outcome, took: Duration) {
        assert!(matches!(gate.turn(now_ms), Turn::Ask(_)));
        gate.record(now_ms, false, outcome, took);
    }

    /// Opens it by failures at the time 0.
    fn opened() -> Gate {
        let mut gate = gate();
        for _ in 0..FAILURES_MAX {
            ask(&mut gate, 0, Outcome::Failure, ms(20));
        }
        assert_eq!((gate.why_open(), gate.opened()), (Some(Why::Failures), 1));
        gate
    }

    #[test]
    fn a_client_waits_no_longer_than_the_origin_takes() {
        let mut gate = Gate::new(LIMIT);
        assert_eq!(gate.turn(0), Turn::Ask(LIMIT));
        gate.origin_took(ms(20));
        assert_eq!(gate.turn(0), Turn::Ask(ms(20)));
        let mut gate = Gate::new(LIMIT);
        gate.origin_took(ms(1));
        assert_eq!(gate.turn(0), Turn::Ask(LIMIT_MIN));
        gate.origin_took(Duration::from_mins(1));
        assert_eq!(gate.turn(0), Turn::Ask(LIMIT));
    }

    #[test]
    fn failures_in_a_row_open_it_and_single_ones_do_not() {
        let mut gate = gate();
        for _ in 0..100 {
            ask(&mut gate, 0, Outcome::Failure, ms(20));
            ask(&mut gate, 0, Outcome::Hit, ms(1));
            ask(&mut gate, 0, Outcome::Hit, ms(1));
        }
        assert_eq!(gate.why_open(), None);
        assert_eq!(opened().turn(PAUSES_MS.0 - 1), Turn::Skip);
    }

    #[test]
    fn a_store_that_saves_less_than_it_costs_is_not_asked() {
        for (took, hits, is_open) in [(15, false, true), (15, true, false), (30, true, true), (0, false, false)] {
            let mut gate = gate();
            let outcome = if hits { Outcome::Hit } else { Outcome::Miss };
            for _ in 0..ANSWERS_MIN as usize {
                ask(&mut gate, 0, outcome, ms(took));
            }
            assert_eq!(gate.why_open(), is_open.then_some(Why::Slow), "{took} {hits}");
        }
        // Without a time of the origin, nothing is known.
        let mut gate = Gate::new(LIMIT);
        for _ in 0..100 {
            ask(&mut gate, 0, Outcome::Miss, ms(50));
        }
        assert_eq!(gate.why_open(), None);
    }

    #[test]
    fn a_store_that_becomes_slow_is_noticed_soon_however_good_it_was() {
        let mut gate = gate();
        for _ in 0..100_000 {
            ask(&mut gate, 0, Outcome::Hit, ms(1));
        }
        let mut answers = 0;
        while gate.why_open().is_none() {
            ask(&mut gate, 0, Outcome::Miss, ms(19));
            answers += 1;
        }
        assert!(answers < 300, "{answers}");
    }

    #[test]
    fn one_probe_at_a_time_closes_it_after_good_answers() {
        let mut gate = opened();
        let now_ms = PAUSES_MS.0;
        for _ in 0..PROBES {
            assert_eq!(gate.turn(now_ms), Turn::Probe(ms(20)));
            assert_eq!(gate.turn(now_ms), Turn::Skip);
            assert!(gate.why_open().is_some());
            gate.record(now_ms, true, Outcome::Hit, ms(1));
        }
        assert_eq!((gate.why_open(), gate.turn(now_ms)), (None, Turn::Ask(ms(20))));
    }

    #[test]
    fn bad_probes_double_the_pause_up_to_a_limit() {
        let mut gate = opened();
        let (mut now_ms, mut pause_ms) = (0, PAUSES_MS.0);
        for _ in 0..20 {
            assert_eq!(gate.turn(now_ms + pause_ms - 1), Turn::Skip);
            now_ms += pause_ms;
            assert_eq!(gate.turn(now_ms), Turn::Probe(ms(20)));
            gate.record(now_ms, true, Outcome::Failure, ms(20));
            pause_ms = (pause_ms * 2).min(PAUSES_MS.1);
        }
        assert_eq!((pause_ms, gate.opened()), (PAUSES_MS.1, 1));
    }

    #[test]
    fn probes_that_show_a_loss_keep_it_open() {
        let mut gate = opened();
        for _ in 0..PROBES {
            assert!(matches!(gate.turn(PAUSES_MS.0), Turn::Probe(_)));
            gate.record(PAUSES_MS.0, true, Outcome::Miss, ms(15));
        }
        assert_eq!(gate.turn(PAUSES_MS.0 * 3 - 1), Turn::Skip);
        assert!(matches!(gate.turn(PAUSES_MS.0 * 3), Turn::Probe(_)));
    }

    #[test]
    fn late_answers_and_lost_probes_change_nothing() {
        let mut gate = opened();
        gate.record(1, false, Outcome::Failure, ms(20));
        gate.record(1, true, Outcome::Hit, ms(1));
        assert!(matches!(gate.turn(PAUSES_MS.0), Turn::Probe(_)));
        gate.record(PAUSES_MS.0, false, Outcome::Failure, ms(20));
        assert_eq!(gate.turn(PAUSES_MS.0 + PROBE_LOST_MS - 1), Turn::Skip);
        assert!(matches!(gate.turn(PAUSES_MS.0 + PROBE_LOST_MS), Turn::Probe(_)));
    }
}
