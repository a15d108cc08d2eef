//! Responses that several modules make.

use eyewall_page_cache::reply;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
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

/// The media type of server-sent events.
pub(crate) const EVENTS: &str = "text/event-stream";

/// A response that goes on as long as there is something to tell.
pub(crate) fn stream(content_type: &'static str, body: Body) -> Response<Body> {
    let fields = [
        (CONTENT_TYPE, content_type),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // For nginx, which would hold the pieces back.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
    response(StatusCode::OK, HeaderMap::from_iter(fields), body)
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
