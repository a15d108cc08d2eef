//! Settings of the operator. The defaults follow the RFCs.

use std::time::Duration;

use http::{HeaderName, StatusCode};

use crate::field::targeted::CDN_CACHE_CONTROL;

/// How the cache uses the freedom that the RFCs leave, and what the operator of an origin overrides.
///
/// No setting stores a response that is `no-store` or `private`, or sends one that is `no-cache` without
/// validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// How to guess lifetimes that the origin doesn't name (RFC 9111, section 4.2.2); `None` never guesses.
    pub heuristic: Option<Heuristic>,
    /// The lifetime if the origin names none. It takes precedence over a guess.
    pub default_ttl: Option<Duration>,
    /// The lifetime of a response of this status if the origin names none, even if this status's lifetime may
    /// not be guessed. It takes precedence over `default_ttl`.
    pub status_ttl: Option<Duration>,
    /// The lifetime, whatever the origin names.
    pub force_ttl: Option<Duration>,
    /// The minimum lifetime, even against the origin.
    pub ttl_min: Option<Duration>,
    /// The maximum lifetime, even against the origin.
    pub ttl_max: Option<Duration>,
    /// Whether responses that set a cookie may be stored.
    pub store_set_cookie: bool,
    /// `stale-while-revalidate` for responses that don't name it (RFC 5861, section 3).
    pub stale_while_revalidate: Option<Duration>,
    /// `stale-if-error` for responses that don't name it (RFC 5861, section 4).
    pub stale_if_error: Option<Duration>,
    /// How long a response may have been stale if the origin can't be reached at all (RFC 9111, section
    /// 4.2.4).
    pub stale_if_unreachable: Option<Duration>,
    /// Whether `s-maxage` forbids stale responses even if the same response allows them by
    /// `stale-while-revalidate` or `stale-if-error`. RFC 9111, section 5.2.2.10, says so. Many origins that
    /// send both mean otherwise: with false, the latter two count.
    pub s_maxage_forbids_stale: bool,
    /// The targeted fields that this cache obeys, the most specific first (RFC 9213, section 2.2). In lower
    /// case.
    pub targets: Vec<HeaderName>,
    /// The statuses whose lifetimes may be guessed (RFC 9110, section 15.1).
    pub cacheable_statuses: Vec<StatusCode>,
}

/// How to guess a lifetime from the time since the last modification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heuristic {
    /// The part of that time, in per cent.
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
    /// The lifetime that the operator sets for a response of this status if the origin names none.
    pub fn ttl(&self, status: StatusCode) -> Option<Duration> {
        self.status_ttl.or_else(|| self.default_ttl.filter(|_| self.is_cacheable(status)))
    }

    /// Whether the lifetime of a response of this status may be guessed.
    pub fn is_cacheable(&self, status: StatusCode) -> bool {
        self.cacheable_statuses.contains(&status)
    }
}

/// The heuristically cacheable statuses of RFC 9110, section 15.1, except 414: a response that
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
