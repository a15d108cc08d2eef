//! The requests that administrators make.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyewall::Cache;
use http::header::{ALLOW, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::json;

use super::purge_request;
use super::status::Status;
use crate::serve::body::Body;
use crate::serve::purge::purge;
use crate::serve::reply;
use crate::serve::shared::Shared;
use crate::serve::token::Token;

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How long a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What administrators may ask for, and who is one.
pub(super) struct Api {
    shared: Arc<Shared>,
    cache: Cache,
    started: Instant,
    /// What has to be shown; `None`: who can connect may ask.
    token: Option<Token>,
}

/// Why a request is not done.
struct Refusal {
    status: StatusCode,
    words: String,
    /// What goes with this status.
    field: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), field: None }
    }

    fn not_allowed(methods: &'static str) -> Self {
        let words = format!("this is asked for by {methods}");
        Self { field: Some((ALLOW, methods)), ..Self::new(StatusCode::METHOD_NOT_ALLOWED, words) }
    }

    fn into_response(self) -> Response<Body> {
        let mut response = reply::json(self.status, &json!({ "error": self.words }));
        let field = self.field.map(|(name, value)| (name, HeaderValue::from_static(value)));
        response.headers_mut().extend(field);
        response
    }
}

impl Api {
    pub(super) fn new(shared: Arc<Shared>, cache: Cache, token: Option<Token>) -> Self {
        Self { shared, cache, started: Instant::now(), token }
    }

    pub(super) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let line = (request.method().clone(), request.uri().clone());
        let response = self.answer_or_refuse(request).await.unwrap_or_else(Refusal::into_response);
        tracing::info!(method = %line.0, target = %line.1, status = response.status().as_u16(), "administration");
        response
    }

    async fn answer_or_refuse(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        self.admit(&parts)?;
        match (parts.uri.path(), parts.method) {
            ("/purge", Method::POST) => self.purge(body).await,
            ("/purge", _) => Err(Refusal::not_allowed("POST")),
            ("/status", Method::GET | Method::HEAD) => self.status().await,
            ("/status", _) => Err(Refusal::not_allowed("GET, HEAD")),
            _ => Err(Refusal::new(StatusCode::NOT_FOUND, "there are POST /purge and GET /status")),
        }
    }

    /// Refuses pages that a browser shows, wherever they got the server's address from, and who doesn't show the token.
    fn admit(&self, request: &Parts) -> Result<(), Refusal> {
        if request.headers.contains_key(ORIGIN) {
            return Err(Refusal::new(StatusCode::FORBIDDEN, "pages in a browser don't administer: it has an Origin"));
        }
        if self.token.as_ref().is_none_or(|token| token.is_shown_by(&request.headers)) {
            return Ok(());
        }
        let words = "show the token of the configuration's `token_file`, by Authorization: Bearer TOKEN";
        Err(Refusal { field: Some((WWW_AUTHENTICATE, "Bearer")), ..Refusal::new(StatusCode::UNAUTHORIZED, words) })
    }

    async fn purge(&self, body: Incoming) -> Result<Response<Body>, Refusal> {
        let body = whole(body).await?;
        let purge_request = purge_request::read(&body).map_err(|words| Refusal::new(StatusCode::BAD_REQUEST, words))?;
        match purge(&self.shared, purge_request).await {
            Ok(report) => Ok(reply::json(StatusCode::OK, &report)),
            Err(error) => Err(Refusal::new(error.status(), error.to_string())),
        }
    }

    async fn status(&self) -> Result<Response<Body>, Refusal> {
        let (shared, cache, uptime) = (Arc::clone(&self.shared), self.cache.clone(), self.started.elapsed());
        let looking = tokio::task::spawn_blocking(move || Status::of(&shared, &cache, uptime));
        match looking.await {
            Ok(Ok(status)) => Ok(reply::json(StatusCode::OK, &status)),
            Ok(Err(error)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
            // A panic was told by its thread.
            Err(_) => Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "the server's log says why")),
        }
    }
}

/// A request's body, which is to be short and to come soon.
async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let collecting = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, collecting).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let words = format!(
                "the body has more than {}; purge in several requests",
                crate::units::size(BODY_BYTES_MAX as u64)
            );
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words))
        }
        Ok(Err(error)) => Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}
