//! What came to pass between two points.

use serde::Serialize;

use super::history::Point;
use crate::serve::metrics::{Times, quantile};
use crate::serve::outcome::Verdict;

/// The quantiles of times that the page shows.
const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// The times that people ask about.
#[derive(Debug, Default, Serialize)]
pub(super) struct Windows {
    pub(super) minute: Window,
    pub(super) hour: Window,
    pub(super) start: Window,
}

/// What came to pass in some time.
#[derive(Debug, Default, Serialize)]
pub(super) struct Window {
    seconds: f64,
    /// By verdict, also of requests that belong to no site.
    verdicts: [u64; Verdict::ALL.len()],
    /// Requests to sites, those that went to origins, and those that didn't have to.
    pub(super) requests: u64,
    origin_requests: u64,
    pub(super) spared_requests: u64,
    bytes: u64,
    origin_bytes: u64,
    spared_bytes: u64,
    errors: u64,
    collapsed: u64,
    hits: Latency,
    misses: Latency,
    origins: Latency,
}

/// How long something took.
#[derive(Debug, Default, Serialize)]
struct Latency {
    count: u64,
    /// The seconds that half, 95 % and 99 % of the times stay below; empty without times.
    quantiles: Vec<f64>,
}

impl Window {
    pub(super) fn between(before: &Point, now: &Point) -> Self {
        let more = |of: fn(&Point) -> u64| of(now).saturating_sub(of(before));
        let mut verdicts = now.verdicts;
        verdicts.iter_mut().zip(before.verdicts).for_each(|(count, before)| *count = count.saturating_sub(before));
        let (requests, origin_requests) = (more(|point| point.requests), more(|point| point.origin_requests));
        let (bytes, origin_bytes) = (more(|point| point.bytes), more(|point| point.origin_bytes));
        Self {
            seconds: now.uptime.saturating_sub(before.uptime).as_secs_f64(),
            verdicts,
            requests,
            origin_requests,
            // Refreshes may ask more than clients do.
            spared_requests: requests.saturating_sub(origin_requests),
            bytes,
            origin_bytes,
            spared_bytes: bytes.saturating_sub(origin_bytes),
            errors: more(|point| point.errors),
            collapsed: more(|point| point.collapsed),
            hits: Latency::between(&before.hit_times, &now.hit_times),
            misses: Latency::between(&before.miss_times, &now.miss_times),
            origins: Latency::between(&before.origin_times, &now.origin_times),
        }
    }

    /// The share of requests, and of bytes, that origins were spared; `None` without any.
    pub(super) fn spared_shares(&self) -> [Option<f64>; 2] {
        [(self.spared_requests, self.requests), (self.spared_bytes, self.bytes)]
            .map(|(spared, all)| (all > 0).then(|| spared as f64 / all as f64))
    }
}

impl Latency {
    fn between(before: &Times, now: &Times) -> Self {
        let mut times = *now;
        times.iter_mut().zip(before).for_each(|(count, before)| *count = count.saturating_sub(*before));
        let quantiles = QUANTILES.into_iter().filter_map(|share| quantile(&times, share)).collect();
        Self { count: times[times.len() - 1], quantiles }
    }
}
