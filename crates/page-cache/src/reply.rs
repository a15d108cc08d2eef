//! Responses that the cache makes by itself.

use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::answer::{self, Answer};
use eyewall_http::field::targeted::CDN_CACHE_CONTROL;
use eyewall_http::message;
use eyewall_http::precondition::{self, Role};
use eyewall_http::ranges::{Boundary, Segment};
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::cached_body::CachedBody;

/// The media type of messages in words.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// A response that goes to a client.
pub type Reply<B> = Response<CachedBody<B>>;

/// Marks, among the extensions of a response, an error that the cache or its front door has made by itself.
#[derive(Debug, Clone, Copy)]
pub struct Own;

/// What a 304 stands for, among its extensions: a 304 has neither its status nor its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandsFor {
    /// The status of the response that the client has.
    pub status: StatusCode,
    /// Its media type.
    pub content_type: Option<HeaderValue>,
}

impl StandsFor {
    /// A response with this status and these fields.
    pub(crate) fn of(status: StatusCode, fields: &HeaderMap) -> Self {
        Self { status, content_type: fields.get(CONTENT_TYPE).cloned() }
    }
}

/// A response that is not stored, with a line of text that says what is wrong.
pub fn error<B>(status: StatusCode, words: &str) -> Reply<B> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let mut response = response(status, fields, CachedBody::whole(error_text(status, words)));
    response.extensions_mut().insert(Own);
    response
}

/// The body of such a response.
pub fn error_text(status: StatusCode, words: &str) -> String {
    let reason = status.canonical_reason().unwrap_or("Error");
    format!("{} {reason}: {words}\n", status.as_u16())
}

/// The response to a request for a representation.
#[derive(Debug)]
pub enum Arranged<B> {
    /// A response without content, or an error.
    Complete(Reply<B>),
    /// A head, and these segments as its body.
    Content(StatusCode, HeaderMap, Vec<Segment>),
}

/// The response with a representation of this length: all of it, the ranges that the client wants, its head alone, 304 or 412.
pub fn arrange<B>(
    role: Role,
    request: &Parts,
    code: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    length: u64,
) -> Arranged<B> {
    let asked = message::Request { method: &request.method, fields: &request.headers };
    match answer::arrange(role, asked, code, fields, received, length, boundary) {
        Answer::Content(code, fields, segments) => Arranged::Content(code, fields, segments),
        answer => Arranged::Complete(without_content(answer)),
    }
}

/// The response for an answer without content.
pub fn without_content<B>(answer: Answer) -> Reply<B> {
    match answer {
        Answer::NotModified(code, fields) => not_modified(code, &fields),
        Answer::PreconditionFailed => error(StatusCode::PRECONDITION_FAILED, "the precondition doesn't hold"),
        Answer::RangeNotSatisfiable(fields) => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "there are no such bytes");
            response.headers_mut().extend(fields);
            response
        }
        Answer::Head(code, fields) | Answer::Content(code, fields, _) => response(code, fields, CachedBody::empty()),
    }
}

/// The response with a representation whose bytes are all available.
pub(crate) fn representation<B>(
    role: Role,
    request: &Parts,
    (code, fields): (StatusCode, HeaderMap),
    received: SystemTime,
    value: Bytes,
    trailers: HeaderMap,
) -> Reply<B> {
    let length = value.len() as u64;
    let (code, mut fields, segments) = match arrange(role, request, code, fields, received, length) {
        Arranged::Complete(answer) => return answer,
        Arranged::Content(code, fields, segments) => (code, fields, segments),
    };
    if segments == [Segment::Bytes(0..length)] {
        if !trailers.is_empty() {
            fields.remove(CONTENT_LENGTH);
        }
        return response(code, fields, CachedBody::pieces([value].into(), trailers));
    }
    let pieces = segments.into_iter().map(|segment| match segment {
        Segment::Head(text) => Bytes::from(text),
        Segment::Bytes(range) => value.slice(range.start as usize..range.end as usize),
    });
    response(code, fields, CachedBody::pieces(pieces.collect(), HeaderMap::new()))
}

/// A 304, with the fields that it takes from the response that it stands for.
pub fn not_modified<B>(code: StatusCode, fields: &HeaderMap) -> Reply<B> {
    let own = precondition::fields_of_not_modified(fields, &[CDN_CACHE_CONTROL]);
    let mut response = response(StatusCode::NOT_MODIFIED, own, CachedBody::empty());
    response.extensions_mut().insert(StandsFor::of(code, fields));
    response
}

/// `None` only if the system has no randomness. Then there are no multipart responses.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(Boundary::of_bits(u128::from_ne_bytes(bits)))
}

/// A response with this status, these fields and this body.
pub fn response<B>(status: StatusCode, fields: HeaderMap, body: CachedBody<B>) -> Reply<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
