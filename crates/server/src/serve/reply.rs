//! Responses that more than one place makes.

use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::field::cache_status::CACHE_STATUS;
use eyewall_http::field::range::ByteRanges;
use eyewall_http::field::targeted::CDN_CACHE_CONTROL;
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::ranges::{self, Boundary, Multipart, Served, Stretch};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde::Serialize;

use super::body::Body;

/// A response without a cause to store it, that says in a line of text what is wrong.
pub(crate) fn error(status: StatusCode, words: &str) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let reason = status.canonical_reason().unwrap_or("Error");
    response(status, fields, Body::whole(format!("{} {reason}: {words}\n", status.as_u16())))
}

/// What programs asked for, as one line of JSON.
pub(crate) fn json(status: StatusCode, object: &impl Serialize) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A structure of numbers and strings always has a JSON form.
    response(status, fields, Body::whole(serde_json::to_string(object).unwrap_or_default() + "\n"))
}

/// What a request gets of a representation.
pub(crate) enum Arranged {
    /// A head alone, or an error.
    Complete(Response<Body>),
    /// This head, and as its body these stretches.
    Content(StatusCode, HeaderMap, Vec<Stretch>),
}

/// All of a representation of this length, the ranges of it that are wanted, its head alone, 304 or 412.
pub(crate) fn arrange(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    length: u64,
) -> Arranged {
    match judged(role, request, code, &fields, received) {
        Err(response) => Arranged::Complete(*response),
        Ok(Some(asked)) => part(fields, length, &asked),
        Ok(None) => whole(&request.method, code, fields, length),
    }
}

/// The same of a representation that is at hand.
pub(crate) fn representation(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    value: &Bytes,
) -> Response<Body> {
    let body = |stretches: Vec<Stretch>| {
        let pieces = stretches.into_iter().map(|stretch| match stretch {
            Stretch::Head(text) => Bytes::from(text),
            Stretch::Bytes(range) => value.slice(range.start as usize..range.end as usize),
        });
        Body::pieces(pieces.collect())
    };
    representation_of(role, request, code, fields, received, value.len() as u64, body)
}

/// The same of one of `length` bytes that `body` can make a body of. It isn't asked where none is sent.
pub(crate) fn representation_of(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    length: u64,
    body: impl FnOnce(Vec<Stretch>) -> Body,
) -> Response<Body> {
    match arrange(role, request, code, fields, received, length) {
        Arranged::Complete(answer) => answer,
        Arranged::Content(code, fields, stretches) => response(code, fields, body(stretches)),
    }
}

/// 304 or 412, where that is the answer to a request, whatever the content is.
pub(crate) fn without_content(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: &HeaderMap,
    received: SystemTime,
) -> Option<Response<Body>> {
    judged(role, request, code, fields, received).err().map(|response| *response)
}

/// 304 or 412, or else the ranges that are wanted, if not all is.
fn judged(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: &HeaderMap,
    received: SystemTime,
) -> Result<Option<ByteRanges>, Box<Response<Body>>> {
    let current = Representation { status: code, fields, received };
    match precondition::evaluate(role, &request.method, &request.headers, Some(&current)) {
        Outcome::NotModified => Err(Box::new(not_modified(fields))),
        Outcome::Failed => Err(Box::new(error(StatusCode::PRECONDITION_FAILED, "the precondition doesn't hold"))),
        Outcome::Partial(asked) => Ok(Some(asked)),
        Outcome::Proceed => Ok(None),
    }
}

/// 304, with the fields that it has of the response that it stands for.
pub(crate) fn not_modified(fields: &HeaderMap) -> Response<Body> {
    response(
        StatusCode::NOT_MODIFIED,
        precondition::fields_of_not_modified(fields, &[CDN_CACHE_CONTROL]),
        Body::empty(),
    )
}

fn whole(method: &Method, code: StatusCode, mut fields: HeaderMap, length: u64) -> Arranged {
    if code != StatusCode::NO_CONTENT {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if method == Method::HEAD {
        return Arranged::Complete(response(code, fields, Body::empty()));
    }
    Arranged::Content(code, fields, vec![Stretch::Bytes(0..length)])
}

fn part(fields: HeaderMap, length: u64, asked: &ByteRanges) -> Arranged {
    match ranges::select(asked, length) {
        Served::Whole => whole(&Method::GET, StatusCode::OK, fields, length),
        Served::Part(range) => match ranges::fields_of_part(&fields, &range, Some(length)) {
            Some(fields) => Arranged::Content(StatusCode::PARTIAL_CONTENT, fields, vec![Stretch::Bytes(range)]),
            None => whole(&Method::GET, StatusCode::OK, fields, length),
        },
        Served::Parts(parts) => {
            let body = boundary().and_then(|boundary| Multipart::new(&fields, parts, Some(length), boundary));
            let Some(body) = body else { return whole(&Method::GET, StatusCode::OK, fields, length) };
            Arranged::Content(StatusCode::PARTIAL_CONTENT, body.fields(&fields), body.stretches().collect())
        }
        Served::Unsatisfiable => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "there are no such bytes");
            response.headers_mut().extend(ranges::fields_of_unsatisfiable(length));
            response.headers_mut().extend(fields.get(CACHE_STATUS).map(|told| (CACHE_STATUS, told.clone())));
            Arranged::Complete(response)
        }
    }
}

/// `None` only if the system has no randomness: then there are no multipart answers.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Boundary::new(format!("{:032x}", u128::from_ne_bytes(bits))).ok()
}

pub(crate) fn response(status: StatusCode, fields: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
