//! All counts as plain numbers, for the dashboard.

use std::collections::{BTreeMap, HashMap};

use super::counters::{BOUNDS, Histogram, SiteCounters};
use super::origins::{OriginCounters, Reason};
use super::{Metrics, NO_SITE, lock};
use crate::serve::outcome::Verdict;

/// How many times there were up to each bound of a histogram, and of all times.
pub(crate) type Times = [u64; BOUNDS.len() + 1];

/// What a server has counted since its start.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// By label.
    pub(crate) sites: Vec<SiteTotals>,
    pub(crate) origins: Vec<OriginTotals>,
    /// Responses with a status from 400 on, by the status.
    pub(crate) failures: BTreeMap<String, u64>,
    /// Times of hits and stale hits, and of responses for which an origin was asked, until the first byte.
    pub(crate) hit_times: Times,
    pub(crate) miss_times: Times,
    /// Times of origins until their first byte.
    pub(crate) origin_times: Times,
    pub(crate) collapsed: u64,
    pub(crate) remembered: u64,
}

/// What a server has counted for one site.
#[derive(Debug)]
pub(crate) struct SiteTotals {
    pub(crate) label: Box<str>,
    /// By verdict, in the order of [`Verdict::ALL`].
    pub(crate) requests: [u64; Verdict::ALL.len()],
    pub(crate) bytes: [u64; Verdict::ALL.len()],
    /// Responses with a status from 500 on.
    pub(crate) errors: u64,
    /// Requests for which no origin had to be asked.
    pub(crate) spared_requests: u64,
}

/// What a server has counted for one origin.
#[derive(Debug)]
pub(crate) struct OriginTotals {
    pub(crate) site: Box<str>,
    pub(crate) url: Box<str>,
    /// Requests that got a response, or failed.
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    /// Requests that failed, by the reason; only reasons that there were.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    pub(crate) retries: u64,
    pub(crate) connections: u64,
    pub(crate) open: u64,
    pub(crate) times: Times,
}

impl Totals {
    /// Finds out for each site for how many requests no origin had to be asked.
    fn find_spared(&mut self) {
        let mut asked: HashMap<&str, i64> = HashMap::new();
        for origin in &self.origins {
            *asked.entry(&origin.site).or_default() += origin.first_requests();
        }
        for site in self.sites.iter_mut().filter(|site| site.is_site()) {
            // A request that is under way may have been sent again and have no end yet. Refreshes may ask more than clients do.
            let asked = asked.get(&*site.label).map_or(0, |asked| (*asked).max(0) as u64);
            site.spared_requests = site.requests.iter().sum::<u64>().saturating_sub(asked);
        }
    }
}

impl SiteTotals {
    /// Whether the requests belong to a site.
    pub(crate) fn is_site(&self) -> bool {
        &*self.label != NO_SITE
    }

    fn of(label: Box<str>, counters: &SiteCounters, failures: &mut BTreeMap<String, u64>) -> Self {
        let (requests, bytes) = Default::default();
        let mut totals = Self { label, requests, bytes, errors: 0, spared_requests: 0 };
        for (verdict, status, tally) in counters.answers() {
            let requests = tally.requests.get();
            totals.requests[verdict as usize] += requests;
            totals.bytes[verdict as usize] += tally.bytes.get();
            let status = status.to_string();
            if requests > 0 && status.starts_with(['4', '5']) {
                totals.errors += if status.starts_with('5') { requests } else { 0 };
                *failures.entry(status).or_default() += requests;
            }
        }
        totals
    }
}

impl OriginTotals {
    /// The requests of clients for which it was asked. Those that were sent again are among the requests of this origin or of another one.
    pub(crate) fn first_requests(&self) -> i64 {
        self.requests as i64 - self.retries as i64
    }

    fn of((site, url): (Box<str>, Box<str>), counters: &OriginCounters) -> Self {
        let errors = Reason::ALL.into_iter().zip(&counters.errors);
        let errors: BTreeMap<_, _> = errors.map(|(reason, count)| (reason.label(), count.get())).collect();
        let responses: u64 = counters.responses.iter().map(super::Counter::get).sum();
        // A response that broke off is among the responses.
        let failed: u64 =
            errors.iter().filter(|(reason, _)| **reason != Reason::CutOff.label()).map(|(_, count)| count).sum();
        Self {
            site,
            url,
            requests: responses + failed,
            bytes: counters.bytes.get(),
            errors: errors.into_iter().filter(|(_, count)| *count > 0).collect(),
            retries: counters.repeated.get(),
            connections: counters.connections.get(),
            open: counters.open(),
            times: counters.first_byte.cumulative(),
        }
    }
}

impl Metrics {
    /// What all workers have counted.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for (label, counters) in self.sites() {
            for (verdict, histogram) in Verdict::ALL.into_iter().zip(&counters.first_bytes) {
                match verdict {
                    Verdict::Hit | Verdict::Stale => add(&mut totals.hit_times, histogram),
                    Verdict::Revalidated | Verdict::Miss | Verdict::Pass => add(&mut totals.miss_times, histogram),
                    Verdict::Error | Verdict::None => {}
                }
            }
            totals.collapsed += counters.collapsed.get();
            totals.remembered += counters.remembered.get();
            totals.sites.push(SiteTotals::of(label, &counters, &mut totals.failures));
        }
        let origins: Vec<_> =
            lock(&self.origins).iter().map(|(labels, counters)| (labels.clone(), counters.clone())).collect();
        for (labels, counters) in origins {
            add(&mut totals.origin_times, &counters.first_byte);
            totals.origins.push(OriginTotals::of(labels, &counters));
        }
        totals.find_spared();
        totals
    }
}

fn add(times: &mut Times, histogram: &Histogram) {
    times.iter_mut().zip(histogram.cumulative()).for_each(|(sum, count)| *sum += count);
}

/// The time in seconds that this share of the times stays below, by a straight line within its bucket, as Prometheus estimates it. `None`
/// without times.
pub(crate) fn quantile(times: &Times, share: f64) -> Option<f64> {
    let all = times[BOUNDS.len()];
    if all == 0 {
        return None;
    }
    let rank = share * all as f64;
    let bucket = times.iter().position(|count| *count as f64 >= rank)?;
    let seconds = |bucket: usize| BOUNDS.get(bucket).map(|(_, nanoseconds)| *nanoseconds as f64 / 1e9);
    // Of longer times it is only known that they are longer.
    let Some(end) = seconds(bucket) else { return seconds(BOUNDS.len() - 1) };
    let (start, below) = match bucket {
        0 => (0.0, 0),
        _ => (seconds(bucket - 1).unwrap_or_default(), times[bucket - 1]),
    };
    let within = (times[bucket] - below) as f64;
    Some(if within == 0.0 { end } else { start + (end - start) * (rank - below as f64) / within })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_its_bucket() {
        let mut times = Times::default();
        assert_eq!(quantile(&times, 0.5), None);
        // Ten up to 50 µs, ten more up to 100 µs.
        times[0] = 10;
        times[1..].fill(20);
        let is = |share: f64, expected: f64| (quantile(&times, share).unwrap() - expected).abs() < 1e-9;
        assert!(is(0.25, 0.000_025) && is(0.5, 0.000_05) && is(0.75, 0.000_075) && is(1.0, 0.000_1));
        times[BOUNDS.len()] = 40;
        assert_eq!(quantile(&times, 0.99), Some(60.0), "longer than the last bound");
    }
}
