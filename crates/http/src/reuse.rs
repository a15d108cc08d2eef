//! What to do with a stored response (RFC 9111, section 4; RFC 5861; RFC 8246).
//!
//! ```text
//! age:  0 ............... lifetime ........... + stale-while-revalidate ......... + stale-if-error .........
//!       Fresh             StaleWhileRevalidate   Validate { on_failure: a stale one }   Validate { nothing }
//! ```
//! Directives of the request move these limits, and those of the response take the middle two away.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};

use crate::field::cache_control::RequestDirectives;
use crate::policy::Policy;
use crate::terms::{Marks, Terms};

/// What to do with a stored response that a request selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// Send it.
    Fresh,
    /// Send it, and revalidate it meanwhile.
    StaleWhileRevalidate,
    /// Send it: the client accepts stale responses.
    StaleAllowed,
    /// Forward the request, with a condition if the stored response has a validator, and wait for the
    /// response.
    Validate {
        /// The permitted fallback if the origin doesn't respond, or responds with an error.
        on_failure: OnFailure,
    },
    /// Forward the request as if nothing were stored: the response has no validator, and no failure makes it
    /// usable.
    MustNotUse,
    /// Answer 504: only revalidation would make it usable, and the client forbids forwarding
    /// (`only-if-cached`).
    GatewayTimeout,
}

/// How long from now a stored response may answer without revalidation. `None`: not at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnFailure {
    /// If the origin responds with a status that [`is_failure`], or can't be reached.
    pub error: Option<Duration>,
    /// If the origin can't be reached. Never less than `error`.
    pub unreachable: Option<Duration>,
}

/// Whether a stored response to a GET may answer a request of this method (RFC 9111, section 4).
pub fn is_answerable(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Whether a status is an error in the sense of `stale-if-error` (RFC 5861, section 4).
pub fn is_failure(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// Whether a stored response of status `stored` stays in place of a new response of status `answer`: the new one
/// is an error; the stored one isn't, and may still be sent to other clients without validation.
///
/// RFC 9111, section 4.3.3, permits a cache to replace the stored response, but doesn't require it. If it did, a
/// client could make the origin fail by an odd request that forbids stored responses, and so take the response
/// away from all others.
pub fn withstands(terms: &Terms, stored: StatusCode, answer: StatusCode, now: SystemTime, policy: &Policy) -> bool {
    let is_error = |status: StatusCode| status.is_client_error() || status.is_server_error();
    if is_error(stored) || !is_error(answer) {
        return false;
    }
    match decide(terms, &RequestDirectives::default(), now, policy) {
        Reuse::Fresh | Reuse::StaleWhileRevalidate | Reuse::StaleAllowed => true,
        Reuse::Validate { on_failure } => is_failure(answer) && on_failure.error.is_some(),
        Reuse::MustNotUse | Reuse::GatewayTimeout => false,
    }
}

/// Whether a request that selects no stored response gets a 504 (RFC 9111, section 5.2.1.7).
pub fn is_timeout_without_stored(request: &RequestDirectives) -> bool {
    request.only_if_cached
}

/// What to do at `now` with a response that is stored with these terms, for a request that selects it.
pub fn decide(terms: &Terms, request: &RequestDirectives, now: SystemTime, policy: &Policy) -> Reuse {
    let times = Times { age: terms.age(now), fresh_for: terms.fresh_for(now), stale_for: terms.stale_for(now) };
    let must_validate = request.no_cache || terms.marks.contains(Marks::NO_CACHE);
    let answer = if must_validate { None } else { unvalidated(terms, request, &times) };
    answer.unwrap_or_else(|| {
        let on_failure = if must_validate { OnFailure::default() } else { on_failure(terms, request, &times, policy) };
        if request.only_if_cached {
            Reuse::GatewayTimeout
        } else if terms.marks.contains(Marks::HAS_VALIDATOR) || on_failure != OnFailure::default() {
            Reuse::Validate { on_failure }
        } else {
            Reuse::MustNotUse
        }
    })
}

struct Times {
    age: Duration,
    fresh_for: Duration,
    stale_for: Duration,
}

/// Sends it unchanged, if that is permitted.
fn unvalidated(terms: &Terms, request: &RequestDirectives, times: &Times) -> Option<Reuse> {
    let Times { age, fresh_for, stale_for } = *times;
    let is_young = request.max_age.is_none_or(|most| age <= seconds(most));
    if !fresh_for.is_zero() {
        // A reload sends `max-age=0`. A response that doesn't change while it is fresh needs no
        // revalidation (RFC 8246, section 2).
        let is_young = is_young || terms.marks.contains(Marks::IMMUTABLE);
        let is_fresh_enough = request.min_fresh.is_none_or(|least| fresh_for >= seconds(least));
        return (is_young && is_fresh_enough).then_some(Reuse::Fresh);
    }
    if terms.marks.contains(Marks::FORBIDS_STALE) || !is_young || request.min_fresh.is_some() {
        return None;
    }
    let is_within = |window| window > 0 && stale_for <= seconds(window);
    // A client that names an age, without `max-stale`, accepts nothing stale (RFC 9111, section 5.2.1.1).
    let is_allowed = match request.max_stale {
        Some(most) => is_within(most),
        None => request.max_age.is_none() && is_within(terms.stale_while_revalidate_seconds),
    };
    is_allowed.then_some(if is_within(terms.stale_while_revalidate_seconds) {
        Reuse::StaleWhileRevalidate
    } else {
        Reuse::StaleAllowed
    })
}

fn on_failure(terms: &Terms, request: &RequestDirectives, times: &Times, policy: &Policy) -> OnFailure {
    if terms.marks.contains(Marks::FORBIDS_STALE) {
        return OnFailure::default();
    }
    let error = seconds(terms.stale_if_error_seconds.max(request.stale_if_error.unwrap_or(0)));
    let unreachable = error.max(policy.stale_if_unreachable.unwrap_or_default());
    let left = |window: Duration| {
        let left = times.fresh_for.saturating_add(window).saturating_sub(times.stale_for);
        (!window.is_zero() && !left.is_zero()).then_some(left)
    };
    OnFailure { error: left(error), unreachable: left(unreachable) }
}

fn seconds(number: u32) -> Duration {
    Duration::from_secs(number.into())
}
