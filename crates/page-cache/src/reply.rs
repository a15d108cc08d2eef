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

/// The media type of what is said in words.
pub const TEXT: &str = "text/plain; charset=utf-8";

/// A response that goes to a client.
pub type Reply<B> = Response<CachedBody<B>>;

/// A response without a cause to store it, that says in a line of text what is wrong.
pub fn error<B>(status: StatusCode, words: &str) -> Reply<B> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response(status, fields, CachedBody::whole(error_text(status, words)))
}

/// The body of such a response.
pub fn error_text(status: StatusCode, words: &str) -> String {
    let reason = status.canonical_reason().unwrap_or("Error");
    format!("{} {reason}: {words}\n", status.as_u16())
}

/// What a request gets of a representation.
#[derive(Debug)]
pub enum Arranged<B> {
    /// A head alone, or an error.
    Complete(Reply<B>),
    /// This head, and as its body these segments.
    Content(StatusCode, HeaderMap, Vec<Segment>),
}

/// All of a representation of this length, the ranges of it that are wanted, its head alone, 304 or 412.
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

/// The response of an answer without its content.
pub fn without_content<B>(answer: Answer) -> Reply<B> {
    match answer {
        Answer::NotModified(fields) => not_modified(&fields),
        Answer::PreconditionFailed => error(StatusCode::PRECONDITION_FAILED, "the precondition doesn't hold"),
        Answer::RangeNotSatisfiable(fields) => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "there are no such bytes");
            response.headers_mut().extend(fields);
            response
        }
        Answer::Head(code, fields) | Answer::Content(code, fields, _) => response(code, fields, CachedBody::empty()),
    }
}

/// What a request gets of a representation that is at hand.
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

/// 304, with the fields that it has of the response that it stands for.
pub fn not_modified<B>(fields: &HeaderMap) -> Reply<B> {
    let fields = precondition::fields_of_not_modified(fields, &[CDN_CACHE_CONTROL]);
    response(StatusCode::NOT_MODIFIED, fields, CachedBody::empty())
}

/// `None` only if the system has no randomness: then there are no multipart answers.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(Boundary::of_bits(u128::from_ne_bytes(bits)))
}

/// A response of these parts.
pub fn response<B>(status: StatusCode, fields: HeaderMap, body: CachedBody<B>) -> Reply<B> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
