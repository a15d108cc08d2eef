//! Responses that several modules make.

use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::answer::{self, Answer};
use eyewall_http::field::targeted::CDN_CACHE_CONTROL;
use eyewall_http::message;
use eyewall_http::precondition::{self, Role};
use eyewall_http::ranges::{Boundary, Segment};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::body::Body;

/// The media type of texts.
pub(crate) const TEXT: &str = "text/plain; charset=utf-8";

/// An error response with a line of text, which must not be stored.
pub(crate) fn error(status: StatusCode, words: &str) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response(status, fields, Body::whole(error_text(status, words)))
}

/// The body of such a response.
pub(crate) fn error_text(status: StatusCode, words: &str) -> String {
    let reason = status.canonical_reason().unwrap_or("Error");
    format!("{} {reason}: {words}\n", status.as_u16())
}

/// A response with one line of JSON.
pub(crate) fn json(status: StatusCode, object: &impl Serialize) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Numbers and strings always have a JSON form.
    response(status, fields, Body::whole(serde_json::to_string(object).unwrap_or_default() + "\n"))
}

/// The response to a request for a representation.
pub(crate) enum Arranged {
    /// A head alone, or an error.
    Complete(Response<Body>),
    /// This head, with these segments as its body.
    Content(StatusCode, HeaderMap, Vec<Segment>),
}

/// The whole of a representation of this length, the wanted ranges of it, its head alone, 304 or 412.
pub(crate) fn arrange(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    length: u64,
) -> Arranged {
    let asked = message::Request { method: &request.method, fields: &request.headers };
    match answer::arrange(role, asked, code, fields, received, length, boundary) {
        Answer::NotModified(fields) => Arranged::Complete(not_modified(&fields)),
        Answer::PreconditionFailed => Arranged::Complete(precondition_failed()),
        Answer::RangeNotSatisfiable(fields) => Arranged::Complete(range_not_satisfiable(fields)),
        Answer::Head(code, fields) => Arranged::Complete(self::response(code, fields, Body::empty())),
        Answer::Content(code, fields, segments) => Arranged::Content(code, fields, segments),
    }
}

/// The same for a representation in memory.
pub(crate) fn representation(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    value: &Bytes,
) -> Response<Body> {
    match arrange(role, request, code, fields, received, value.len() as u64) {
        Arranged::Complete(answer) => answer,
        Arranged::Content(code, fields, segments) => {
            let pieces = segments.into_iter().map(|segment| match segment {
                Segment::Head(text) => Bytes::from(text),
                Segment::Bytes(range) => value.slice(range.start as usize..range.end as usize),
            });
            response(code, fields, Body::pieces(pieces.collect()))
        }
    }
}

pub(crate) fn precondition_failed() -> Response<Body> {
    error(StatusCode::PRECONDITION_FAILED, "the precondition doesn't hold")
}

/// With the fields that it has of its own.
pub(crate) fn range_not_satisfiable(fields: HeaderMap) -> Response<Body> {
    let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "the response does not have these bytes");
    response.headers_mut().extend(fields);
    response
}

/// 304, with the fields that it takes from the full response.
pub(crate) fn not_modified(fields: &HeaderMap) -> Response<Body> {
    response(
        StatusCode::NOT_MODIFIED,
        precondition::fields_of_not_modified(fields, &[CDN_CACHE_CONTROL]),
        Body::empty(),
    )
}

/// `None` only if the system gives no random bytes; then there are no multipart responses.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(Boundary::of_bits(u128::from_ne_bytes(bits)))
}

pub(crate) fn response(status: StatusCode, fields: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
