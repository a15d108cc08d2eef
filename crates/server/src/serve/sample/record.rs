//! One request of the sample.

use crate::serve::outcome::Verdict;

/// The response says how long it is fresh.
pub(crate) const WITH_LIFETIME: u8 = 1;
/// The request has parameters of trackers, which belong to its key.
pub(crate) const WITH_TRACKERS: u8 = 2;

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    /// The hash of host and path, by which it is sampled.
    pub(crate) unit: u64,
    /// The hash of what the key is made of, except for fields of the request.
    pub(crate) key: u64,
    /// The same without parameters of trackers.
    pub(crate) bare: u64,
    /// The number of requests that its worker had before.
    pub(super) sequence: u32,
    /// The length of the body; `None` if it isn't known.
    pub(crate) bytes: Option<u32>,
    /// Microseconds until the response began.
    pub(crate) micros: u32,
    /// Seconds that the response is still fresh, if it was stored.
    pub(crate) ttl: Option<u32>,
    pub(crate) verdict: Verdict,
    pub(crate) flags: u8,
    /// The numbers of texts: the site, why there was no hit or why the response wasn't stored, and its `Vary`.
    pub(crate) site: u8,
    pub(crate) reason: u8,
    pub(crate) vary: u8,
}

/// A request of before, for people who ask about its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recent {
    /// Milliseconds since 1970.
    pub(crate) at_ms: u64,
    pub(crate) verdict: Verdict,
    /// Why there was no hit or why the response wasn't stored; empty if nothing says it.
    pub(crate) reason: String,
    /// Microseconds until the response began.
    pub(crate) micros: u32,
}

impl Record {
    /// Whether the response came from the volume.
    pub(crate) fn is_hit(&self) -> bool {
        matches!(self.verdict, Verdict::Hit | Verdict::Stale | Verdict::Revalidated)
    }
}
