//! The last hour, in points: each look of the last minutes, and one of ten seconds before that.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::window::{Window, Windows};
use crate::serve::metrics::{Metrics, OriginTotals, Times, Totals};
use crate::serve::outcome::Verdict;

/// For how long each point is kept.
const RECENT: Duration = Duration::from_secs(150);
/// The distance of older points, and for how long they are kept.
const OLD_STEP: Duration = Duration::from_secs(10);
const OLD: Duration = Duration::from_secs(3620);

/// All counts of the server at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct Point {
    /// Milliseconds since 1970, to draw it. Somebody may set this clock.
    pub(super) time: u64,
    /// The time since the start of the server.
    pub(super) uptime: Duration,
    /// Requests of all clients by verdict.
    pub(super) verdicts: [u64; Verdict::ALL.len()],
    /// Requests to sites, and to their origins.
    pub(super) requests: u64,
    pub(super) origin_requests: u64,
    /// Bytes to clients, and from origins.
    pub(super) bytes: u64,
    pub(super) origin_bytes: u64,
    /// Responses with a status from 500 on.
    pub(super) errors: u64,
    pub(super) collapsed: u64,
    pub(super) hit_times: Times,
    pub(super) miss_times: Times,
    pub(super) origin_times: Times,
}

/// A point as the page draws it: its time, and the requests by verdict.
#[derive(Serialize)]
pub(super) struct Drawn(u64, [u64; Verdict::ALL.len()]);

pub(super) struct History {
    /// The start of the server, when all counts were zero.
    start: Point,
    old: VecDeque<Point>,
    recent: VecDeque<Point>,
}

impl Point {
    pub(super) fn now(metrics: &Metrics, totals: &Totals) -> Self {
        let mut point = Self {
            time: milliseconds(SystemTime::now()),
            uptime: metrics.begun.elapsed(),
            collapsed: totals.collapsed,
            hit_times: totals.hit_times,
            miss_times: totals.miss_times,
            origin_times: totals.origin_times,
            ..Self::default()
        };
        for site in &totals.sites {
            point.verdicts.iter_mut().zip(site.requests).for_each(|(sum, count)| *sum += count);
            point.errors += site.errors;
            if site.is_site() {
                point.requests += site.requests.iter().sum::<u64>();
                point.bytes += site.bytes.iter().sum::<u64>();
            }
        }
        let asked: i64 = totals.origins.iter().map(OriginTotals::first_requests).sum();
        // A request that is under way may have been sent again and have no end yet.
        point.origin_requests = asked.max(0) as u64;
        point.origin_bytes = totals.origins.iter().map(|origin| origin.bytes).sum();
        point
    }
}

impl History {
    pub(super) fn new(started: SystemTime) -> Self {
        let start = Point { time: milliseconds(started), ..Point::default() };
        Self { start, old: VecDeque::new(), recent: VecDeque::new() }
    }

    pub(super) fn push(&mut self, point: Point) {
        let is_past = |known: &Point, age: Duration| is_older(known, &point, age);
        while let Some(left) = self.recent.pop_front_if(|known| is_past(known, RECENT)) {
            if self.old.back().is_none_or(|last| is_older(last, &left, OLD_STEP)) {
                self.old.push_back(left);
            }
        }
        while self.old.pop_front_if(|known| is_past(known, OLD)).is_some() {}
        self.recent.push_back(point);
    }

    /// What came to pass until `now`: in a minute, in an hour, and since the start.
    pub(super) fn windows(&self, now: &Point) -> Windows {
        let before = |age| {
            let all = self.recent.iter().rev().chain(self.old.iter().rev());
            all.into_iter().find(|known| is_older(known, now, age)).unwrap_or(&self.start)
        };
        Windows {
            minute: Window::between(before(Duration::from_mins(1)), now),
            hour: Window::between(before(Duration::from_hours(1)), now),
            start: Window::between(&self.start, now),
        }
    }

    pub(super) fn points(&self) -> Vec<Drawn> {
        let all = [&self.start].into_iter().chain(&self.old).chain(&self.recent);
        all.map(|point| Drawn(point.time, point.verdicts)).collect()
    }
}

/// Whether a point is at least this much older than another one.
fn is_older(known: &Point, now: &Point, age: Duration) -> bool {
    now.uptime.saturating_sub(known.uptime) >= age
}

fn milliseconds(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_begin_where_they_say_and_old_points_thin_out() {
        let mut history = History::new(UNIX_EPOCH);
        let point = |second: u64| Point {
            uptime: Duration::from_secs(second),
            requests: second * 2,
            origin_requests: second,
            ..Point::default()
        };
        for second in 1..=4000 {
            history.push(point(second));
        }
        let windows = history.windows(&point(4001));
        assert_eq!((windows.minute.requests, windows.minute.spared_requests), (120, 60));
        assert_eq!(windows.start.requests, 8002);
        assert!((7200..7220).contains(&windows.hour.requests), "{}", windows.hour.requests);
        assert!(history.points().len() < 160 + 362, "{}", history.points().len());
    }
}
