//! The part of the sample that one worker has seen.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{CACHE_CONTROL, EXPIRES, VARY};

use super::keys::{self, Candidate, Keys};
use super::names::{Names, cut};
use super::record::{Recent, Record, WITH_LIFETIME, WITH_TRACKERS};
use crate::key::KeyRules;
use crate::serve::outcome::{Outcome, Verdict};

/// The most records of all workers, if there is one for each core.
const RECORDS_MAX: usize = 1 << 18;
/// The most records of a worker, and the fewest.
const RECORDS: [usize; 2] = [1 << 12, 1 << 16];
/// For this many records there is one path.
const RECORDS_PER_PATH: usize = 8;
/// Older records are forgotten before paths are.
const AGE_MAX: Duration = Duration::from_hours(1);
/// The reason of a miss that waited for the response to another request.
const COLLAPSED: &str = "collapsed";
/// Longer paths are cut off.
const PATH_BYTES_MAX: usize = 200;

/// The part of the sample that one worker has seen. The worker writes, and another thread reads when somebody asks.
pub(crate) struct Part {
    /// The largest hash that is in the sample.
    limit: AtomicU64,
    /// The worker's requests that the cache answered or passed on, sampled or not. It wraps.
    requests: AtomicU32,
    pub(super) seen: Mutex<Seen>,
    records_max: usize,
}

/// What the worker has seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) records: Vec<Record>,
    /// Host and path of each sampled hash.
    pub(super) paths: HashMap<u64, Box<str>>,
    pub(super) names: Names,
    /// Whether records were forgotten because of their age, and the number of requests before those that are left.
    pub(super) has_forgotten: bool,
    pub(super) sequence: u32,
}

/// A response of a request in the sample.
pub(super) struct Answer<'a> {
    pub(super) verdict: Verdict,
    pub(super) reason: &'a str,
    pub(super) vary: &'a str,
    pub(super) ttl: Option<u32>,
    pub(super) bytes: Option<u64>,
    pub(super) time: Duration,
    pub(super) flags: u8,
}

impl Default for Part {
    fn default() -> Self {
        let workers = available_parallelism().map_or(1, std::num::NonZero::get);
        Self::holding((RECORDS_MAX / workers).clamp(RECORDS[0], RECORDS[1]))
    }
}

impl Part {
    fn holding(records_max: usize) -> Self {
        Self { limit: AtomicU64::new(u64::MAX), requests: AtomicU32::new(0), seen: Mutex::default(), records_max }
    }

    /// Counts a request that the cache answered or passed on, before it is added. One thread calls it.
    #[inline]
    pub(crate) fn count(&self) {
        self.requests.store(self.requests().wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether a request is in the sample: its hash then.
    #[inline]
    pub(crate) fn sampled(&self, host: &[u8], target: &str) -> Option<u64> {
        let unit = keys::unit(host, target);
        (unit <= self.limit()).then_some(unit)
    }

    #[inline]
    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Adds a hit of the fast path to the sample, with the length of its body.
    pub(crate) fn hit(&self, candidate: &Candidate, site: (&str, &KeyRules), bytes: usize, time: Duration) {
        let (verdict, reason, vary, ttl, flags) = (Verdict::Hit, "", "", None, 0);
        self.add(candidate, site, &Answer { verdict, reason, vary, ttl, bytes: Some(bytes as u64), time, flags });
    }

    /// Adds a request with the fields of its response.
    pub(crate) fn answered(
        &self,
        candidate: &Candidate,
        site: (&str, &KeyRules),
        (fields, bytes): (&HeaderMap, Option<u64>),
        outcome: &Outcome<'_>,
        time: Duration,
    ) {
        if outcome.verdict == Verdict::None {
            return;
        }
        let text = |name| fields.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let reason = match outcome.verdict {
            Verdict::Hit | Verdict::Stale | Verdict::Revalidated => None,
            Verdict::Miss if outcome.is_collapsed => Some(COLLAPSED),
            Verdict::Miss => outcome.forward,
            _ => outcome.reason,
        };
        let vary = text(VARY).to_ascii_lowercase();
        let has_lifetime = text(CACHE_CONTROL).contains("max") || fields.contains_key(EXPIRES);
        let ttl = outcome.ttl.and_then(|ttl| u32::try_from(ttl).ok());
        let (verdict, reason) = (outcome.verdict, reason.unwrap_or_default());
        let flags = if has_lifetime { WITH_LIFETIME } else { 0 };
        self.add(candidate, site, &Answer { verdict, reason, vary: &vary, ttl, bytes, time, flags });
    }

    /// The last requests for an address of a site with these rules that are in the sample, the latest first.
    pub(crate) fn recent(&self, rules: &KeyRules, host: &[u8], target: &str, limit: usize) -> Vec<Recent> {
        let unit = keys::unit(host, target);
        if unit > self.limit() {
            return Vec::new();
        }
        let Keys { key, .. } = keys::keys(rules, unit, target);
        let seen = self.lock();
        let of_key = seen.records.iter().rev().filter(|record| record.unit == unit && record.key == key);
        let told = of_key.take(limit).map(|record| Recent {
            at_ms: record.at_ms,
            verdict: record.verdict,
            reason: seen.names.name(record.reason).to_owned(),
            micros: record.micros,
        });
        told.collect()
    }

    fn add(&self, candidate: &Candidate, (label, rules): (&str, &KeyRules), answer: &Answer<'_>) {
        let mut seen = self.lock();
        if seen.records.len() >= self.records_max || seen.paths.len() >= self.records_max / RECORDS_PER_PATH {
            self.thin(&mut seen);
        }
        if candidate.unit > self.limit() {
            return;
        }
        seen.paths.entry(candidate.unit).or_insert_with(|| {
            let path = candidate.target.split('?').next().unwrap_or_default();
            cut(&format!("{}{path}", candidate.host), PATH_BYTES_MAX).into()
        });
        let Keys { key, bare, has_trackers } = keys::keys(rules, candidate.unit, &candidate.target);
        let record = Record {
            at_ms: now_ms(),
            unit: candidate.unit,
            key,
            bare,
            sequence: self.requests(),
            bytes: answer.bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)),
            micros: u32::try_from(answer.time.as_micros()).unwrap_or(u32::MAX),
            ttl: answer.ttl,
            verdict: answer.verdict,
            flags: answer.flags | if has_trackers { WITH_TRACKERS } else { 0 },
            site: seen.names.number(label),
            reason: seen.names.number(answer.reason),
            vary: seen.names.number(answer.vary),
        };
        seen.records.push(record);
    }

    /// Makes room.
    fn thin(&self, seen: &mut Seen) {
        let is_old = seen
            .records
            .first()
            .is_some_and(|record| Duration::from_millis(now_ms().saturating_sub(record.at_ms)) > AGE_MAX);
        if !is_old {
            let limit = self.limit() / 2;
            self.limit.store(limit, Ordering::Relaxed);
            seen.records.retain(|record| record.unit <= limit);
        }
        // A few paths may have most of the requests. Old records alone have to make room, or the next request would look through all of them.
        if is_old || seen.records.len() > self.records_max / 4 * 3 {
            let half = seen.records.len() / 2;
            seen.records.drain(..half);
            seen.has_forgotten = true;
            seen.sequence = seen.records.first().map_or(seen.sequence, |record| record.sequence);
        }
        let limit = self.limit();
        let kept: std::collections::HashSet<u64> = seen.records.iter().map(|record| record.unit).collect();
        seen.paths.retain(|unit, _| *unit <= limit && kept.contains(unit));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Seen> {
        // At worst, the thread that panicked has left a record out.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Snapshot;
    use super::*;
    use crate::config::parse;
    use crate::sites::Sites;

    fn rules() -> KeyRules {
        let config = parse("[[site]]\norigins = [\"http://a\"]\n").unwrap();
        Sites::of(&config.sites).iter().next().unwrap().key.clone()
    }

    fn hit(part: &Part, rules: &KeyRules, target: &str) {
        part.count();
        if let Some(unit) = part.sampled(b"a", target) {
            let candidate = Candidate::new(unit, b"a", target);
            part.hit(&candidate, ("site", rules), 100, Duration::from_micros(5));
        }
    }

    #[test]
    fn a_sample_has_all_requests_of_a_path_or_none_and_stays_small() {
        let (part, rules) = (Part::holding(1000), rules());
        for number in 0..4000 {
            hit(&part, &rules, &format!("/{}?q={}", number % 800, number / 800));
        }
        let snapshot = Snapshot::of([&part]);
        assert!(snapshot.records.len() <= 1000 && snapshot.rate <= 0.25, "{}", snapshot.rate);
        assert_eq!(snapshot.requests, 4000);
        assert!(part.lock().paths.len() <= 125);
        let mut paths: HashMap<u64, u64> = HashMap::new();
        snapshot.records.iter().for_each(|record| *paths.entry(record.unit).or_default() += 1);
        assert!(!paths.is_empty() && paths.values().all(|count| *count == 5), "{paths:?}");
        assert!(snapshot.path(snapshot.records[0].unit).starts_with("a/"));
    }

    /// Otherwise each request would go through all of them.
    #[test]
    fn old_records_make_room() {
        let (part, rules) = (Part::holding(1000), rules());
        for number in 0..125 {
            hit(&part, &rules, &format!("/{number}"));
        }
        part.lock().records.iter_mut().for_each(|record| record.at_ms = 0);
        hit(&part, &rules, "/new");
        let seen = part.lock();
        assert_eq!((seen.records.len(), seen.paths.len(), part.limit()), (64, 64, u64::MAX));
    }

    #[test]
    fn a_path_with_most_requests_leaves_room_for_newer_ones() {
        let (part, rules) = (Part::holding(1000), rules());
        for _ in 0..5000 {
            hit(&part, &rules, "/");
        }
        // Its hash decides whether the one path is left.
        let snapshot = Snapshot::of([&part]);
        assert!(snapshot.records.len() <= 1000 && snapshot.requests <= 5000);
    }
}
