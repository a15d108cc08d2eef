//! Whether a shared cache may store a response (RFC 9111, section 3), and the terms of its reuse.

use std::time::SystemTime;

use http::header::{
    AUTHORIZATION, CONTENT_LOCATION, CONTENT_RANGE, CONTENT_TYPE, DATE, ETAG, EXPIRES, LAST_MODIFIED, SET_COOKIE, VARY,
};
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri};

use crate::age;
use crate::field::cache_control::{RequestDirectives, ResponseDirectives, Scope};
use crate::field::targeted::Control;
use crate::field::vary::Vary;
use crate::field::{connection, date};
use crate::freshness::{self, Lifetime, Source};
use crate::invalidation;
use crate::message::{Exchange, Request, Response};
use crate::policy::Policy;
use crate::selecting;
use crate::terms::{Marks, Terms, milliseconds};

/// A response that may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storable {
    /// The terms of its reuse.
    pub terms: Terms,
    /// The source of its lifetime. `None` if it is stored only to be validated.
    pub source: Option<Source>,
    /// The request fields that it varies by; never [`Vary::Everything`].
    pub vary: Vary,
    /// The fields that aren't stored with it.
    pub withheld: Vec<HeaderName>,
}

/// Why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStored {
    /// Responses to this method aren't stored. A HEAD may update a stored response to GET; see also
    /// [`is_answer_to_get`].
    Method,
    /// The request forbids storing.
    RequestNoStore,
    /// It is interim (1xx), or a 304, which is no response of its own.
    Status,
    /// Its status refuses this one request, because of its syntax, size, conditions, user or rate (400, 401,
    /// 403, 413, 414, 429, 431 and others). Stored, it would be an outage for all other clients, so nothing
    /// in the response can permit it.
    RefusedRequest,
    /// It is a 206 that doesn't say which part it is.
    Partial,
    /// Only a cache that understands the status may store it, and this one doesn't.
    MustUnderstand,
    /// The origin forbids storing.
    NoStore,
    /// It is for one user.
    Private,
    /// The request is authenticated, and the origin doesn't permit others to get the response (section 3.5).
    Authorization,
    /// It sets a cookie.
    SetCookie,
    /// It matches no other request.
    Vary,
    /// It must be validated each time, and has no validator.
    NoCache,
    /// Nobody names its lifetime, and it has no validator.
    NoLifetime,
    /// It is stale on arrival, and has no validator.
    Stale,
}

impl NotStored {
    /// A token for the `detail` of `Cache-Status` (RFC 9211, section 2.8).
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::RequestNoStore => "request-no-store",
            Self::Status | Self::RefusedRequest => "status",
            Self::Partial => "partial",
            Self::MustUnderstand => "must-understand",
            Self::NoStore => "no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::SetCookie => "set-cookie",
            Self::Vary => "vary",
            Self::NoCache => "no-cache",
            Self::NoLifetime => "no-lifetime",
            Self::Stale => "stale",
        }
    }

    /// Whether the response to another request for the same resource might be stored. If so, this one is no
    /// reason to discard a stored response.
    pub fn is_of_request(self) -> bool {
        matches!(self, Self::RequestNoStore | Self::Authorization | Self::Method | Self::RefusedRequest)
    }
}

/// Applies the rules of RFC 9111, section 3, to a response, and returns the terms of its reuse.
///
/// It also refuses a response that could be stored but never used: one that is stale on arrival, and has neither
/// a validator nor a window.
pub fn judge(
    request: Request<'_>,
    response: Response<'_>,
    exchange: Exchange,
    policy: &Policy,
) -> Result<Storable, NotStored> {
    let control = Control::of(response.fields, &policy.targets);
    if !is_storable_method(request.method) {
        return Err(NotStored::Method);
    }
    if RequestDirectives::of(request.fields).no_store {
        return Err(NotStored::RequestNoStore);
    }
    check_status(response, &control.directives)?;
    check_users(request, response, &control.directives, policy)?;
    let vary = selecting::vary_of(response.fields);
    if vary == Vary::Everything {
        return Err(NotStored::Vary);
    }
    let lifetime = freshness::lifetime(response, &control, exchange.received, policy);
    let is_cacheable = lifetime.is_some() || policy.is_cacheable(response.status) || control.directives.public;
    if !is_cacheable {
        return Err(NotStored::NoLifetime);
    }
    let terms = terms(response, &control.directives, lifetime, exchange, policy);
    check_use(&terms, lifetime)?;
    let withheld = withheld(response.fields, &control.directives);
    Ok(Storable { terms, source: lifetime.map(|lifetime| lifetime.source), vary, withheld })
}

/// Whether responses to this method may be stored. A response to QUERY may, under a key that contains the
/// request's content ([`crate::query`]).
fn is_storable_method(method: &Method) -> bool {
    method == Method::GET || method == Method::QUERY
}

/// Whether the response to a POST for `target` may be stored as a response to GET for it (RFC 9110, section
/// 9.3.3), if [`judge`] would store that. The origin must say so by `Content-Location`, and must name a lifetime.
/// `target` has a scheme and an authority.
pub fn is_answer_to_get(target: &Uri, response: Response<'_>, received: SystemTime, policy: &Policy) -> bool {
    let mut lines = response.fields.get_all(CONTENT_LOCATION).iter();
    let is_of_target = match (lines.next(), lines.next()) {
        (Some(line), None) => {
            invalidation::of_same_origin(target, line.as_bytes().trim_ascii()).is_some_and(|uri| uri == *target)
        }
        _ => false,
    };
    let control = Control::of(response.fields, &policy.targets);
    is_of_target && response.status.is_success() && freshness::explicit(response.fields, &control, received).is_some()
}

fn check_status(response: Response<'_>, directives: &ResponseDirectives) -> Result<(), NotStored> {
    let status = response.status;
    if status.is_informational() || status == StatusCode::NOT_MODIFIED {
        return Err(NotStored::Status);
    }
    if refuses_request(status) {
        return Err(NotStored::RefusedRequest);
    }
    if status == StatusCode::PARTIAL_CONTENT && !is_one_part(response.fields) {
        return Err(NotStored::Partial);
    }
    // A cache that understands the status obeys `must-understand` and ignores `no-store` (section 5.2.2.3).
    match (directives.must_understand, is_understood(status)) {
        (true, false) => Err(NotStored::MustUnderstand),
        (false, _) if directives.no_store => Err(NotStored::NoStore),
        _ => Ok(()),
    }
}

/// Whether this status refuses only the one request. RFC 6585 forbids storing 428, 429, 431 and 511.
fn refuses_request(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        400 | 401 | 403 | 406..=408 | 411..=414 | 416 | 417 | 421 | 425 | 426 | 428 | 429 | 431 | 511
    )
}

/// Responses for one user only.
fn check_users(
    request: Request<'_>,
    response: Response<'_>,
    directives: &ResponseDirectives,
    policy: &Policy,
) -> Result<(), NotStored> {
    if is_whole(&directives.private) {
        return Err(NotStored::Private);
    }
    let is_shared = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    if request.fields.contains_key(AUTHORIZATION) && !is_shared {
        return Err(NotStored::Authorization);
    }
    let is_withheld =
        [&directives.private, &directives.no_cache].iter().any(|scope| scope.fields().contains(&SET_COOKIE));
    if response.fields.contains_key(SET_COOKIE) && !is_withheld && !policy.store_set_cookie {
        return Err(NotStored::SetCookie);
    }
    Ok(())
}

/// Whether it could ever be used.
fn check_use(terms: &Terms, lifetime: Option<Lifetime>) -> Result<(), NotStored> {
    if terms.marks.contains(Marks::HAS_VALIDATOR) {
        return Ok(());
    }
    if terms.marks.contains(Marks::NO_CACHE) {
        return Err(NotStored::NoCache);
    }
    let window = u64::from(terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds));
    let age_ms = terms.initial_age_ms + u64::from(terms.overdue_seconds) * 1000;
    let is_usable = (u64::from(terms.lifetime_seconds) + window) * 1000 > age_ms;
    match lifetime {
        _ if is_usable => Ok(()),
        Some(_) => Err(NotStored::Stale),
        None => Err(NotStored::NoLifetime),
    }
}

fn terms(
    response: Response<'_>,
    directives: &ResponseDirectives,
    lifetime: Option<Lifetime>,
    exchange: Exchange,
    policy: &Policy,
) -> Terms {
    let window = |named: Option<u32>, default| named.or_else(|| Some(freshness::whole_seconds(default?))).unwrap_or(0);
    let s_maxage_forbids = directives.s_maxage.is_some()
        && (policy.s_maxage_forbids_stale
            || directives.stale_while_revalidate.is_none() && directives.stale_if_error.is_none());
    let forbids_stale = directives.must_revalidate || directives.proxy_revalidate || s_maxage_forbids;
    let (stale_while_revalidate_seconds, stale_if_error_seconds) = if forbids_stale {
        (0, 0)
    } else {
        (
            window(directives.stale_while_revalidate, policy.stale_while_revalidate),
            window(directives.stale_if_error, policy.stale_if_error),
        )
    };
    let initial_age = age::initial(response.fields, exchange);
    Terms {
        received_ms: milliseconds(exchange.received),
        initial_age_ms: initial_age.as_millis() as u64,
        lifetime_seconds: lifetime.map_or(0, |lifetime| lifetime.seconds),
        overdue_seconds: lifetime.map_or(0, |lifetime| lifetime.overdue_seconds),
        stale_while_revalidate_seconds,
        stale_if_error_seconds,
        marks: Marks::NO_CACHE.when(is_whole(&directives.no_cache))
            | Marks::FORBIDS_STALE.when(forbids_stale)
            | Marks::IMMUTABLE.when(directives.immutable)
            | Marks::HAS_VALIDATOR.when(has_validator(response.fields))
            | Marks::PARTIAL.when(response.status == StatusCode::PARTIAL_CONTENT),
    }
}

fn has_validator(fields: &HeaderMap) -> bool {
    fields.contains_key(ETAG) || date::of(fields, &LAST_MODIFIED).is_some()
}

/// The fields of a response that aren't stored with it: those of the connection, those that `Connection` names,
/// and those that `private` or `no-cache` names.
///
/// A cache may store fields that `no-cache` names and send them after validation; this one doesn't store them.
pub fn withheld(fields: &HeaderMap, directives: &ResponseDirectives) -> Vec<HeaderName> {
    let mut names = connection::hop_by_hop(fields);
    names.extend_from_slice(directives.private.fields());
    names.extend_from_slice(directives.no_cache.fields());
    names.retain(|name| fields.contains_key(name));
    names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
    names.dedup();
    names
}

/// Whether a directive applies to the whole response: because it says so, or because it names fields without
/// which the rest is worthless. These are the fields that describe the content, and those that limit its reuse.
fn is_whole(scope: &Scope) -> bool {
    match scope {
        Scope::Nothing => false,
        Scope::Response => true,
        Scope::Fields(names) => names.iter().any(is_essential),
    }
}

fn is_essential(name: &HeaderName) -> bool {
    name.as_str().starts_with("content-")
        || name.as_str().ends_with("cache-control")
        || [ETAG, LAST_MODIFIED, DATE, EXPIRES, VARY].contains(name)
}

/// Whether a 206 has one range of bytes, and names it.
fn is_one_part(fields: &HeaderMap) -> bool {
    let mut ranges = fields.get_all(CONTENT_RANGE).iter();
    let is_multipart = fields
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().to_ascii_lowercase().starts_with(b"multipart/byteranges"));
    let is_range = ranges.next().is_some_and(|range| range.as_bytes().to_ascii_lowercase().starts_with(b"bytes "));
    is_range && ranges.next().is_none() && !is_multipart
}

/// The statuses of RFC 9110, section 15, and 429 and 451: this cache does what they require of caches.
fn is_understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=206 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 429 | 451 | 500..=505
    )
}
