//! Refuses requests that exceed a limit, before any other code handles them.

use http::header::{CONNECTION, CONTENT_LENGTH, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::request_line;
use crate::config::settings::Limits;
use crate::serve::body::Body;
use crate::serve::origin::framing::Codings;
use crate::serve::origin::{BodyLimits, BodyRate};
use crate::serve::reply;

/// The refusal of a request whose head exceeds the limits. A request with a body is marked with the bytes that are
/// read of it.
pub(super) fn refuse(request: &mut Request<Incoming>, limits: &Limits) -> Option<Response<Body>> {
    // For HTTP/1, hyper has counted them.
    if request.headers().len() > limits.header_count.0 as usize {
        let words = "the request has more fields than this server accepts";
        return Some(refusal(request.version(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, words));
    }
    if let Some((status, words)) = malformed(request.version(), request.headers()) {
        return Some(refusal(request.version(), status, words));
    }
    if request.body().is_end_stream() {
        return None;
    }
    let bytes_max = limits.body_bytes_max.map_or(u64::MAX, |bytes| bytes.0);
    if request.body().size_hint().lower() > bytes_max {
        let words = "the request's body is larger than this server accepts";
        return Some(refusal(request.version(), StatusCode::PAYLOAD_TOO_LARGE, words));
    }
    let Limits { body_rate_min, body_grace, body_timeout, .. } = limits;
    let body_rate = BodyRate { rate_min: body_rate_min.0, grace: body_grace.0, total: body_timeout.0 };
    request.extensions_mut().insert(BodyLimits { bytes_max, body_rate });
    None
}

/// The refusal of a request whose connection waits for too many requests with long heads.
pub(super) fn too_many_heads() -> Response<Body> {
    let words = "the requests of this connection have too many bytes of fields";
    refusal(Version::HTTP_2, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, words)
}

/// The seconds after which a client may try again, if memory has run out.
pub(super) const RETRY_SECONDS: u64 = 1;
/// The refusal of a request for which there is no memory, in words.
pub(super) const NO_MEMORY: &str = "the server has no memory for this request now; try again later";

/// The refusal of a request over HTTP/2 for which there is no memory.
pub(super) fn no_memory() -> Response<Body> {
    let mut response = refusal(Version::HTTP_2, StatusCode::SERVICE_UNAVAILABLE, NO_MEMORY);
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    response
}

/// Refuses fields that hyper lets through although they are malformed, or can't be understood.
fn malformed(version: Version, fields: &HeaderMap) -> Option<(StatusCode, &'static str)> {
    if version < Version::HTTP_2 {
        let words = "this server supports no transfer coding except chunked";
        if !matches!(Codings::of(fields), Codings::None | Codings::Chunked) {
            return Some((StatusCode::NOT_IMPLEMENTED, words));
        }
        // Other programs read such a length as a negative number, or truncate it.
        let length = fields.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.trim().parse::<u64>().ok());
        return length
            .filter(|bytes| i64::try_from(*bytes).is_err())
            .map(|_| (StatusCode::BAD_REQUEST, request_line::LENGTH));
    }
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_padded = |value: &HeaderValue| is_blank(value.as_bytes().first()) || is_blank(value.as_bytes().last());
    let words = "the value of a field begins or ends with a blank";
    fields.values().any(is_padded).then_some((StatusCode::BAD_REQUEST, words))
}

/// The rest of the request is not read.
fn refusal(version: Version, status: StatusCode, words: &str) -> Response<Body> {
    let mut response = reply::error(status, words);
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
