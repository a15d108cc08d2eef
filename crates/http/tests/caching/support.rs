//! Short constructors of messages.

use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::message::{Exchange, Request, Response};
use eyewall_http::policy::Policy;
use eyewall_http::reuse::{self, Reuse};
use eyewall_http::storing::{self, NotStored, Storable};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

/// The time of all responses, whose `Date` is [`DATE`].
pub(crate) const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// Fields, one a line.
pub(crate) fn fields(lines: &str) -> HeaderMap {
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').unwrap();
        (HeaderName::try_from(name.trim()).unwrap(), HeaderValue::try_from(value.trim()).unwrap())
    };
    lines.lines().filter(|line| !line.trim().is_empty()).map(pair).collect()
}

pub(crate) fn names(list: &[&'static str]) -> Vec<HeaderName> {
    list.iter().map(|name| HeaderName::from_static(name)).collect()
}

/// The time `seconds` after [`DATE`].
pub(crate) fn at(seconds: u64) -> SystemTime {
    httpdate::parse_http_date(DATE).unwrap() + Duration::from_secs(seconds)
}

/// An exchange at [`DATE`] that took no time.
pub(crate) fn at_once() -> Exchange {
    Exchange { requested: at(0), received: at(0) }
}

pub(crate) fn judge_with(request: &str, status: u16, response: &str, policy: &Policy) -> Result<Storable, NotStored> {
    let request = Request { method: &Method::GET, fields: &fields(request) };
    let response = Response { status: StatusCode::from_u16(status).unwrap(), fields: &fields(response) };
    storing::judge(request, response, at_once(), policy)
}

/// The terms of a 200 that answers a plain GET.
pub(crate) fn judge(response: &str) -> Result<Storable, NotStored> {
    judge_with("", 200, response, &Policy::default())
}

/// What the cache does with such an answer after `seconds`, for a request with these fields.
pub(crate) fn reuse(response: &str, request: &str, seconds: u64) -> Reuse {
    reuse_with(response, request, seconds, &Policy::default())
}

pub(crate) fn reuse_with(response: &str, request: &str, seconds: u64, policy: &Policy) -> Reuse {
    let stored = judge_with("", 200, response, policy).unwrap();
    reuse::decide(&stored.terms, &RequestDirectives::of(&fields(request)), at(seconds), policy)
}

/// The cache asks the origin, and has no fallback.
pub(crate) fn validate() -> Reuse {
    Reuse::Validate { on_failure: reuse::OnFailure::default() }
}

/// The cache asks the origin; if that fails, the stored response may answer for this many seconds.
pub(crate) fn validate_or_stale_for(seconds: u64) -> Reuse {
    let left = Some(Duration::from_secs(seconds));
    Reuse::Validate { on_failure: reuse::OnFailure { error: left, unreachable: left } }
}
