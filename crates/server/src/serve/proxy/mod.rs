//! `--origin`: another server's responses, answered from the volume (RFC 9111).
//!
//! ```text
//! request ──> select among what is stored ──> may it be used?
//!               fresh, or stale and allowed ──────> hit; behind the client's back it may be validated; fragments that
//!                                                     are missing are asked for as they are wanted
//!               to be validated, or nothing there ─> join the flight of the key
//!                                                     somebody asks already: read along, or look again
//!                                                     first: fetch ──304──> renew what is stored, hit
//!                                                              └200, 206─> judge: fill, or pass on
//! ```
//! Which of these it is, `eyewall-http` decides; here are the sockets, the store and the clock.

pub(crate) mod answer;
pub(crate) mod flight;
pub(crate) mod fragments;
pub(crate) mod intake;
pub(crate) mod pages;

mod fetch;
mod fill;
mod hit;
mod pass;
mod passes;
mod purged;
mod signpost;
mod storing;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::connection;
use eyewall_http::reuse::{self, OnFailure, Reuse};
use http::header::{DATE, RANGE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::body::Body;
use super::origin::{Fault, Origins, asked_protocol};
use super::{NAME, fields, reply};
use answer::Variant;
use flight::{Joined, Landing, Ticket};
use fragments::{Part, Unusable};
use pages::{Pages, Selection, Stored};

/// How long a request waits for the answer to another one before it asks for itself.
const COLLAPSE_DEADLINE: Duration = Duration::from_secs(5);
/// How often a request waits for another one: for any response of the address, for one of its variant, and once more.
const TURNS: usize = 3;

/// An origin with a volume in front of it, as one worker has it.
pub(crate) struct Proxy {
    origins: Origins,
    pages: Arc<Pages>,
}

/// What the origin is asked for, and why.
struct Ask {
    key: Vec<u8>,
    /// Under which requests wait for one another: the address, and what its responses are known to vary by.
    flight_key: Vec<u8>,
    why: Forward,
    /// What is to be validated.
    stored: Option<Box<Stored>>,
    /// Where a client wants a range of what isn't stored: what of it is asked for.
    part: Option<Part>,
    on_failure: OnFailure,
    ticket: Option<Ticket>,
}

/// What is to be done about a request.
enum Plan {
    Answer(Response<Body>),
    Hit(Box<Stored>),
    Ask(Box<Ask>),
}

impl Ask {
    /// For all of it, as if nothing were stored.
    fn whole(key: Vec<u8>, why: Forward) -> Self {
        let flight_key = key.clone();
        Self { key, flight_key, why, stored: None, part: None, on_failure: OnFailure::default(), ticket: None }
    }
}

impl Proxy {
    pub(crate) fn new(origins: Origins, pages: Arc<Pages>) -> Self {
        Self { origins, pages }
    }

    pub(crate) async fn answer(self: &Arc<Self>, request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        let has_body = !request.body().is_end_stream();
        if has_body || !reuse::is_answerable(request.method()) || asked_protocol(request.headers()).is_some() {
            return self.forward(request, client).await;
        }
        let (request, _) = request.into_parts();
        self.answer_from_cache(&request).await
    }

    /// Answers a GET or a HEAD.
    async fn answer_from_cache(self: &Arc<Self>, request: &Parts) -> Response<Body> {
        if self.pages.store.has_failed() {
            return self.pass(request, CacheStatus::forwarded(Forward::UriMiss).detail("volume-failed"), None).await;
        }
        let key = self.key(&request.uri);
        let mut ask = match self.plan(request, key.clone()) {
            Plan::Answer(response) => return response,
            Plan::Hit(stored) => match self.hit(request, *stored, CacheStatus::hit()).await {
                Ok(response) => return response,
                Err(Unusable) => Box::new(Ask::whole(key, Forward::Partial)),
            },
            Plan::Ask(ask) => ask,
        };
        if request.method == Method::HEAD {
            return self.pass(request, CacheStatus::forwarded(ask.why).detail("head"), ask.stored).await;
        }
        if ask.stored.is_none() && request.headers.contains_key(RANGE) {
            ask.part = Part::of(&request.headers, &self.pages).filter(|_| !self.pages.passes.contains(&ask.key));
            if ask.part.is_none() {
                return self.pass(request, CacheStatus::forwarded(ask.why).detail("range"), None).await;
            }
        }
        self.collapse(request, *ask).await
    }

    fn key(&self, target: &Uri) -> Vec<u8> {
        let target = target.path_and_query().map_or("/", |target| target.as_str());
        format!("{}{target}", self.origins.key()).into_bytes()
    }

    /// What the volume, and the terms of what is there, make of a request.
    fn plan(self: &Arc<Self>, request: &Parts, key: Vec<u8>) -> Plan {
        let directives = RequestDirectives::of(&request.headers);
        let flight_key = key.clone();
        let ask = |why, flight_key, stored, on_failure| {
            Plan::Ask(Box::new(Ask { flight_key, stored, on_failure, ..Ask::whole(key.clone(), why) }))
        };
        let stored = match self.pages.select(&key, &request.headers) {
            Selection::Stored(stored) => stored,
            Selection::Nothing | Selection::OtherVariants(_) if reuse::is_timeout_without_stored(&directives) => {
                return Plan::Answer(only_if_cached());
            }
            Selection::Nothing => return ask(Forward::UriMiss, flight_key, None, OnFailure::default()),
            Selection::OtherVariants(names) => {
                let flight_key = flight_key_of(&key, &names, &request.headers);
                return ask(Forward::VaryMiss, flight_key, None, OnFailure::default());
            }
        };
        let now = SystemTime::now();
        let flight_key = stored.key.clone();
        let why = if stored.terms.fresh_for(now).is_zero() { Forward::Stale } else { Forward::Request };
        match reuse::decide(&stored.terms, &directives, now, &self.pages.policy) {
            Reuse::Fresh | Reuse::StaleAllowed => Plan::Hit(stored),
            Reuse::StaleWhileRevalidate => {
                self.refresh(request, key, &flight_key);
                Plan::Hit(stored)
            }
            Reuse::GatewayTimeout => Plan::Answer(only_if_cached()),
            Reuse::Validate { on_failure } => ask(why, flight_key, Some(stored), on_failure),
            Reuse::MustNotUse => ask(why, flight_key, None, OnFailure::default()),
        }
    }

    /// Asks the origin, or waits for somebody who does already.
    async fn collapse(self: &Arc<Self>, request: &Parts, ask: Ask) -> Response<Body> {
        let directives = RequestDirectives::of(&request.headers);
        // Who wants an answer of his own doesn't take that of another.
        if directives.no_cache || directives.no_store || self.pages.passes.contains(&ask.key) {
            return self.fetch(request, ask).await;
        }
        let mut flight_key = ask.flight_key.clone();
        for _ in 0..TURNS {
            let waiting = match self.pages.flights.join(&flight_key) {
                Joined::Lead(ticket) => {
                    // Another flight may have landed between the look and the ticket.
                    if let Some(response) = self.stored_by_now(request, &ask).await {
                        return response;
                    }
                    return self.fetch(request, Ask { ticket: Some(ticket), ..ask }).await;
                }
                Joined::Follow(waiting) => waiting,
            };
            match waiting.landing(COLLAPSE_DEADLINE).await {
                Landing::Answered(answer) if answer.suits(&request.headers) => {
                    if let Some(response) = self.follow(request, &answer, ask.why).await {
                        return response;
                    }
                    break;
                }
                Landing::Answered(answer) => {
                    let names = answer.variant.as_ref().map_or(&[][..], |variant| &variant.names);
                    flight_key = flight_key_of(&ask.key, names, &request.headers);
                }
                Landing::Over => {
                    if let Some(response) = self.stored_by_now(request, &ask).await {
                        return response;
                    }
                    if self.pages.passes.contains(&ask.key) {
                        break;
                    }
                }
                Landing::Late => break,
            }
        }
        self.fetch(request, ask).await
    }

    /// What another request has stored meanwhile.
    async fn stored_by_now(self: &Arc<Self>, request: &Parts, ask: &Ask) -> Option<Response<Body>> {
        if !self.pages.has_fresh(&ask.key, &request.headers) {
            return None;
        }
        match self.plan(request, ask.key.clone()) {
            Plan::Answer(response) => Some(response),
            Plan::Hit(stored) => self.hit(request, *stored, CacheStatus::hit()).await.ok(),
            Plan::Ask(_) => None,
        }
    }

    /// Validates behind the client's back, unless somebody does already.
    fn refresh(self: &Arc<Self>, request: &Parts, key: Vec<u8>, flight_key: &[u8]) {
        let Joined::Lead(ticket) = self.pages.flights.join(flight_key) else { return };
        let Selection::Stored(stored) = self.pages.select(&key, &request.headers) else { return };
        let (proxy, request) = (Arc::clone(self), request.clone());
        let (flight_key, stored, ticket) = (flight_key.to_vec(), Some(stored), Some(ticket));
        let ask = Ask { flight_key, stored, ticket, ..Ask::whole(key, Forward::Stale) };
        tokio::spawn(async move { drop(proxy.fetch(&request, ask).await) });
    }
}

fn flight_key_of(key: &[u8], names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let variant = Variant::of(names, request);
    [key, b" ", &variant.selecting_key].concat()
}

/// What the origin said, without what concerned the connection only, and with a date.
fn prepare(response: &mut HeaderMap) {
    connection::drop_hop_by_hop(response);
    if !response.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        response.insert(DATE, now);
    }
}

fn finish(response: &mut HeaderMap, received: Version, status: &CacheStatus) {
    fields::append_via(response, received);
    status.append_to(response, NAME);
}

fn failed(fault: &Fault, status: CacheStatus) -> Response<Body> {
    let mut response = reply::error(fault.status(), &fault.to_string());
    status.detail(fault.detail()).append_to(response.headers_mut(), NAME);
    response
}

/// RFC 9111, section 5.2.1.7.
fn only_if_cached() -> Response<Body> {
    let mut response =
        reply::error(StatusCode::GATEWAY_TIMEOUT, "the client wanted a stored answer, and there is none");
    CacheStatus::hit().detail("only-if-cached").append_to(response.headers_mut(), NAME);
    response
}
