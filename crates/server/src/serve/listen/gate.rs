//! What is refused before anybody looks at a request.

use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use crate::config::settings::Limits;
use crate::serve::body::Body;
use crate::serve::origin::BodyLimit;
use crate::serve::reply;

/// The answer to a request that is beyond the limits by its head. Any other is marked where its body may yet turn out too
/// large.
pub(super) fn refuse(request: &mut Request<Incoming>, limits: &Limits) -> Option<Response<Body>> {
    // HTTP/1 was counted as it was read.
    if request.headers().len() > limits.header_count.0 as usize {
        let words = "the request has more fields than this server takes";
        return Some(refusal(request.version(), StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, words));
    }
    let bytes_max = limits.body_bytes_max?.0;
    match request.body().size_hint().exact() {
        Some(bytes) if bytes > bytes_max => {
            let words = "the request's body is larger than this server takes";
            return Some(refusal(request.version(), StatusCode::PAYLOAD_TOO_LARGE, words));
        }
        Some(_) => {}
        None => drop(request.extensions_mut().insert(BodyLimit(bytes_max))),
    }
    None
}

/// The rest of the request isn't read.
fn refusal(version: Version, status: StatusCode, words: &str) -> Response<Body> {
    let mut response = reply::error(status, words);
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
