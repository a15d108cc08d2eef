//! Converts between Rocket's types and those of the crate `http`.

use eyewall_files::Answer;
use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use rocket::http::{Method, Status};
use rocket::{Request, Response};

use crate::body::{CHUNK_BYTES, Reader};

/// The parts of a request that an answer depends on.
static FIELDS: [HeaderName; 7] =
    [ACCEPT_ENCODING, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

/// The original method of a request: Rocket turns HEAD into GET if no route takes HEAD.
struct Came(Method);

/// Remembers the method before Rocket changes it.
pub(crate) fn note_method(request: &Request<'_>) {
    request.local_cache(|| Came(request.method()));
}

/// The method for a request for content; `None` if it isn't for reading.
pub(crate) fn method(request: &Request<'_>) -> Option<http::Method> {
    match request.local_cache(|| Came(request.method())).0 {
        Method::Get => Some(http::Method::GET),
        Method::Head => Some(http::Method::HEAD),
        _ => None,
    }
}

/// The fields that matter.
pub(crate) fn fields(request: &Request<'_>) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for name in &FIELDS {
        for value in request.headers().get(name.as_str()) {
            if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
                fields.append(name, value);
            }
        }
    }
    fields
}

/// A 200 sets no status, so that the status of a catcher or a [`rocket::response::status::Custom`] stays.
pub(crate) fn response(answer: Answer) -> Response<'static> {
    let mut response = Response::new();
    if answer.status != StatusCode::OK {
        response.set_status(Status::new(answer.status.as_u16()));
    }
    let mut length = None;
    for (name, value) in &answer.fields {
        // The fields of files are plain ASCII.
        let Ok(text) = value.to_str() else { continue };
        if name == CONTENT_LENGTH {
            length = text.parse().ok();
        } else {
            response.adjoin_raw_header(name.as_str().to_owned(), text.to_owned());
        }
    }
    if let Some(length) = length {
        // A response to HEAD has no body, but Rocket sends its length.
        response.set_sized_body(Some(length), Reader::new(answer.body));
        response.set_max_chunk_size(CHUNK_BYTES.min(length).max(1));
    }
    response
}
