//! What the administration says if it refuses a request.

use http::header::ALLOW;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::json;

use crate::serve::body::Body;
use crate::serve::reply;

/// The reason for which a request is refused.
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) words: String,
    /// The fields that go with this status.
    pub(super) field: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), field: None }
    }

    pub(super) fn not_allowed(methods: &'static str) -> Self {
        let words = format!("use {methods} for this address");
        Self { field: Some((ALLOW, methods)), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, words) }
    }

    /// The thread has logged its panic.
    pub(super) fn panicked() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; the server's log says why")
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = reply::json(self.status, &json!({ "error": self.words }));
        let field = self.field.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(field);
        response
    }
}
