//! Turns a file's answer, or an error, into a response.

use std::io;

use eyewall_files::Answer;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::body::Body;

/// Whether files answer this method.
pub(crate) fn is_answered(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// An error response that caches don't store. Its body is a line of text; for HEAD, only its length is sent.
pub(crate) fn error(method: &Method, status: StatusCode, words: &str) -> Response<Body> {
    let reason = status.canonical_reason().unwrap_or("Error");
    let text = format!("{} {reason}: {words}\n", status.as_u16());
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response(status, fields, if method == Method::HEAD { Body::empty() } else { Body::text(text) })
}

/// Turns a file's answer into a response. `name` is this cache's name in `Cache-Status`; `None` leaves the field
/// out.
pub(crate) fn file(method: &Method, answer: Answer, name: Option<&str>) -> Response<Body> {
    let Answer { status, mut fields, body, source } = answer;
    if let (Some(name), Some(told)) = (name, source.cache_status()) {
        told.append_to(&mut fields, name);
    }
    match status {
        StatusCode::PRECONDITION_FAILED => error(method, status, "the precondition failed"),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let mut response = error(method, status, "the file does not have these bytes");
            response.headers_mut().extend(fields);
            response
        }
        _ => response(status, fields, Body::file(body)),
    }
}

/// Redirects to the folder of the last name of a path, encoded, whose slash was left out. The reference is
/// relative (RFC 3986, section 4.2), so that it is right whatever prefix a router has removed.
pub(crate) fn to_folder(method: &Method, name: &str, query: Option<&str>) -> Response<Body> {
    let location = match query {
        Some(query) => format!("./{name}/?{query}"),
        None => format!("./{name}/"),
    };
    let mut response = error(method, StatusCode::MOVED_PERMANENTLY, "a folder's address ends with a slash");
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

pub(crate) fn malformed(method: &Method) -> Response<Body> {
    error(method, StatusCode::BAD_REQUEST, "the path is malformed")
}

pub(crate) fn not_found(method: &Method) -> Response<Body> {
    error(method, StatusCode::NOT_FOUND, "nothing exists at this address")
}

pub(crate) fn method_not_allowed(method: &Method) -> Response<Body> {
    let mut response = error(method, StatusCode::METHOD_NOT_ALLOWED, "files support only GET and HEAD");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

pub(crate) fn failed(method: &Method, error: &io::Error) -> Response<Body> {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return self::error(method, StatusCode::FORBIDDEN, "the server may not read this file");
    }
    tracing::warn!(%error, "a file could not be read");
    self::error(method, StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
}

fn response(status: StatusCode, fields: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
