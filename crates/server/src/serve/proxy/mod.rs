//! `--origin`: another server's responses, answered from the volume (RFC 9111).
//!
//! ```text
//! request ──> select among what is stored ──> may it be used?
//!               fresh, or stale and allowed ──────> hit; behind the client's back it may be validated; fragments that
//!                                                     are missing are asked for as they are wanted
//!               to be validated, or nothing there ─> join the request for the key
//!                                                     somebody asks already: wait, read its body, or look again
//!                                                     first: fetch ──304──> renew what is stored, hit
//!                                                              └200, 206─> judge: fill, or pass on
//! ```
//! Which of these it is, `eyewall-http` decides; here are the sockets, the store and the clock.

pub(crate) mod answer;
pub(crate) mod fast_path;
pub(crate) mod fragments;
pub(crate) mod pages;

mod failures;
mod fetch;
mod fill;
mod hit;
mod inbound;
mod pass;
mod policy;
mod query;
mod storing;
pub(crate) mod tags;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::connection;
use eyewall_http::policy::Policy;
use eyewall_http::reuse::{self, OnFailure, Reuse};
use eyewall_http::vary_index::Variant;
use eyewall_page_cache::collapsing::Outcome;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, RANGE};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;

use super::body::Body;
use super::origin::{Origins, ProxyError, RequestBody, asked_protocol, framing};
use super::{NAME, fields, reply};
use crate::config::Site;
use crate::key::CacheKey;
use crate::rules::{Applied, Decision};
use answer::{Joined, Leader};
use eyewall_page_cache::selection::{Selection, Stored};
use fragments::{Part, Unusable};
use inbound::Inbound;
use pages::Pages;

/// How long a request waits for the answer to another one before it asks for itself.
const COLLAPSE_DEADLINE: Duration = Duration::from_secs(5);
/// How often a request waits for another one: for any response of the address, for one of its variant, and once more.
const TURNS: usize = 3;

/// The origins of a site with the volume in front of them, as one worker has them.
pub(crate) struct Proxy {
    site: Arc<Site>,
    policy: Policy,
    origins: Origins,
    pages: Arc<Pages>,
    /// The fields of requests that keys and rules look at.
    looked_at: Vec<HeaderName>,
}

/// What the origin is asked for, and why.
struct Ask {
    /// Under which requests wait for one another: the address, and what its responses are known to vary by.
    collapse_key: Vec<u8>,
    why: Forward,
    /// What is to be validated.
    stored: Option<Box<Stored>>,
    /// Where a client wants a range of what isn't stored: what of it is asked for.
    part: Option<Part>,
    on_failure: OnFailure,
    leader: Option<Leader>,
}

/// What is to be done about a request.
enum Plan {
    Answer(Response<Body>),
    Hit(Box<Stored>),
    Ask(Box<Ask>),
}

impl Ask {
    /// For all of it, as if nothing were stored.
    fn whole(key: &[u8], why: Forward) -> Self {
        let collapse_key = key.to_vec();
        Self { collapse_key, why, stored: None, part: None, on_failure: OnFailure::default(), leader: None }
    }
}

impl Proxy {
    pub(crate) fn new(site: Arc<Site>, origins: Origins, pages: Arc<Pages>) -> Self {
        let looked_at = site.key.looked_at().chain(site.rules.looked_at()).cloned().collect();
        Self { policy: policy::of_site(&site.settings.cache), site, origins, pages, looked_at }
    }

    /// Answers a request of this site, whose answer is stored under `key`.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        request: Request<Incoming>,
        key: &CacheKey,
        client: IpAddr,
    ) -> Response<Body> {
        let (mut parts, incoming) = request.into_parts();
        let body = RequestBody::streamed(incoming, &parts);
        if asked_protocol(&parts.headers).is_none() {
            if parts.method == Method::QUERY {
                return self.answer_query(parts, body, key, client).await;
            }
            if reuse::is_answerable(&parts.method) && body.is_end_stream() {
                return self.answer_inbound(Inbound::new(&self.site, &mut parts, key, client)).await;
            }
        }
        self.forward(Request::from_parts(parts, body), key, client).await
    }

    /// Answers what may be answered from the cache.
    async fn answer_inbound(self: &Arc<Self>, inbound: Inbound<'_>) -> Response<Body> {
        match inbound.decision.bypass {
            Some(rule) => self.pass(inbound, CacheStatus::forwarded(Forward::Bypass).detail(rule), None).await,
            None => self.answer_from_cache(inbound).await,
        }
    }

    /// Answers a GET, a HEAD or a QUERY.
    async fn answer_from_cache(self: &Arc<Self>, inbound: Inbound<'_>) -> Response<Body> {
        if self.pages.store.has_failed() {
            return self.pass(inbound, CacheStatus::forwarded(Forward::UriMiss).detail("volume-failed"), None).await;
        }
        let key = inbound.key.as_bytes();
        let mut ask = match self.plan(inbound).await {
            Plan::Answer(response) => return response,
            Plan::Hit(stored) => match self.hit(inbound, *stored, CacheStatus::hit()).await {
                Ok(response) => return response,
                Err(Unusable) => Box::new(Ask::whole(key, Forward::Partial)),
            },
            Plan::Ask(ask) => ask,
        };
        if inbound.parts.method == Method::HEAD {
            let stored = ask.stored.map(|stored| (stored, ask.on_failure));
            return self.pass(inbound, CacheStatus::forwarded(ask.why).detail("head"), stored).await;
        }
        if ask.stored.is_none() && inbound.fields().contains_key(RANGE) {
            let may_be_part = inbound.parts.method == Method::GET && !self.pages.unstorable.contains(key);
            ask.part = Part::of(inbound.fields(), &self.pages).filter(|_| may_be_part);
            if ask.part.is_none() {
                return self.pass(inbound, CacheStatus::forwarded(ask.why).detail("range"), None).await;
            }
        }
        self.collapse(inbound, *ask).await
    }

    /// What the volume, and the terms of what is there, make of a request.
    async fn plan(self: &Arc<Self>, inbound: Inbound<'_>) -> Plan {
        let directives = inbound.directives();
        let key = inbound.key.as_bytes();
        let ask = |why, collapse_key, stored, on_failure| {
            Plan::Ask(Box::new(Ask { collapse_key, stored, on_failure, ..Ask::whole(key, why) }))
        };
        let stored = match self.pages.select(key, inbound.fields(), SystemTime::now()).await {
            Selection::Stored(stored) => stored,
            Selection::Failure(status, left) if !directives.no_cache && directives.max_age != Some(0) => {
                return Plan::Answer(failures::remembered(status, left));
            }
            Selection::Nothing | Selection::Failure(..) | Selection::OtherVariants(_)
                if reuse::is_timeout_without_stored(&directives) =>
            {
                return Plan::Answer(only_if_cached());
            }
            Selection::Nothing | Selection::Failure(..) => {
                return ask(Forward::UriMiss, key.to_vec(), None, OnFailure::default());
            }
            Selection::OtherVariants(names) => {
                let collapse_key = collapse_key_of(key, &names, inbound.fields());
                return ask(Forward::VaryMiss, collapse_key, None, OnFailure::default());
            }
        };
        let now = SystemTime::now();
        let collapse_key = stored.key.clone();
        let why = if stored.terms.fresh_for(now).is_zero() { Forward::Stale } else { Forward::Request };
        match reuse::decide(&stored.terms, &directives, now, &self.policy) {
            Reuse::Fresh | Reuse::StaleAllowed => Plan::Hit(stored),
            Reuse::StaleWhileRevalidate => {
                self.refresh(inbound, collapse_key).await;
                Plan::Hit(stored)
            }
            Reuse::GatewayTimeout => Plan::Answer(only_if_cached()),
            Reuse::Validate { on_failure } => ask(why, collapse_key, Some(stored), on_failure),
            Reuse::MustNotUse => ask(why, collapse_key, None, OnFailure::default()),
        }
    }

    /// Asks the origin, or waits for somebody who does already.
    async fn collapse(self: &Arc<Self>, inbound: Inbound<'_>, ask: Ask) -> Response<Body> {
        let directives = inbound.directives();
        let key = inbound.key.as_bytes();
        // Who wants an answer of his own doesn't take that of another.
        if directives.no_cache || directives.no_store || self.pages.unstorable.contains(key) {
            return self.fetch(inbound, ask).await;
        }
        let mut collapse_key = ask.collapse_key.clone();
        for _ in 0..TURNS {
            let waiting = match self.pages.join(&collapse_key) {
                Joined::Lead(leader) => {
                    // Another request may have stored the answer between the look and the leader.
                    if let Some(response) = self.stored_by_now(inbound).await {
                        return response;
                    }
                    return self.fetch(inbound, Ask { leader: Some(leader), ..ask }).await;
                }
                Joined::Follow(waiting) => waiting,
            };
            let is_late = waiting.is_late;
            match waiting.answer(COLLAPSE_DEADLINE).await {
                // Who comes behind the head takes it as he would take what is stored.
                Outcome::Answered(answer)
                    if is_late
                        && answer.suits(inbound.fields())
                        && reuse::decide(&answer.terms, &directives, SystemTime::now(), &self.policy)
                            != Reuse::Fresh =>
                {
                    break;
                }
                Outcome::Answered(answer) if answer.suits(inbound.fields()) => {
                    if let Some(response) = self.follow(inbound, &answer, ask.why).await {
                        return response;
                    }
                    break;
                }
                Outcome::Answered(answer) => {
                    let names = answer.variant.as_ref().map_or(&[][..], |variant| &variant.names);
                    collapse_key = collapse_key_of(key, names, inbound.fields());
                }
                Outcome::Over => {
                    if let Some(response) = self.stored_by_now(inbound).await {
                        return response;
                    }
                    if self.pages.unstorable.contains(key) {
                        break;
                    }
                }
                Outcome::Alone | Outcome::Late => break,
            }
        }
        self.fetch(inbound, ask).await
    }

    /// What another request has stored meanwhile.
    async fn stored_by_now(self: &Arc<Self>, inbound: Inbound<'_>) -> Option<Response<Body>> {
        if !self.pages.has_fresh(inbound.key.as_bytes(), inbound.fields(), SystemTime::now()).await {
            return None;
        }
        match self.plan(inbound).await {
            Plan::Answer(response) => Some(response),
            Plan::Hit(stored) => self.hit(inbound, *stored, CacheStatus::hit()).await.ok(),
            Plan::Ask(_) => None,
        }
    }

    /// Validates behind the client's back, unless somebody does already.
    async fn refresh(self: &Arc<Self>, inbound: Inbound<'_>, collapse_key: Vec<u8>) {
        let Joined::Lead(leader) = self.pages.join(&collapse_key) else { return };
        let key = inbound.key.as_bytes();
        let Selection::Stored(stored) = self.pages.select(key, inbound.fields(), SystemTime::now()).await else {
            return;
        };
        let (proxy, kept) = (Arc::clone(self), inbound.kept());
        let (stored, leader) = (Some(stored), Some(leader));
        let ask = Ask { collapse_key, stored, leader, ..Ask::whole(key, Forward::Stale) };
        tokio::spawn(async move { drop(proxy.fetch(kept.inbound(&proxy.site), ask).await) });
    }
}

fn collapse_key_of(key: &[u8], names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let variant = Variant::of(names, request);
    [key, b" ", &variant.selecting_key].concat()
}

/// Makes of what the origin said what is stored and passed on: without what concerned the connection only, or the rules
/// strip, and with a date.
fn prepare<'a, B>(decision: Decision<'a>, response: &mut Response<B>) -> Applied<'a> {
    let mut fields = std::mem::take(response.headers_mut());
    framing::note_coding(&fields, response.extensions_mut());
    connection::drop_hop_by_hop(&mut fields);
    if !eyewall_http::answer::has_length(response.status()) {
        fields.remove(CONTENT_LENGTH);
    }
    if !fields.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(SystemTime::now()))
    {
        fields.insert(DATE, now);
    }
    let applied = strip(decision, response.status(), &mut fields, response.extensions_mut());
    *response.headers_mut() = fields;
    applied
}

/// What the rules say of a response, from which the fields that they strip are gone. What tags those name is in its extensions.
fn strip<'a>(
    decision: Decision<'a>,
    status: StatusCode,
    fields: &mut HeaderMap,
    extensions: &mut Extensions,
) -> Applied<'a> {
    let applied = decision.of_response(status, fields);
    tags::strip(applied.stripped(), fields, extensions);
    applied
}

fn finish(response: &mut HeaderMap, received: Version, status: &CacheStatus) {
    fields::append_via(response, received);
    status.append_to(response, NAME);
}

fn failed(error: &ProxyError, status: CacheStatus) -> Response<Body> {
    let mut response = reply::error(error.status(), &error.to_string());
    status.detail(error.detail()).append_to(response.headers_mut(), NAME);
    // Over HTTP/2, where that is about the stream alone, hyper drops it.
    if error.leaves_body() {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// RFC 9111, section 5.2.1.7.
fn only_if_cached() -> Response<Body> {
    let mut response =
        reply::error(StatusCode::GATEWAY_TIMEOUT, "the client wanted a stored answer, and there is none");
    CacheStatus::hit().detail("only-if-cached").append_to(response.headers_mut(), NAME);
    response
}
