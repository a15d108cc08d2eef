//! Responses that several modules make.

use eyewall_page_cache::reply;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::body::Body;
pub(crate) use reply::{TEXT, error_text};

/// An error response with a line of text, which must not be stored.
pub(crate) fn error(status: StatusCode, words: &str) -> Response<Body> {
    reply::error(status, words).map(Body::from)
}

/// A response with one line of JSON.
pub(crate) fn json(status: StatusCode, object: &impl Serialize) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Numbers and strings always have a JSON form.
    response(status, fields, Body::whole(serde_json::to_string(object).unwrap_or_default() + "\n"))
}

/// 412, or 416 with the fields that it has of its own.
pub(crate) fn without_content(answer: eyewall_http::answer::Answer) -> Response<Body> {
    reply::without_content(answer).map(Body::from)
}

pub(crate) fn response(status: StatusCode, fields: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
