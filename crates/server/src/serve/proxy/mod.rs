//! `--origin`: responses of another server, answered from the volume by the page cache ([`eyewall_page_cache::visit`]).
//!
//! This module has what is specific to the server: the origins, the rules of the site, and the fields that each response gets.
//!
//! ```text
//! way       which of the following a request takes
//! request ──> inbound   its key, and the decision of the rules ──> the page cache asks and judges by it
//!         ──> pass      requests that change something, ask for another protocol, or have content
//! home      a miss that another node of the fleet answers, and the answers to other nodes
//! error_page  pages of the origin for the time when it gives none
//! ready     the entries that the fast path can send
//! ```

pub(crate) mod fast_path;
pub(crate) mod tags;
pub(crate) mod way;

mod error_page;
mod home;
mod inbound;
mod pass;
mod policy;
mod query;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use eyewall_fleet::AsOf;
use eyewall_fleet_redis::Fleet;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::policy::Policy;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::settings::Settings;
use eyewall_page_cache::visit::{Answered, Unanswered, Visit};
use http::header::{CONNECTION, RETRY_AFTER, STRICT_TRANSPORT_SECURITY};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;

use super::body::Body;
use super::origin::{Origins, ProxyError, RequestBody};
use super::peers::Peers;
use super::second_level::Level;
use super::shared::Shared;
use super::trace::Tracing;
use super::{NAME, reply, tls};
use crate::key::CacheKey;
use crate::sites::Site;
use inbound::Inbound;
pub(crate) use inbound::receive;
pub(crate) use policy::with as policy_with;
use way::Way;

/// The origins of a site behind the volume, as one worker has them.
pub(crate) struct Proxy {
    site: Arc<Site>,
    /// The settings of the site's cache.
    settings: Arc<Settings>,
    error_page_settings: Arc<Settings>,
    policy: Policy,
    origins: Arc<Origins>,
    pages: Arc<Pages>,
    /// The fields of requests that keys and rules look at.
    looked_at: Vec<HeaderName>,
    /// Other nodes, and the purge log that says what may be taken from them.
    peers: Option<Arc<Peers>>,
    fleet: Option<Arc<Fleet>>,
    second_level: Option<Arc<Level>>,
    /// The names of requests, if they get any.
    tracing: Option<Arc<Tracing>>,
    /// The line of `Strict-Transport-Security`, for clients that use HTTPS.
    hsts_line: Option<String>,
}

impl Proxy {
    pub(crate) fn new(site: &Arc<Site>, origins: Arc<Origins>, shared: &Shared) -> Self {
        let looked_at = site.key.looked_at().chain(site.rules.looked_at()).cloned().collect();
        let settings = Settings { piece_timeout: Some(origins.timeouts().piece), ..settings(site, shared) };
        let policy = settings.policy.clone();
        let error_page_settings = Arc::new(error_page::settings(&settings));
        let hsts = tls::policy::hsts(&site.settings);
        let hsts_line =
            hsts.and_then(|value| Some(format!("{STRICT_TRANSPORT_SECURITY}: {}\r\n", value.to_str().ok()?)));
        let (site, settings, pages) = (Arc::clone(site), Arc::new(settings), Arc::clone(&shared.pages));
        let (peers, fleet) = (shared.peers.clone(), shared.fleet.clone());
        let second_level = shared.second_level.clone();
        Self {
            site,
            settings,
            error_page_settings,
            policy,
            origins,
            pages,
            looked_at,
            peers,
            fleet,
            second_level,
            tracing: shared.tracing.clone(),
            hsts_line,
        }
    }

    /// The origins, with their connections.
    pub(crate) fn origins(&self) -> &Arc<Origins> {
        &self.origins
    }

    /// Answers a request of this site. `key` is the key of the response.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        key: CacheKey,
        client: IpAddr,
    ) -> Response<Body> {
        let (parts, incoming) = request.into_parts();
        let body = RequestBody::streamed(incoming, &parts);
        match way::of(self.peers.as_deref(), &parts, !body.is_end_stream()) {
            Way::Loop => way::of_loop(),
            Way::Query => Box::pin(self.answer_query(parts, body, key, client)).await,
            Way::Cache => self.answer_from_cache(parts, key, client, None).await,
            Way::Forward => Box::pin(self.forward(Request::from_parts(parts, body), key, client)).await,
        }
    }

    /// Answers a request that may be answered from the cache.
    async fn answer_from_cache(
        self: &Arc<Self>,
        parts: Parts,
        key: CacheKey,
        client: IpAddr,
        content: Option<Bytes>,
    ) -> Response<Body> {
        let visit = self.visit(parts, key, client, content);
        let answered = match visit.upstream.decision().bypass {
            Some(rule) => Box::pin(visit.pass(CacheStatus::forwarded(Forward::Bypass).detail(rule), None)).await,
            None => visit.answer().await,
        };
        response_of(answered)
    }

    fn visit(
        self: &Arc<Self>,
        parts: Parts,
        key: CacheKey,
        client: IpAddr,
        content: Option<Bytes>,
    ) -> Arc<Visit<Inbound>> {
        let received = self.peers.as_ref().map(|_| Box::new(parts.headers.clone()));
        // Before the look-up: other nodes may wait for the answer.
        let as_of = self.peers.as_ref().and(self.fleet.as_ref()).and_then(|fleet| fleet.as_of());
        Arc::new(Visit { content, as_of, ..self.visit_with(parts, key, client, received) })
    }

    /// A request of another node, which is never passed on to a third.
    fn visit_of_peer(
        self: &Arc<Self>,
        parts: Parts,
        key: CacheKey,
        client: IpAddr,
        as_of: AsOf,
    ) -> Arc<Visit<Inbound>> {
        let visit = self.visit_with(parts, key, client, None);
        Arc::new(Visit { as_of: Some(as_of), is_for_cache: true, ..visit })
    }

    fn visit_with(
        self: &Arc<Self>,
        mut parts: Parts,
        key: CacheKey,
        client: IpAddr,
        received: Option<Box<HeaderMap>>,
    ) -> Visit<Inbound> {
        let (address, key_bytes) = (key.address().to_owned(), key.as_bytes().to_vec());
        let address_tag = tags::address(&self.site, &key);
        let mut inbound = Inbound::new(self, &mut parts, key, client);
        inbound.received = received;
        let visit = Visit::new((&self.pages, &self.settings), inbound, parts, address);
        let directives = way::allowed(&visit.upstream.decision(), visit.directives);
        Visit { key: key_bytes, address_tag, directives, ..visit }
    }
}

/// The settings of a site's cache, without those of its origins.
pub(crate) fn settings(site: &Site, shared: &Shared) -> Settings {
    let cache = &site.settings.cache;
    Settings {
        policy: policy::of_site(cache),
        when_unreachable: shared.stale_when_unreachable,
        body_bytes_max: cache.object_bytes_max.map_or(u64::MAX, |size| size.0),
        remembers_bare_errors: true,
        name: Some(NAME.to_owned()),
        compression: site.settings.compression(),
        ..Settings::default()
    }
}

fn response_of(answered: Answered<Inbound>) -> Response<Body> {
    match answered {
        Ok(response) => response.map(Body::from),
        Err(Unanswered { error, status }) => failed(&error, status),
    }
}

fn failed(error: &ProxyError, status: CacheStatus) -> Response<Body> {
    let mut response = reply::error(error.status(), &error.to_string());
    status.detail(error.detail()).append_to(response.headers_mut(), NAME);
    if let Some(seconds) = error.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    // Over HTTP/2, hyper drops the body if the error concerns only the stream.
    if error.leaves_body() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
