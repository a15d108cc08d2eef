//! The answer to a request for a representation: the whole, ranges, the head alone, 304, 412 or 416 (RFC 9110,
//! sections 9.3.2 and 13 to 15).
//!
//! An answer names the stretches of its body; it doesn't contain the body.

use std::time::SystemTime;

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::field::cache_status::CACHE_STATUS;
use crate::field::range::ByteRanges;
use crate::message::Request;
use crate::precondition::{self, Outcome, Representation, Role};
use crate::ranges::{self, Boundary, Multipart, Segment, Served};

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// 304: the client has the representation. [`precondition::fields_of_not_modified`] makes the response's
    /// fields from these fields of the representation.
    NotModified(StatusCode, HeaderMap),
    /// 412: a precondition of the client is false.
    PreconditionFailed,
    /// 416: the representation has none of these bytes. With the field that names its length, and the
    /// representation's `Cache-Status`.
    RangeNotSatisfiable(HeaderMap),
    /// A head without a body, for HEAD.
    Head(StatusCode, HeaderMap),
    /// This head, and a body of these stretches.
    Content(StatusCode, HeaderMap, Vec<Segment>),
}

/// The answer to a request for a representation of `length` bytes. The whole would be sent with this status and
/// these fields, whose `Content-Length` is set here. `received` is when a stored response was received; for the
/// origin's own response, it is now.
///
/// Several ranges need a `boundary`. Without one, such a request gets all bytes.
pub fn arrange(
    role: Role,
    request: Request<'_>,
    status: StatusCode,
    fields: HeaderMap,
    received: SystemTime,
    length: u64,
    boundary: impl FnOnce() -> Option<Boundary>,
) -> Answer {
    match judge(role, request, Representation { status, fields: &fields, received }) {
        Judgement::NotModified => Answer::NotModified(status, fields),
        Judgement::Failed => Answer::PreconditionFailed,
        Judgement::Send(Some(asked)) => part(fields, length, &asked, boundary),
        Judgement::Send(None) => whole(request.method, status, fields, length),
    }
}

/// The answer if it is 304 or 412, for which the caller needn't look the content up.
pub fn without_content(role: Role, request: Request<'_>, current: Representation<'_>) -> Option<Answer> {
    match judge(role, request, current) {
        Judgement::NotModified => Some(Answer::NotModified(current.status, current.fields.clone())),
        Judgement::Failed => Some(Answer::PreconditionFailed),
        Judgement::Send(_) => None,
    }
}

/// Whether a response of this status may have a length. A 204 has none. The length in a 304 describes another
/// response, and this cache may know it better (RFC 9110, section 8.6).
pub fn has_length(status: StatusCode) -> bool {
    !matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED)
}

/// The result of the preconditions.
enum Judgement {
    NotModified,
    Failed,
    /// Send these ranges, or everything.
    Send(Option<ByteRanges>),
}

fn judge(role: Role, request: Request<'_>, current: Representation<'_>) -> Judgement {
    match precondition::evaluate(role, request.method, request.fields, Some(&current)) {
        Outcome::NotModified => Judgement::NotModified,
        Outcome::Failed => Judgement::Failed,
        Outcome::Partial(asked) => Judgement::Send(Some(asked)),
        Outcome::Proceed => Judgement::Send(None),
    }
}

fn whole(method: &Method, status: StatusCode, mut fields: HeaderMap, length: u64) -> Answer {
    if has_length(status) {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if method == Method::HEAD {
        return Answer::Head(status, fields);
    }
    Answer::Content(status, fields, vec![Segment::Bytes(0..length)])
}

/// Called only for a GET that would get a 200.
fn part(fields: HeaderMap, length: u64, asked: &ByteRanges, boundary: impl FnOnce() -> Option<Boundary>) -> Answer {
    match ranges::select(asked, length) {
        Served::Whole => whole(&Method::GET, StatusCode::OK, fields, length),
        Served::Part(range) => match ranges::fields_of_part(&fields, &range, Some(length)) {
            Some(fields) => Answer::Content(StatusCode::PARTIAL_CONTENT, fields, vec![Segment::Bytes(range)]),
            None => whole(&Method::GET, StatusCode::OK, fields, length),
        },
        Served::Parts(parts) => {
            let body = boundary().and_then(|boundary| Multipart::new(&fields, parts, Some(length), boundary));
            let Some(body) = body else { return whole(&Method::GET, StatusCode::OK, fields, length) };
            Answer::Content(StatusCode::PARTIAL_CONTENT, body.fields(&fields), body.segments().collect())
        }
        Served::Unsatisfiable => {
            let mut own = ranges::fields_of_unsatisfiable(length);
            own.extend(fields.get(CACHE_STATUS).map(|told| (CACHE_STATUS, told.clone())));
            Answer::RangeNotSatisfiable(own)
        }
    }
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_RANGE, ETAG, IF_MATCH, IF_NONE_MATCH, RANGE};

    use super::*;

    fn answer(method: &Method, fields: &[(http::HeaderName, &'static str)]) -> Answer {
        let asked = fields.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect();
        let own = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"v1\""))]);
        let request = Request { method, fields: &asked };
        let boundary = || Boundary::new("abc").ok();
        arrange(Role::Origin, request, StatusCode::OK, own, SystemTime::UNIX_EPOCH, 100, boundary)
    }

    #[test]
    fn a_request_gets_all_of_it_or_the_head_alone() {
        let Answer::Content(StatusCode::OK, fields, segments) = answer(&Method::GET, &[]) else { panic!() };
        assert_eq!((&fields[CONTENT_LENGTH], &segments[..]), (&HeaderValue::from(100), &[Segment::Bytes(0..100)][..]));
        let Answer::Head(StatusCode::OK, fields) = answer(&Method::HEAD, &[]) else { panic!() };
        assert_eq!(fields[CONTENT_LENGTH], "100");
    }

    #[test]
    fn conditions_come_before_ranges() {
        let ranged = (RANGE, "bytes=0-9");
        let had = answer(&Method::GET, &[(IF_NONE_MATCH, "\"v1\""), ranged.clone()]);
        assert!(matches!(had, Answer::NotModified(StatusCode::OK, fields) if fields[ETAG] == "\"v1\""));
        assert_eq!(answer(&Method::GET, &[(IF_MATCH, "\"v0\""), ranged]), Answer::PreconditionFailed);
    }

    #[test]
    fn ranges_are_sent_as_one_part_or_as_several() {
        let Answer::Content(status, fields, segments) = answer(&Method::GET, &[(RANGE, "bytes=-10")]) else { panic!() };
        assert_eq!(
            (status, &fields[CONTENT_RANGE]),
            (StatusCode::PARTIAL_CONTENT, &"bytes 90-99/100".parse().unwrap())
        );
        assert_eq!(segments, [Segment::Bytes(90..100)]);
        let Answer::Content(_, fields, segments) = answer(&Method::GET, &[(RANGE, "bytes=0-1,50-51")]) else {
            panic!()
        };
        let sum: u64 = segments.iter().map(Segment::length).sum();
        assert_eq!(fields[CONTENT_LENGTH], sum.to_string().as_str());
        let unsatisfied = answer(&Method::GET, &[(RANGE, "bytes=100-")]);
        assert!(matches!(unsatisfied, Answer::RangeNotSatisfiable(fields) if fields[CONTENT_RANGE] == "bytes */100"));
    }

    #[test]
    fn without_a_boundary_several_ranges_are_all_bytes() {
        let asked = HeaderMap::from_iter([(RANGE, HeaderValue::from_static("bytes=0-1,50-51"))]);
        let request = Request { method: &Method::GET, fields: &asked };
        let (status, received) = (StatusCode::OK, SystemTime::UNIX_EPOCH);
        let answer = arrange(Role::Origin, request, status, HeaderMap::new(), received, 100, || None);
        assert!(matches!(answer, Answer::Content(StatusCode::OK, _, segments) if segments == [Segment::Bytes(0..100)]));
    }

    #[test]
    fn a_response_without_content_is_decided_before_the_look_up() {
        let own = HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"v1\""))]);
        let current = Representation { status: StatusCode::OK, fields: &own, received: SystemTime::UNIX_EPOCH };
        for (name, value, found) in [
            (IF_NONE_MATCH, "\"v1\"", Some(Answer::NotModified(StatusCode::OK, own.clone()))),
            (IF_MATCH, "\"v0\"", Some(Answer::PreconditionFailed)),
            (IF_MATCH, "\"v1\"", None),
            (RANGE, "bytes=100-", None),
        ] {
            let asked = HeaderMap::from_iter([(name, HeaderValue::from_static(value))]);
            let request = Request { method: &Method::GET, fields: &asked };
            assert_eq!(without_content(Role::Origin, request, current), found);
        }
    }
}
