//! What an operator may set. By default the rules are those of the RFCs.

use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::field::targeted::CDN_CACHE_CONTROL;

/// How this cache uses the freedom that the RFCs leave it, and where an operator who knows the origin overrules it.
///
/// No setting makes it store what is `no-store` or `private`, or send without validation what is `no-cache`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How lifetimes are guessed where the origin names none (RFC 9111, section 4.2.2); None never guesses.
    pub heuristic: Option<Heuristic>,
    /// The lifetime where the origin names none. It goes before a guess.
    pub default_ttl: Option<Duration>,
    /// The lifetime of a response of this status where the origin names none, be it one whose lifetime may not be guessed. It
    /// goes before `default_ttl`.
    pub status_ttl: Option<Duration>,
    /// The lifetime whatever the origin names.
    pub force_ttl: Option<Duration>,
    /// No lifetime is shorter, be it the origin's word.
    pub ttl_min: Option<Duration>,
    /// No lifetime is longer, be it the origin's word.
    pub ttl_max: Option<Duration>,
    /// Responses that set a cookie are stored, if nothing else is against it.
    pub store_set_cookie: bool,
    /// `stale-while-revalidate` for responses that don't name it (RFC 5861, section 3).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error` for responses that don't name it (RFC 5861, section 4).
    pub stale_if_error: Option<Duration>,
    /// For how long a response may have been stale if the origin can't be reached at all (RFC 9111, section 4.2.4).
    pub stale_if_unreachable: Option<Duration>,
    /// `s-maxage` forbids stale answers, as RFC 9111, section 5.2.2.10, says, even where the same response allows them by
    /// `stale-while-revalidate` or `stale-if-error`. Many origins that send both mean otherwise: false lets those two count.
    pub s_maxage_forbids_stale: bool,
    /// The targeted fields that speak to this cache, the most apt first (RFC 9213, section 2.2). In lower case.
    pub targets: Vec<HeaderName>,
    /// The statuses whose lifetimes may be guessed (RFC 9110, section 15.1).
    pub cacheable_statuses: Vec<StatusCode>,
}

/// A guess at a lifetime by the time since the last modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristic {
    /// Which part of that time, in per cent.
    pub percent: u8,
    /// The longest guess.
    pub lifetime_max: Duration,
}

impl Default for Heuristic {
    fn default() -> Self {
        Self { percent: 10, lifetime_max: Duration::from_hours(24) }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            heuristic: Some(Heuristic::default()),
            default_ttl: None,
            status_ttl: None,
            force_ttl: None,
            ttl_min: None,
            ttl_max: None,
            store_set_cookie: false,
            stale_while_revalidate: None,
            stale_if_error: None,
            stale_if_unreachable: None,
            s_maxage_forbids_stale: true,
            targets: vec![CDN_CACHE_CONTROL],
            cacheable_statuses: cacheable_by_default(),
        }
    }
}

impl Policy {
    /// The lifetime that the operator names for a response of this status where the origin names none.
    pub fn ttl(&self, status: StatusCode) -> Option<Duration> {
        self.status_ttl.or_else(|| self.default_ttl.filter(|_| self.is_cacheable(status)))
    }

    /// Whether the lifetime of a response of this status may be guessed.
    pub fn is_cacheable(&self, status: StatusCode) -> bool {
        self.cacheable_statuses.contains(&status)
    }
}

/// The statuses that are heuristically cacheable by RFC 9110, section 15.1, but for 414: an answer that
/// [refuses one request](crate::storing::NotStored::RefusedRequest) is never stored.
pub fn cacheable_by_default() -> Vec<StatusCode> {
    vec![
        StatusCode::OK,
        StatusCode::NON_AUTHORITATIVE_INFORMATION,
        StatusCode::NO_CONTENT,
        StatusCode::PARTIAL_CONTENT,
        StatusCode::MULTIPLE_CHOICES,
        StatusCode::MOVED_PERMANENTLY,
        StatusCode::PERMANENT_REDIRECT,
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::GONE,
        StatusCode::NOT_IMPLEMENTED,
    ]
}
