//! Responses that more than one place makes.

use eyewall_page_cache::reply;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::Serialize;

use super::body::Body;
pub(crate) use reply::{TEXT, error_text};

/// A response without a cause to store it, that says in a line of text what is wrong.
pub(crate) fn error(status: StatusCode, words: &str) -> Response<Body> {
    reply::error(status, words).map(Body::from)
}

/// What programs asked for, as one line of JSON.
pub(crate) fn json(status: StatusCode, object: &impl Serialize) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A structure of numbers and strings always has a JSON form.
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
