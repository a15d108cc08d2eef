//! The figures: the present ones, and the difference between two samples.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::args::ServerPlace;
use crate::output::key_text;

/// The verdicts of the server, in their order.
pub(super) const VERDICTS: [&str; 7] = ["hit", "stale", "revalidated", "miss", "pass", "error", "none"];

type Counts = [u64; VERDICTS.len()];

/// A sample of the server, as far as it is shown. Counts are those since its start.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Sample {
    version: String,
    process: u32,
    uptime_seconds: u64,
    verdicts: Counts,
    sites: Vec<SiteCounts>,
    origins: Vec<OriginCounts>,
    connections: [u64; 3],
    volume: Option<Volume>,
    hottest: Vec<Hot>,
    missed: Vec<Missed>,
    slowest: Vec<Slow>,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct SiteCounts {
    name: String,
    verdicts: Counts,
    requests: u64,
    spared_requests: u64,
    bytes: u64,
    errors: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct OriginCounts {
    site: String,
    url: String,
    is_up: Option<bool>,
    requests: u64,
    errors: BTreeMap<String, u64>,
    open: u64,
    /// The seconds that half of the times stay below, and 95 % of them.
    times: [Option<f64>; 2],
}

/// The volume of the server.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Volume {
    pub(super) size_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) live_bytes: u64,
    pub(super) entries: u64,
}

/// A hot entry.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hot {
    pub(super) key: String,
    pub(super) frequency: u64,
    pub(super) bytes: u64,
}

/// An address that misses often.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Missed {
    pub(super) key: String,
    pub(super) count: u64,
}

/// A path whose responses begin late.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Slow {
    pub(super) path: String,
    pub(super) site: String,
    pub(super) requests: u64,
    /// The seconds that half of the times stay below, and 95 % of them.
    pub(super) quantiles: [f64; 2],
}

/// One update.
#[derive(Debug, Clone, Serialize)]
pub(super) struct View {
    pub(super) server: String,
    pub(super) version: String,
    pub(super) process: u32,
    pub(super) uptime_seconds: u64,
    /// Since the tool began.
    pub(super) seconds: f64,
    /// Whether the server is gone, and may come back.
    pub(super) is_gone: bool,
    /// Requests of all clients a second, by verdict.
    pub(super) per_second: BTreeMap<&'static str, f64>,
    pub(super) requests_per_second: f64,
    pub(super) bytes_per_second: f64,
    /// Since the last update; `None` without any request.
    pub(super) hit_ratio: Option<f64>,
    pub(super) spared_ratio: Option<f64>,
    /// Since the start of the server.
    pub(super) hit_ratio_of_run: Option<f64>,
    pub(super) spared_ratio_of_run: Option<f64>,
    pub(super) connections: u64,
    pub(super) volume: Option<Volume>,
    /// Those with most requests first.
    pub(super) sites: Vec<Site>,
    /// The worst first.
    pub(super) origins: Vec<Origin>,
    pub(super) hottest: Vec<Hot>,
    pub(super) missed: Vec<Missed>,
    pub(super) slowest: Vec<Slow>,
    pub(super) warnings: Vec<String>,
}

/// A site, by its name.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) requests_per_second: f64,
    pub(super) bytes_per_second: f64,
    pub(super) errors_per_second: f64,
    /// Since the last update, or since the start of the server without requests since then.
    pub(super) hit_ratio: Option<f64>,
    pub(super) spared_ratio: Option<f64>,
}

/// An origin of a site.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Origin {
    pub(super) site: String,
    pub(super) url: String,
    /// `None`: the configuration no longer has it.
    pub(super) is_up: Option<bool>,
    pub(super) requests_per_second: f64,
    pub(super) errors_per_second: f64,
    /// Since the start of the server.
    pub(super) errors: u64,
    pub(super) open: u64,
    /// The seconds until its responses begin that half of them stay below, and 95 % of them.
    pub(super) quantiles: [Option<f64>; 2],
}

/// Remembers the last sample.
pub(super) struct Looker {
    server: String,
    interval: Duration,
    begun: Instant,
    last: Option<(Instant, Sample)>,
}

impl Looker {
    pub(super) fn new(server: &ServerPlace, interval: Duration) -> Self {
        Self { server: server.to_string(), interval, begun: Instant::now(), last: None }
    }

    /// The view of a sample that comes now; `None` for the first one, and for one that comes before the next update.
    pub(super) fn look(&mut self, mut sample: Sample) -> Option<View> {
        sample.make_harmless();
        let now = Instant::now();
        // Another process counts from zero.
        let Some((then, before)) = self.last.take().filter(|(_, last)| last.process == sample.process) else {
            self.last = Some((now, sample));
            return None;
        };
        let elapsed = now.duration_since(then);
        // The server looks each second, and a sample may come a moment early.
        if elapsed + Duration::from_millis(200) < self.interval {
            self.last = Some((then, before));
            return None;
        }
        let seconds = elapsed.as_secs_f64().max(0.001);
        let view =
            View::between(&self.server, &before, &sample, (seconds, now.duration_since(self.begun).as_secs_f64()));
        self.last = Some((now, sample));
        Some(view)
    }
}

impl Sample {
    /// Clients choose paths and keys; none of them may steer the terminal.
    fn make_harmless(&mut self) {
        let sites = self.sites.iter_mut().map(|site| &mut site.name);
        let origins = self.origins.iter_mut().flat_map(|origin| [&mut origin.site, &mut origin.url]);
        let slowest = self.slowest.iter_mut().flat_map(|slow| [&mut slow.path, &mut slow.site]);
        let keys = self.hottest.iter_mut().map(|hot| &mut hot.key);
        let missed = self.missed.iter_mut().map(|missed| &mut missed.key);
        let texts = sites.chain(origins).chain(slowest).chain(keys).chain(missed).chain(&mut self.warnings);
        for text in texts.chain([&mut self.version]) {
            *text = key_text(text.as_bytes());
        }
    }

    /// Requests to sites, those that origins were spared, and bytes.
    fn of_sites(&self) -> [u64; 3] {
        self.sites.iter().fold([0; 3], |[requests, spared, bytes], site| {
            [requests + site.requests, spared + site.spared_requests, bytes + site.bytes]
        })
    }
}

impl View {
    fn between(server: &str, before: &Sample, now: &Sample, (seconds, of_run): (f64, f64)) -> Self {
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds;
        let verdicts = difference(&before.verdicts, &now.verdicts);
        let per_second = VERDICTS.iter().zip(verdicts).map(|(verdict, count)| (*verdict, count as f64 / seconds));
        let ([requests, spared, bytes], [requests_before, spared_before, bytes_before]) =
            (now.of_sites(), before.of_sites());
        let new_requests = requests.saturating_sub(requests_before);
        Self {
            server: server.to_owned(),
            version: now.version.clone(),
            process: now.process,
            uptime_seconds: now.uptime_seconds,
            seconds: of_run,
            is_gone: false,
            per_second: per_second.collect(),
            requests_per_second: verdicts.iter().sum::<u64>() as f64 / seconds,
            bytes_per_second: rate(bytes_before, bytes),
            hit_ratio: hit_ratio(&verdicts),
            spared_ratio: ratio(spared.saturating_sub(spared_before).min(new_requests), new_requests),
            hit_ratio_of_run: hit_ratio(&now.verdicts),
            spared_ratio_of_run: ratio(spared, requests),
            connections: now.connections.iter().sum(),
            volume: now.volume.clone(),
            sites: Site::all(before, now, seconds),
            origins: Origin::all(before, now, seconds),
            hottest: now.hottest.clone(),
            missed: now.missed.clone(),
            slowest: now.slowest.clone(),
            warnings: now.warnings.clone(),
        }
    }
}

impl Site {
    fn all(before: &Sample, now: &Sample, seconds: f64) -> Vec<Self> {
        let none = SiteCounts::default();
        let mut all: Vec<Self> = now
            .sites
            .iter()
            .map(|site| {
                let before = before.sites.iter().find(|before| before.name == site.name).unwrap_or(&none);
                let more = |of: fn(&SiteCounts) -> u64| of(site).saturating_sub(of(before));
                let (requests, spared) = (more(|site| site.requests), more(|site| site.spared_requests));
                let since = hit_ratio(&difference(&before.verdicts, &site.verdicts));
                Self {
                    name: site.name.clone(),
                    requests_per_second: requests as f64 / seconds,
                    bytes_per_second: more(|site| site.bytes) as f64 / seconds,
                    errors_per_second: more(|site| site.errors) as f64 / seconds,
                    hit_ratio: since.or_else(|| hit_ratio(&site.verdicts)),
                    spared_ratio: ratio(spared.min(requests), requests)
                        .or_else(|| ratio(site.spared_requests, site.requests)),
                }
            })
            .collect();
        // In the order of the server, those with most requests since its start come first.
        all.sort_by(|one, other| other.requests_per_second.total_cmp(&one.requests_per_second));
        all
    }
}

impl Origin {
    fn all(before: &Sample, now: &Sample, seconds: f64) -> Vec<Self> {
        let failures = |origin: &OriginCounts| origin.errors.values().sum::<u64>();
        let mut all: Vec<Self> = now
            .origins
            .iter()
            .map(|origin| {
                let is_same = |before: &&OriginCounts| before.site == origin.site && before.url == origin.url;
                let before = before.origins.iter().find(is_same);
                let more = |of: &dyn Fn(&OriginCounts) -> u64| {
                    of(origin).saturating_sub(before.map_or(0, of)) as f64 / seconds
                };
                Self {
                    site: origin.site.clone(),
                    url: origin.url.clone(),
                    is_up: origin.is_up,
                    requests_per_second: more(&|origin| origin.requests),
                    errors_per_second: more(&failures),
                    errors: failures(origin),
                    open: origin.open,
                    quantiles: origin.times,
                }
            })
            .collect();
        let slowness = |origin: &Self| origin.quantiles[1].unwrap_or_default();
        all.sort_by(|one, other| {
            let is_down = |origin: &Self| origin.is_up == Some(false);
            is_down(other)
                .cmp(&is_down(one))
                .then_with(|| other.errors_per_second.total_cmp(&one.errors_per_second))
                .then_with(|| slowness(other).total_cmp(&slowness(one)))
        });
        all
    }
}

fn difference(before: &Counts, now: &Counts) -> Counts {
    let mut all = *now;
    all.iter_mut().zip(before).for_each(|(count, before)| *count = count.saturating_sub(*before));
    all
}

/// The share of the requests in which the cache had a part that were answered from it.
fn hit_ratio(verdicts: &Counts) -> Option<f64> {
    let [hit, stale, revalidated, miss, pass, error, _] = *verdicts;
    ratio(hit + stale + revalidated, hit + stale + revalidated + miss + pass + error)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
impl View {
    /// A busy server.
    pub(super) fn example() -> Self {
        let [before, mut now] = tests::samples();
        now.make_harmless();
        Self::between("/run/eyewall/admin.sock", &before, &now, (1.0, 75.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy server a second later.
    pub(in super::super) fn samples() -> [Sample; 2] {
        let site = |name: &str, hits: u64, misses: u64| SiteCounts {
            name: name.to_owned(),
            verdicts: [hits, 0, 0, misses, 0, 0, 0],
            requests: hits + misses,
            spared_requests: hits,
            bytes: (hits + misses) * 1000,
            errors: misses / 10,
        };
        let origin = |url: &str, is_up: bool, requests: u64, errors: u64, time: f64| OriginCounts {
            site: "shop.example".to_owned(),
            url: url.to_owned(),
            is_up: Some(is_up),
            requests,
            errors: [("timeout".to_owned(), errors)].into(),
            open: 3,
            times: [Some(time / 4.0), Some(time)],
        };
        let slow = |number: u64| Slow {
            path: format!("shop.example/search/{number}"),
            site: "shop.example".to_owned(),
            requests: 40 - number,
            quantiles: [0.09 / (number + 1) as f64, 2.4 / (number + 1) as f64],
        };
        let sample = |times: u64| Sample {
            version: "0.1.0".to_owned(),
            process: 7,
            uptime_seconds: 7200 + times,
            verdicts: [900 * times, 20 * times, 0, 80 * times, 0, 0, 0],
            sites: vec![site("shop.example", 600 * times, 60 * times), site("blog.example", 320 * times, 20 * times)],
            origins: vec![
                origin("http://127.0.0.1:3000", true, 80 * times, 0, 0.12),
                origin("http://127.0.0.1:3001", false, 2 * times, times, 10.0),
            ],
            connections: [40, 2, 0],
            volume: Some(Volume { size_bytes: 64 << 20, data_bytes: 62 << 20, live_bytes: 40 << 20, entries: 12_345 }),
            hottest: (0..10)
                .map(|number| Hot { key: format!("http://shop.example/{number}"), frequency: 7, bytes: 4000 })
                .collect(),
            missed: (0..10)
                .map(|number| Missed { key: format!("http://shop.example/cart/\u{1b}[2J{number}"), count: 90 - number })
                .collect(),
            slowest: (0..10).map(slow).collect(),
            warnings: Vec::new(),
        };
        [sample(1), sample(2)]
    }

    #[test]
    fn rates_are_differences_and_the_worst_origin_comes_first() {
        let [before, mut now] = samples();
        now.make_harmless();
        let view = View::between("a.sock", &before, &now, (2.0, 2.0));
        assert_eq!(
            (view.requests_per_second, view.per_second["hit"], view.bytes_per_second),
            (500.0, 450.0, 500_000.0)
        );
        assert_eq!((view.hit_ratio, view.spared_ratio), (Some(0.92), Some(0.92)));
        assert_eq!(view.origins[0].url, "http://127.0.0.1:3001");
        assert_eq!((view.origins[0].errors_per_second, view.origins[0].errors), (0.5, 2));
        assert_eq!((view.sites[0].name.as_str(), view.sites[0].requests_per_second), ("shop.example", 330.0));
        assert_eq!(view.missed[0].key, "http://shop.example/cart/\\x1b[2J0");
    }

    #[test]
    fn another_process_begins_again() {
        let mut looker = Looker::new(&ServerPlace::Socket("a".into()), Duration::ZERO);
        let [before, now] = samples();
        assert!(looker.look(before).is_none());
        assert!(looker.look(now.clone()).is_some());
        assert!(looker.look(Sample { process: 8, ..now }).is_none());
    }
}
