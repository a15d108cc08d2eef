//! Responses that more than one place makes.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::body::Body;
use super::conditional;

/// A response without a cause to store it, that says in a line of text what is wrong.
pub(crate) fn error(status: StatusCode, words: &str) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let reason = status.canonical_reason().unwrap_or("Error");
    response(status, fields, Body::whole(format!("{} {reason}: {words}\n", status.as_u16())))
}

/// A whole stored value: 304 if the client has it already, its head alone for HEAD.
pub(crate) fn stored(
    method: &Method,
    request: &HeaderMap,
    status: StatusCode,
    mut fields: HeaderMap,
    value: Bytes,
) -> Response<Body> {
    if status == StatusCode::OK && conditional::is_unchanged(request, &fields) {
        return not_modified(fields);
    }
    fields.insert(CONTENT_LENGTH, HeaderValue::from(value.len()));
    let body = if method == Method::HEAD { Body::empty() } else { Body::whole(value) };
    response(status, fields, body)
}

/// 304, without the fields that describe a body it doesn't have.
pub(crate) fn not_modified(fields: HeaderMap) -> Response<Body> {
    response(StatusCode::NOT_MODIFIED, conditional::fields_of_not_modified(fields), Body::empty())
}

pub(crate) fn response(status: StatusCode, fields: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
