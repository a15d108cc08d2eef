//! Responses: a file's answer as one, and those that say what is wrong.

use std::io;

use eyewall_files::Answer;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::body::Body;

/// Whether a method is answered with a file.
pub(crate) fn is_answered(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// A response that caches don't store, and that says in a line of text what is wrong; as long, but without the text, for HEAD.
pub(crate) fn error(method: &Method, status: StatusCode, words: &str) -> Response<Body> {
    let reason = status.canonical_reason().unwrap_or("Error");
    let text = format!("{} {reason}: {words}\n", status.as_u16());
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    fields.insert(CONTENT_LENGTH, HeaderValue::from(text.len()));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response(status, fields, if method == Method::HEAD { Body::empty() } else { Body::text(text) })
}

/// A file's answer. `name` is this cache's in `Cache-Status`; none where nothing is to be told.
pub(crate) fn file(method: &Method, answer: Answer, name: Option<&str>) -> Response<Body> {
    let Answer { status, mut fields, body, source } = answer;
    if let (Some(name), Some(told)) = (name, source.cache_status()) {
        told.append_to(&mut fields, name);
    }
    match status {
        StatusCode::PRECONDITION_FAILED => error(method, status, "the precondition doesn't hold"),
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let mut response = error(method, status, "there are no such bytes");
            response.headers_mut().extend(fields);
            response
        }
        _ => response(status, fields, Body::file(body)),
    }
}

/// To the folder of the last name of a path, encoded, whose slash was left out. A relative reference (RFC 3986, section 4.2), so that
/// it holds whatever a router has taken off the path's beginning.
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
    error(method, StatusCode::NOT_FOUND, "there is nothing at this address")
}

pub(crate) fn method_not_allowed(method: &Method) -> Response<Body> {
    let mut response = error(method, StatusCode::METHOD_NOT_ALLOWED, "files answer GET and HEAD");
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
