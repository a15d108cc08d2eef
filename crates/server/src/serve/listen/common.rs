//! The state that all connections of a worker share, and the answer to a request.

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connection_state::BusyGuard;
use super::connections::Connections;
use super::head_bytes::HeadBytes;
use super::limits;
use super::loss_check::LossCheck;
use super::stream_budget::StreamBudget;
use super::tracked_body::TrackedBody;
use super::witness::Witness;
use crate::config::memory::{self, MemoryShares};
use crate::config::settings::Limits;
use crate::key::Scheme;
use crate::serve::arrival::Arrival;
use crate::serve::body::Backlog;
use crate::serve::follow::SeenRequest;
use crate::serve::log::{self, Entry, LoggedRequest, Logs};
use crate::serve::metrics::Counters;
use crate::serve::outcome::Outcome;
use crate::serve::proxy::fast_path::FastHit;
use crate::serve::service::{Route, Service};
use crate::serve::shared::Shared;
use crate::serve::simple_request::SimpleRequest;
use crate::serve::spans::ServerSpan;
use crate::serve::trace::{self, Ids, Tracing};
use crate::serve::trusted_proxies::Forwarded;

/// The state that all connections of a worker share, by one configuration. A reload makes another one of it: a request has the same
/// one from its beginning to its end.
pub(super) struct Common {
    /// The number of reloads before it.
    pub(super) generation: u64,
    pub(super) service: Service,
    pub(super) limits: Limits,
    /// What `memory` leaves for connections and requests.
    pub(super) memory: Option<MemoryShares>,
    /// `None`: no request is logged.
    pub(super) log: Option<Arc<Logs>>,
    /// `None`: requests get no names, and responses no times.
    pub(super) tracing: Option<Arc<Tracing>>,
    /// What this worker has counted.
    pub(super) counters: Counters,
    /// The connections of all workers.
    pub(super) connections: Arc<Connections>,
    /// The memory that responses of all workers over HTTP/2 may hold.
    pub(super) budget: Arc<StreamBudget>,
}

impl Common {
    /// Call it on the worker's thread.
    pub(super) fn new(shared: &Arc<Shared>, connections: Arc<Connections>, budget: Arc<StreamBudget>) -> Self {
        let (limits, memory) = (shared.config.server.limits.clone(), shares(shared));
        let (service, counters) = (Service::new(shared, None), Counters::new(shared));
        let (log, tracing) = (logs(shared), shared.tracing.clone());
        Self { generation: 0, service, limits, memory, log, tracing, counters, connections, budget }
    }

    /// The same by another configuration.
    pub(super) fn renewed(&self, shared: &Arc<Shared>) -> Self {
        Self {
            generation: self.generation + 1,
            service: Service::new(shared, Some(&self.service)),
            limits: shared.config.server.limits.clone(),
            memory: shares(shared),
            log: logs(shared),
            tracing: shared.tracing.clone(),
            counters: self.counters.renewed(shared),
            connections: Arc::clone(&self.connections),
            budget: Arc::clone(&self.budget),
        }
    }

    /// Whether a simple request is within the limits.
    fn takes(&self, request: &SimpleRequest<'_>, head_bytes: usize) -> bool {
        head_bytes as u64 <= self.limits.header_bytes.0 && request.field_count() as u64 <= self.limits.header_count.0
    }

    /// The hit by the fast path for a simple request with a head of so many bytes, if both are within the limits.
    pub(super) fn fast_hit(
        &self,
        (request, head_bytes): (&SimpleRequest<'_>, usize),
        (arrival, real_client): (&Arrival, IpAddr),
        route: &mut Option<Route>,
        head: &mut Vec<u8>,
    ) -> Option<FastHit<'_>> {
        let is_timed = self.tracing.as_ref().is_some_and(|tracing| tracing.times_simple(real_client, request));
        if is_timed || !self.takes(request, head_bytes) {
            return None;
        }
        let found = self.service.fast_hit(request, arrival, route, head)?;
        self.service.admits(real_client, route.as_ref()).then_some(found)
    }

    /// The names of a request that is a hit of the fast path. Marks the head of its response.
    pub(super) fn name_hit(&self, request: &SimpleRequest<'_>, head: &mut Vec<u8>) -> Option<Ids> {
        let tracing = self.tracing.as_ref()?;
        let ids = tracing.ids_of_simple(request);
        tracing.mark_head(&ids, head);
        Some(ids)
    }

    /// Whether anything may be told of a hit of the fast path.
    pub(super) fn has_witnesses(&self) -> bool {
        self.log.is_some() || self.tracing.as_ref().is_some_and(|tracing| tracing.records())
    }

    /// The witness of a hit of the fast path with this head.
    pub(super) fn witness_of_hit(
        &self,
        site: Option<usize>,
        (request, ids): (&SimpleRequest<'_>, Option<&Ids>),
        (client, started): (IpAddr, Option<std::time::Instant>),
        (status, head): (StatusCode, &[u8]),
    ) -> Option<Witness> {
        let started = started?;
        let logged = LoggedRequest::of_simple(request).named(ids);
        let span = ids.and_then(Ids::recording).map(|recording| {
            let mut span = ServerSpan::begin(recording, &logged, client, started);
            span.answered(status, &Outcome::HIT, self.service.label(site).as_deref());
            span
        });
        let log = self.log.as_ref();
        Witness::of(log.and_then(|log| log.entry_of_hit(site, &logged, (client, started), (status, head))), span)
    }

    /// The line of a request, if it has one.
    fn entry<B>(
        &self,
        request: &Request<B>,
        named: Option<&Named>,
        (scheme, real_client): (Scheme, IpAddr),
    ) -> Option<Entry> {
        let log = self.log.as_ref()?;
        let logged = LoggedRequest::of(request, scheme).named(named.and_then(|named| named.ids.as_deref()));
        let site = if log.differ() { self.service.site_of(logged.host()) } else { None };
        log.entry(site, &logged, real_client, Instant::now().into_std())
    }

    /// The span of a request, if it is recorded.
    fn span<B>(request: &Request<B>, named: Option<&Named>, (scheme, client): (Scheme, IpAddr)) -> Option<ServerSpan> {
        let recording = named?.ids.as_ref()?.recording()?;
        let begun = Instant::now().into_std();
        Some(ServerSpan::begin(recording, &LoggedRequest::of(request, scheme), client, begun))
    }

    pub(super) async fn answer(
        &self,
        mut request: Request<Incoming>,
        arrival: &Arrival,
        open: BusyGuard,
    ) -> Response<TrackedBody> {
        let real_client = self.service.receive(arrival, &mut request);
        let named = self.tracing.as_ref().map(|tracing| Named::of(tracing, &mut request, real_client));
        let version = request.version();
        let scheme = request.extensions().get::<Forwarded>().map_or(arrival.scheme, |forwarded| forwarded.scheme);
        let asked = self.counters.asked(&request, scheme);
        let mut unanswered = self.counters.begin(|| SeenRequest::of(&request, scheme), real_client);
        let mut entry = self.entry(&request, named.as_ref(), (scheme, real_client));
        let mut span = Self::span(&request, named.as_ref(), (scheme, real_client));
        let is_timed = named.as_ref().is_some_and(|named| named.is_timed);
        let is_measured = entry.is_some() || unanswered.is_followed() || is_timed;
        // Pinned, because two branches wait for it.
        let head = (version == Version::HTTP_2).then(|| HeadBytes::count(open.connection(), request.headers()));
        let is_over = head.as_ref().is_some_and(|head| head.is_over(self.limits.header_bytes.0));
        // Those of HTTP/1.1 have theirs from the fast path.
        let memory = head.as_ref().map(|head| {
            let bytes = memory::http2_request(head.bytes(), !request.body().is_end_stream());
            self.connections.memory.request(bytes, self.memory.map(|memory| memory.requests))
        });
        let has_memory = memory.as_ref().is_none_or(Option::is_some);
        // Before the answer looks anything up.
        let loss = (arrival.scheme == Scheme::Https).then(|| LossCheck::of(self.service.store()));
        let (mut response, origin_time) = {
            let answering = pin!(async {
                let refusal = if is_over {
                    Some(limits::too_many_heads())
                } else if has_memory {
                    limits::refuse(&mut request, &self.limits)
                } else {
                    Some(limits::no_memory())
                };
                match refusal {
                    None => self.service.answer(request, arrival, &mut unanswered.site).await,
                    Some(refusal) => refusal,
                }
            });
            if is_measured { log::measured(answering).await } else { (answering.await, None) }
        };
        if let Some(named) = &named {
            named.mark(&mut response, origin_time);
        }
        let outcome = Outcome::of(&response);
        if let Some(entry) = &mut entry {
            let site = self.log.as_ref().and_then(|log| log.label(unanswered.site));
            entry.answered(&response, &outcome, site, origin_time);
        }
        if let Some(span) = &mut span {
            span.answered(response.status(), &outcome, self.service.label(unanswered.site).as_deref());
        }
        self.counters.note_missed(asked.as_ref(), &outcome);
        let sent = unanswered.answered(&response, &outcome, origin_time);
        drop((head, memory));
        response.map(|body| {
            let is_counted = version == Version::HTTP_2 && !body.is_end_stream();
            let loss = loss.filter(|_| body.may_be_pinned());
            let backlog = || if loss.is_some() { Backlog::Copies } else { body.backlog() };
            let stream = is_counted.then(|| self.budget.begin(open.connection(), backlog()));
            TrackedBody::new(body, open, (Witness::of(entry, span), sent), stream, loss, arrival.files.clone())
        })
    }
}

/// A request with its names.
struct Named {
    tracing: Arc<Tracing>,
    /// `None`: it has none.
    ids: Option<Arc<Ids>>,
    /// Whether the client gets `Server-Timing`.
    is_timed: bool,
    started: Instant,
}

impl Named {
    /// The names become an extension of the request.
    fn of<B>(tracing: &Arc<Tracing>, request: &mut Request<B>, real_client: IpAddr) -> Self {
        let is_trusted = request.extensions().get::<Forwarded>().is_some();
        let ids = tracing.ids(request.headers(), is_trusted);
        let ids = (!ids.is_empty()).then(|| Arc::new(ids));
        if let Some(ids) = &ids {
            request.extensions_mut().insert(Arc::clone(ids));
        }
        let is_timed = tracing.times(real_client, request.headers_mut());
        Self { tracing: Arc::clone(tracing), ids, is_timed, started: Instant::now() }
    }

    /// Adds to the head of a response what its client may know.
    fn mark<B>(&self, response: &mut Response<B>, origin_time: Option<Duration>) {
        if let Some(ids) = &self.ids {
            self.tracing.mark(ids, response.headers_mut());
        }
        if self.is_timed {
            let mut timing = HeaderMap::new();
            trace::write_timing(&mut timing, &Outcome::of(response), origin_time, self.started.elapsed());
            response.headers_mut().extend(timing);
        }
    }
}

/// The logs of a configuration, if any request is logged.
fn logs(shared: &Shared) -> Option<Arc<Logs>> {
    shared.logs.is_on().then(|| Arc::clone(&shared.logs))
}

/// The shares of a configuration.
fn shares(shared: &Shared) -> Option<MemoryShares> {
    let server = &shared.config.server;
    MemoryShares::of(&server.limits, memory::tables(server, shared.config.sites.iter()))
}
