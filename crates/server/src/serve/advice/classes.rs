//! Why requests of the sample weren't hits.

use std::collections::{HashMap, HashSet};

use crate::serve::outcome::Verdict;
use crate::serve::sample::{Record, Snapshot, WITH_TRACKERS};

/// The reason of a response that would have displaced much, and is stored at the next request.
const ASKED_ONCE: &str = "asked-once";

/// What a replay may do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A hit if its key is stored.
    Plain,
    /// A miss at any size: the stored response was too old.
    Expired,
    /// A miss at any size, for another reason.
    Forced,
    /// The volume would have had the response. It was purged.
    Purged,
    /// The first request for a large response. A larger volume stores it, this one at the next request.
    AskedOnce,
    /// The response could not be stored.
    NotStored,
}

/// The last response that was stored for a key.
struct Last {
    at_ms: u64,
    ttl: Option<u32>,
}

/// The class of each record, without what only a replay can tell.
pub(super) fn classes(snapshot: &Snapshot) -> Vec<Class> {
    let mut last: HashMap<u64, Last> = HashMap::new();
    let mut classes = Vec::with_capacity(snapshot.records.len());
    for record in &snapshot.records {
        let class = match record.verdict {
            Verdict::Hit | Verdict::Stale | Verdict::Revalidated => Class::Plain,
            Verdict::Miss => match snapshot.name(record.reason) {
                "stale" => Class::Expired,
                "uri-miss" if last.get(&record.key).is_some_and(|last| last.is_over(record)) => Class::Expired,
                "uri-miss" | "miss" => Class::Plain,
                _ => Class::Forced,
            },
            Verdict::Pass if snapshot.name(record.reason) == ASKED_ONCE => Class::AskedOnce,
            Verdict::Pass | Verdict::Error | Verdict::None => Class::NotStored,
        };
        if record.verdict == Verdict::Miss {
            last.insert(record.key, Last { at_ms: record.at_ms, ttl: record.ttl });
        }
        classes.push(class);
    }
    classes
}

impl Last {
    /// Whether its lifetime is over when this request comes.
    fn is_over(&self, record: &Record) -> bool {
        self.ttl.is_some_and(|ttl| record.at_ms.saturating_sub(self.at_ms) > u64::from(ttl) * 1000)
    }
}

/// The reason of a miss, as the report names it.
pub(super) struct Reasons {
    /// The key that was stored last for each bare one.
    stored: HashMap<u64, u64>,
    seen: HashSet<u64>,
}

impl Reasons {
    pub(super) fn new() -> Self {
        Self { stored: HashMap::new(), seen: HashSet::new() }
    }

    /// The reason why this record wasn't a hit; `None` if it was one. Call it for all records in their order.
    pub(super) fn of<'a>(&mut self, snapshot: &'a Snapshot, record: &Record, class: Class) -> Option<&'a str> {
        if class == Class::AskedOnce {
            return Some(ASKED_ONCE);
        }
        let is_new = self.seen.insert(record.key);
        let other = self.stored.insert(record.bare, record.key).filter(|other| *other != record.key);
        if record.is_hit() {
            return None;
        }
        Some(match class {
            Class::Expired => "expired",
            Class::Purged => "purged",
            Class::Forced | Class::NotStored | Class::AskedOnce => match snapshot.name(record.reason) {
                "" => "pass",
                reason => reason,
            },
            Class::Plain if is_new && other.is_some() && record.flags & WITH_TRACKERS != 0 => "trackers",
            Class::Plain if is_new => "first",
            Class::Plain => "evicted",
        })
    }
}

/// A reason in words.
pub(super) fn words(reason: &str) -> &'static str {
    match reason {
        "collapsed" => "waited for the response to another request, so the origin was asked once",
        "asked-once" => "large, and stored at the second request",
        "first" => "the first request for its address",
        "evicted" => "evicted before the next request: the volume is small",
        "expired" => "the stored response had expired",
        "purged" => "purged, or removed, since the last request",
        "trackers" => "stored already, under an address with other parameters of trackers",
        "vary-miss" => "stored only for other values of the fields in Vary",
        "no-lifetime" => "the origin says no lifetime",
        "set-cookie" => "the response sets a cookie",
        "no-store" => "the origin forbids to store it",
        "private" => "the origin says that it is for one user",
        "no-cache" => "the origin wants each request validated, and gives no validator",
        "too-large" => "too large to be stored",
        "authorization" => "the request has credentials, and the response isn't public",
        "request" => "the client asked for a fresh response",
        "partial" => "a part of the stored response was evicted",
        "status" => "a status that isn't stored",
        "stale" => "stale when it came",
        "head" => "a HEAD of something that isn't stored",
        "range" => "a range of something that isn't stored",
        _ => "a rule of this name bypasses the cache; otherwise see the reasons of Cache-Status",
    }
}
