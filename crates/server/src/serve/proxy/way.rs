//! The way of a request that an origin of its site may answer. [`Proxy`](super::Proxy) takes it, and `explain/` says it.

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::Forward;
use eyewall_http::field::connection;
use eyewall_http::reuse;
use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode};

use crate::key::CacheKey;
use crate::rules::{Decision, Rules};
use crate::serve::body::Body;
use crate::serve::origin::asked_protocol;
use crate::serve::peers::Peers;
use crate::serve::reply;

/// What becomes of a request, before the rules change its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// It has been here before.
    Loop,
    /// It is a QUERY, whose content belongs to its key.
    Query,
    /// The cache may answer it, unless a rule has a bypass.
    Cache,
    /// An origin answers it: it has content, a method that asks for a change, or asks for another protocol.
    Forward,
}

/// The way of a request. `peers` are the other nodes of a fleet, if there are any.
pub(crate) fn of(peers: Option<&Peers>, parts: &Parts, has_content: bool) -> Way {
    if peers.is_some_and(|peers| peers.is_loop(&parts.headers)) {
        return Way::Loop;
    }
    if asked_protocol(&parts.headers).is_some() {
        return Way::Forward;
    }
    match parts.method {
        Method::QUERY => Way::Query,
        _ if reuse::is_answerable(&parts.method) && !has_content => Way::Cache,
        _ => Way::Forward,
    }
}

/// The answer to a request that has been here before.
pub(crate) fn of_loop() -> Response<Body> {
    reply::error(StatusCode::LOOP_DETECTED, "the request has passed this server before: its origin leads back to it")
}

/// Changes the fields of a request as the rules say that match it, and returns their decision. Rules match by the fields before that.
pub(crate) fn apply<'a>(rules: &'a Rules, key: &CacheKey, parts: &mut Parts) -> Decision<'a> {
    let decision = rules.of_request(key, parts);
    decision.drop_ignored_cookies(&mut parts.headers);
    decision.rewrite_request(&mut parts.headers);
    decision
}

/// The demands of a client on the cache, as far as the rules allow them.
pub(crate) fn allowed(decision: &Decision<'_>, directives: RequestDirectives) -> RequestDirectives {
    if decision.ignore_reload { directives.without_reloads() } else { directives }
}

/// Why a request that the cache has no part in goes to an origin.
///
/// # Errors
/// It goes no further than here, because of its `Max-Forwards` (RFC 9110, section 7.6.2): the answer to it. Otherwise the field counts this server.
pub(crate) fn forwarding(method: &Method, fields: &mut HeaderMap) -> Result<Forward, Box<Response<Body>>> {
    match connection::step(method, fields) {
        connection::Way::On if *method == Method::GET => Ok(Forward::Bypass),
        connection::Way::On => Ok(Forward::Method),
        connection::Way::EndsHere if *method == Method::OPTIONS => {
            Err(Box::new(reply::response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty())))
        }
        connection::Way::EndsHere => {
            Err(Box::new(reply::error(StatusCode::METHOD_NOT_ALLOWED, "requests are not traced here")))
        }
    }
}
