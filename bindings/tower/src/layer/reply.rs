//! Responses that the layer makes of what is stored, or of its own.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::answer::{self, Answer};
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::targeted::CDN_CACHE_CONTROL;
use eyewall_http::message;
use eyewall_http::precondition::{self, Representation, Role};
use eyewall_http::ranges::{Boundary, Segment};
use eyewall_http::terms::Terms;
use http::header::{AGE, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::body::CachedBody;
use super::settings::Settings;

/// The age and the remaining TTL of a stored response at the moment when it is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgeAndTtl {
    age: u64,
    /// For how many seconds it is fresh yet; less than none: it has been stale for so long.
    pub(super) ttl: i64,
}

impl AgeAndTtl {
    pub(super) fn of(terms: &Terms, now: SystemTime) -> Self {
        let age = terms.age(now).as_secs();
        Self { age, ttl: i64::from(terms.lifetime_seconds) - age as i64 }
    }

    pub(super) fn write_age(self, fields: &mut HeaderMap) {
        fields.insert(AGE, HeaderValue::from(self.age));
    }
}

/// What a request gets of a representation that is at hand.
pub(super) fn representation<B>(
    role: Role,
    request: &Parts,
    status: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    value: Bytes,
    trailers: HeaderMap,
) -> Response<CachedBody<B>> {
    let length = value.len() as u64;
    let arranged = answer::arrange(role, asked(request), status, fields, received, length, boundary);
    let Answer::Content(status, mut fields, segments) = arranged else { return without_content(arranged) };
    if segments == [Segment::Bytes(0..length)] {
        if !trailers.is_empty() {
            fields.remove(CONTENT_LENGTH);
        }
        return response(status, fields, CachedBody::pieces(VecDeque::from([value]), trailers));
    }
    let pieces = segments.into_iter().map(|segment| match segment {
        Segment::Head(text) => Bytes::from(text),
        Segment::Bytes(range) => value.slice(range.start as usize..range.end as usize),
    });
    response(status, fields, CachedBody::pieces(pieces.collect(), HeaderMap::new()))
}

/// The same of one that is on its way: 304 if the client has it already, 412 if it believed otherwise, else all of it.
pub(super) fn coming<B>(
    request: &Parts,
    status: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    body: CachedBody<B>,
) -> Response<CachedBody<B>> {
    match is_without_content(request, status, &fields, received) {
        Some(answer) => without_content(answer),
        None => response(status, fields, body),
    }
}

/// 304 or 412, where that is the answer to a request, whatever the content is.
pub(super) fn is_without_content(
    request: &Parts,
    status: StatusCode,
    fields: &HeaderMap,
    received: SystemTime,
) -> Option<Answer> {
    answer::without_content(Role::Origin, asked(request), Representation { status, fields, received })
}

pub(super) fn without_content<B>(answer: Answer) -> Response<CachedBody<B>> {
    match answer {
        Answer::NotModified(fields) => {
            let fields = precondition::fields_of_not_modified(&fields, &[CDN_CACHE_CONTROL]);
            response(StatusCode::NOT_MODIFIED, fields, CachedBody::empty())
        }
        Answer::PreconditionFailed => error(StatusCode::PRECONDITION_FAILED, "the precondition doesn't hold"),
        Answer::RangeNotSatisfiable(fields) => {
            let mut response = error(StatusCode::RANGE_NOT_SATISFIABLE, "there are no such bytes");
            response.headers_mut().extend(fields);
            response
        }
        Answer::Head(status, fields) | Answer::Content(status, fields, _) => {
            response(status, fields, CachedBody::empty())
        }
    }
}

/// RFC 9111, section 5.2.1.7.
pub(super) fn only_if_cached<B>(settings: &Settings) -> Response<CachedBody<B>> {
    let mut response = error(StatusCode::GATEWAY_TIMEOUT, "the client wanted a stored answer, and there is none");
    if let Some(name) = &settings.name {
        CacheStatus::hit().detail("only-if-cached").append_to(response.headers_mut(), name);
    }
    response
}

pub(super) fn response<B>(status: StatusCode, fields: HeaderMap, body: CachedBody<B>) -> Response<CachedBody<B>> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}

/// A response without a cause to store it, that says in a line of text what is wrong.
fn error<B>(status: StatusCode, words: &str) -> Response<CachedBody<B>> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let reason = status.canonical_reason().unwrap_or("Error");
    let text = Bytes::from(format!("{} {reason}: {words}\n", status.as_u16()));
    response(status, fields, CachedBody::pieces(VecDeque::from([text]), HeaderMap::new()))
}

fn asked(request: &Parts) -> message::Request<'_> {
    message::Request { method: &request.method, fields: &request.headers }
}

/// `None` only if the system has no randomness: then there are no multipart answers.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Boundary::new(format!("{:032x}", u128::from_ne_bytes(bits))).ok()
}
