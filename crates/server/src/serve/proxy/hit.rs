//! Answers out of the volume.

use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::ranges::{self, Boundary, Multipart, Served, Stretch};
use http::header::{AGE, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::pages::Stored;
use super::{NAME, finish};
use crate::serve::body::Body;
use crate::serve::reply;

/// A stored response, whole, in part, or 304 (RFC 9111, section 4.3.2).
pub(super) fn answer(request: &Parts, stored: Stored, status: CacheStatus) -> Response<Body> {
    let now = SystemTime::now();
    let age = stored.terms.age(now);
    let left = i64::from(stored.terms.lifetime_seconds) - age.as_secs() as i64;
    let mut fields = stored.found.head.fields.clone();
    fields.insert(AGE, HeaderValue::from(age.as_secs()));
    finish(&mut fields, http::Version::HTTP_11, &status.ttl(left));
    let code = stored.found.head.status;
    let received = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(stored.terms.received_ms);
    let representation = Representation { status: code, fields: &fields, received };
    match precondition::evaluate(Role::Cache, &request.method, &request.headers, Some(&representation)) {
        Outcome::NotModified => not_modified(&fields),
        Outcome::Partial(asked) => part(fields, stored.found.value(), &asked),
        Outcome::Proceed | Outcome::Failed => whole(&request.method, code, fields, stored.found.value()),
    }
}

pub(super) fn not_modified(fields: &HeaderMap) -> Response<Body> {
    reply::response(StatusCode::NOT_MODIFIED, precondition::fields_of_not_modified(fields, &[]), Body::empty())
}

fn whole(method: &Method, code: StatusCode, mut fields: HeaderMap, value: Bytes) -> Response<Body> {
    if code != StatusCode::NO_CONTENT {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(value.len()));
    }
    let body = if method == Method::HEAD { Body::empty() } else { Body::whole(value) };
    reply::response(code, fields, body)
}

fn part(fields: HeaderMap, value: Bytes, asked: &eyewall_http::field::range::ByteRanges) -> Response<Body> {
    let length = value.len() as u64;
    let slice = |range: std::ops::Range<u64>| value.slice(range.start as usize..range.end as usize);
    match ranges::select(asked, length) {
        Served::Whole => whole(&Method::GET, StatusCode::OK, fields, value),
        Served::Part(range) => match ranges::fields_of_part(&fields, &range, Some(length)) {
            Some(fields) => reply::response(StatusCode::PARTIAL_CONTENT, fields, Body::whole(slice(range))),
            None => whole(&Method::GET, StatusCode::OK, fields, value),
        },
        Served::Parts(parts) => {
            let body = boundary().and_then(|boundary| Multipart::new(&fields, parts, Some(length), boundary));
            let Some(body) = body else { return whole(&Method::GET, StatusCode::OK, fields, value) };
            let pieces = body.stretches().map(|stretch| match stretch {
                Stretch::Head(text) => Bytes::from(text),
                Stretch::Bytes(range) => slice(range),
            });
            reply::response(StatusCode::PARTIAL_CONTENT, body.fields(&fields), Body::pieces(pieces.collect()))
        }
        Served::Unsatisfiable => {
            let mut response = reply::error(StatusCode::RANGE_NOT_SATISFIABLE, "there are no such bytes");
            response.headers_mut().extend(ranges::fields_of_unsatisfiable(length));
            CacheStatus::hit().append_to(response.headers_mut(), NAME);
            response
        }
    }
}

/// `None` only if the system has no randomness: then there are no multipart answers.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Boundary::new(format!("{:032x}", u128::from_ne_bytes(bits))).ok()
}
