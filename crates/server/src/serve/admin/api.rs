//! The requests of the administration.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use eyewall::Cache;
use eyewall_fleet_redis::FleetStatus;
use eyewall_second_level::Status as LevelStatus;
use http::header::ACCEPT;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::access::{Need, check};
use super::purge_request;
use super::refusal::Refusal;
use super::status::Status;
use crate::config::log::LogLevels;
use crate::serve::advice::{Adviser, NoAdvice};
use crate::serve::body::Body;
use crate::serve::dashboard::{Dashboard, Full, Page};
use crate::serve::error::Error;
use crate::serve::explain::{Question, explain};
use crate::serve::follow::{FOLLOWERS_MAX, Filter, Form};
use crate::serve::metrics;
use crate::serve::peers::PeerStatus;
use crate::serve::purge::{PurgeRequest, purge};
use crate::serve::reply;
use crate::serve::shared::Shared;
use crate::serve::small_http::Answers;
use crate::serve::upgrade::Upgrader;
use serde::Serialize;

/// The longest body of a request.
const BODY_BYTES_MAX: usize = 1 << 20;
/// The timeout of a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The interface of the administration, and its access check.
pub(super) struct Api {
    upgrader: Arc<Upgrader>,
    cache: Cache,
    dashboard: Arc<Dashboard>,
    started: Instant,
    adviser: Arc<Adviser>,
}

impl Answers for Api {
    const NAME: &str = "administration";

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        // Without the query.
        let line = (request.method().clone(), request.uri().path().to_owned());
        let response = self.answer_or_refuse(request).await.unwrap_or_else(Refusal::into_response);
        tracing::info!(method = %line.0, path = line.1, status = response.status().as_u16(), "administration");
        response
    }
}

impl Api {
    pub(super) fn new(upgrader: Arc<Upgrader>, cache: Cache) -> Self {
        let adviser = Arc::<Adviser>::default();
        let dashboard = Dashboard::new(Arc::clone(&upgrader.reloader), cache.clone(), Arc::clone(&adviser));
        Self { upgrader, cache, dashboard: Arc::new(dashboard), started: Instant::now(), adviser }
    }

    /// What shows the server live.
    pub(super) fn dashboard(&self) -> Arc<Dashboard> {
        Arc::clone(&self.dashboard)
    }

    /// Ends the responses that have no end of their own.
    pub(super) fn end(&self) {
        self.upgrader.reloader.shared().metrics.followers.end();
    }

    async fn answer_or_refuse(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let (parts, body) = request.into_parts();
        let shared = self.upgrader.reloader.shared();
        let need = match (parts.uri.path(), &parts.method) {
            (path, _) if path == "/" || Page::has(path) => Need::Page,
            // Its lines name clients.
            ("/requests", _) => Need::Change,
            (_, &Method::GET | &Method::HEAD) | ("/explain", _) => Need::Read,
            _ => Need::Change,
        };
        let sees_all = check(&shared, &parts, need)?;
        match (parts.uri.path(), parts.method) {
            ("/purge", Method::POST) => {
                let waits = waits(parts.uri.query())?;
                self.purge(&shared, body, waits).await
            }
            ("/explain", Method::POST) => explained(&shared, body).await,
            ("/reload", Method::POST) => self.reload().await,
            ("/log", Method::POST) => self.set_levels(body).await,
            ("/upgrade", Method::POST) => self.upgrade().await,
            ("/purge" | "/explain" | "/reload" | "/log" | "/upgrade", _) => Err(Refusal::not_allowed("POST")),
            ("/status", Method::GET | Method::HEAD) => self.status(shared).await,
            ("/fleet", Method::GET | Method::HEAD) => fleet(&shared).await,
            ("/advice", Method::GET | Method::HEAD) => self.advice(shared).await,
            ("/requests", Method::GET) => follow(&shared, parts.uri.query(), &parts.headers),
            ("/metrics", Method::GET | Method::HEAD) => {
                metrics::respond(shared, &parts.headers).await.ok_or_else(Refusal::panicked)
            }
            ("/requests", _) => Err(Refusal::not_allowed("GET")),
            ("/", Method::GET | Method::HEAD) => Ok(Page::redirect()),
            (path, Method::GET | Method::HEAD) if Page::has(path) => Ok(self.dashboard.page(path, sees_all).await),
            ("/dashboard/events", Method::GET) => self.dashboard.events().map_err(|full| {
                let words = match full {
                    Full::Viewers => "too many look at the dashboard already; close a page",
                    Full::Ended => "the server ends, or another process has taken over",
                };
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, words)
            }),
            ("/dashboard/events", _) => Err(Refusal::not_allowed("GET")),
            (path, _) if matches!(path, "/" | "/status" | "/fleet" | "/metrics" | "/advice") || Page::has(path) => {
                Err(Refusal::not_allowed("GET, HEAD"))
            }
            _ => Err(Refusal::new(
                StatusCode::NOT_FOUND,
                "the addresses are POST /purge, POST /explain, POST /reload, POST /log, POST /upgrade, GET /status, GET /fleet, GET /advice, GET /requests, GET /metrics and GET /dashboard",
            )),
        }
    }

    async fn purge(&self, shared: &Arc<Shared>, body: Incoming, waits: bool) -> Result<Response<Body>, Refusal> {
        let body = whole(body).await?;
        let purge_request = purge_request::read(&body).map_err(|words| Refusal::new(StatusCode::BAD_REQUEST, words))?;
        match purge(shared, PurgeRequest { waits, ..purge_request }).await {
            Ok(report) => Ok(reply::json(StatusCode::OK, &report)),
            Err(error) => Err(Refusal::new(error.status(), error.to_string())),
        }
    }

    async fn reload(&self) -> Result<Response<Body>, Refusal> {
        match Arc::clone(&self.upgrader.reloader).reload_from_source().await {
            Ok(reloaded) => Ok(reply::json(StatusCode::OK, &reloaded)),
            Err(error @ Error::Draining) => Err(Refusal::new(StatusCode::CONFLICT, error.to_string())),
            Err(error @ Error::NoSource) => Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, error.to_string())),
            Err(error) => Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())),
        }
    }

    /// Changes the levels of the log to those in the body, such as `warn,origin=debug`.
    async fn set_levels(&self, body: Incoming) -> Result<Response<Body>, Refusal> {
        let body = whole(body).await?;
        let text = str::from_utf8(&body).map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
        let levels: LogLevels =
            text.trim().parse().map_err(|words: String| Refusal::new(StatusCode::BAD_REQUEST, words))?;
        if self.upgrader.reloader.set_levels(&levels) {
            Ok(reply::json(StatusCode::OK, &serde_json::json!({ "level": levels })))
        } else {
            let words = "this server was started by a program whose log has levels of its own";
            Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, words))
        }
    }

    async fn upgrade(&self) -> Result<Response<Body>, Refusal> {
        match Arc::clone(&self.upgrader).upgrade().await {
            Ok(upgraded) => Ok(reply::json(StatusCode::OK, &upgraded)),
            Err(error) => Err(Refusal::new(StatusCode::CONFLICT, error.to_string())),
        }
    }

    async fn advice(&self, shared: Arc<Shared>) -> Result<Response<Body>, Refusal> {
        match self.adviser.advice(shared).await {
            Ok(report) => Ok(reply::json(StatusCode::OK, &*report)),
            Err(NoAdvice::Engine(error)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
            Err(NoAdvice::Panicked) => Err(Refusal::panicked()),
        }
    }

    async fn status(&self, shared: Arc<Shared>) -> Result<Response<Body>, Refusal> {
        let (cache, uptime) = (self.cache.clone(), self.started.elapsed());
        let looking = tokio::task::spawn_blocking(move || Status::of(&shared, &cache, uptime));
        match looking.await {
            Ok(Ok(status)) => Ok(reply::json(StatusCode::OK, &status)),
            Ok(Err(error)) => Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())),
            Err(_) => Err(Refusal::panicked()),
        }
    }
}

/// How the fleet is doing.
#[derive(Serialize)]
struct Fleet {
    #[serde(flatten)]
    status: FleetStatus,
    /// The nodes that this one takes responses from.
    #[serde(skip_serializing_if = "Option::is_none")]
    peers: Option<Vec<PeerStatus>>,
    /// How the second level is doing, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    second_level: Option<LevelStatus>,
}

/// Whether a purge waits for the nodes of the fleet.
fn waits(query: Option<&str>) -> Result<bool, Refusal> {
    match query {
        None | Some("" | "wait=written") => Ok(false),
        Some("wait=applied") => Ok(true),
        Some(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the query may be `wait=written` or `wait=applied`")),
    }
}

async fn explained(shared: &Shared, body: Incoming) -> Result<Response<Body>, Refusal> {
    const EXAMPLE: &str = r#"give an object such as {"url": "http://example.org/page", "method": "GET", "headers": [["Accept-Language", "de"]]}"#;
    let body = whole(body).await?;
    let question: Question = serde_json::from_slice(&body).map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, format!("the body is no question: {error}; {EXAMPLE}"))
    })?;
    match explain(shared, &question).await {
        Ok(explanation) => Ok(reply::json(StatusCode::OK, &explanation)),
        Err(words) => Err(Refusal::new(StatusCode::BAD_REQUEST, words)),
    }
}

/// Sends a line for each request of clients from now on, until the follower leaves or the server ends.
fn follow(shared: &Shared, query: Option<&str>, fields: &HeaderMap) -> Result<Response<Body>, Refusal> {
    let wants_events =
        fields.get_all(ACCEPT).iter().any(|value| value.as_bytes().starts_with(reply::EVENTS.as_bytes()));
    let (form, content_type) =
        if wants_events { (Form::Events, reply::EVENTS) } else { (Form::Lines, "application/x-ndjson") };
    let filter =
        Filter::of_query(query.unwrap_or_default()).map_err(|words| Refusal::new(StatusCode::BAD_REQUEST, words))?;
    let following = shared.metrics.followers.follow(filter, form).ok_or_else(|| {
        let words = format!("{FOLLOWERS_MAX} clients follow the requests already; no more can");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, words)
    })?;
    Ok(reply::stream(content_type, following.into()))
}

async fn fleet(shared: &Shared) -> Result<Response<Body>, Refusal> {
    match &shared.fleet {
        Some(fleet) => {
            let peers = shared.peers.as_ref().map(|peers| peers.status());
            let second_level = shared.second_level.as_ref().map(|level| level.status());
            Ok(reply::json(StatusCode::OK, &Fleet { status: fleet.status().await, peers, second_level }))
        }
        None => {
            Err(Refusal::new(StatusCode::NOT_FOUND, "this server has no fleet; [fleet] of its configuration names one"))
        }
    }
}

/// Reads a request's body, within a limit and a timeout.
async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let collecting = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_TIMEOUT, collecting).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let words = format!(
                "the body is larger than {}; purge in several requests",
                crate::units::size(BODY_BYTES_MAX as u64)
            );
            Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words))
        }
        Ok(Err(error)) => Err(Refusal::new(StatusCode::BAD_REQUEST, format!("the body broke off: {error}"))),
        Err(_) => Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}
