//! A request at the cache, and what becomes of it (RFC 9111).
//!
//! ```text
//! request ──> select among what is stored ──> may it be used?
//!               fresh, or stale and allowed ──────> hit; the cache may validate it in the background, and asks for
//!                                                     missing fragments when the client gets there
//!               to be validated, or nothing there ─> join the request for the key
//!                                                     another request asks: wait, read its body, or look again
//!                                                     first: fetch ──304──> renew the stored response, hit
//!                                                              └200, 206─> judge: fill, or pass on
//! ```
//! `eyewall-http` decides among these. This module has the volume, the upstream and the clock.

mod collapse;
mod failures;
mod fetch;
mod forms;
mod hit;
mod judging;
mod outlook;
mod partial;
mod pass;
mod prescribed;
mod storing;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use eyewall_fleet::AsOf;
use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use eyewall_http::reuse::{OnFailure, Reuse};
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::Variant;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, StatusCode, Version, response};

use crate::answer::Leader;
use crate::cached_body::CachedBody;
use crate::carried::Carried;
use crate::compression::entity_tag;
use crate::fragments::{Part, Unusable};
use crate::pages::Pages;
use crate::reply::{self, Reply, StandsFor};
use crate::selection::Stored;
use crate::settings::{Place, Settings};
use crate::upstream::{Failure, Upstream};

pub use fetch::Asked;
pub(crate) use fetch::date;
pub use hit::Freshness;
use outlook::Asking;
pub use outlook::{Outlook, Prospect, Verdict};
pub use pass::Invalidated;
pub use prescribed::Prescribed;

/// A request, with all that is needed to answer it.
#[derive(Debug)]
pub struct Visit<U> {
    /// The stored responses.
    pub pages: Arc<Pages>,
    /// The settings of the front door.
    pub settings: Arc<Settings>,
    /// The upstream.
    pub upstream: U,
    /// The head of the request.
    pub parts: Parts,
    /// The key of its address.
    pub address: String,
    /// The key of its response, which begins with the key of its address.
    pub key: Vec<u8>,
    /// The tag of all responses of the address, if it has several keys.
    pub address_tag: Option<String>,
    /// The content of a QUERY.
    pub content: Option<Bytes>,
    /// The client's demands on the cache, as far as the front door allows them.
    pub directives: RequestDirectives,
    /// Up to which line of the purge log the volume was right when the request came. `None`: no other cache gets the answer.
    pub as_of: Option<AsOf>,
    /// The answer is for another cache. It is whole, in its identity form, and validated if it is stale. If it was or may be stored, it
    /// has the extension [`Carried`].
    pub is_for_cache: bool,
}

/// The answer to a request, or the reason why there is none, for the front door to report.
pub type Answered<U> = Result<Reply<<U as Upstream>::Body>, Unanswered<<U as Upstream>::Error>>;

/// The upstream gave no answer, and no stored response may take its place.
#[derive(Debug)]
pub struct Unanswered<E> {
    /// The error of the upstream.
    pub error: E,
    /// What the cache did.
    pub status: CacheStatus,
}

/// What to ask the upstream for, and why.
pub(crate) struct Ask {
    /// Requests with the same collapse key wait for one another. It is the key with the fields that its responses are known to vary
    /// by.
    collapse_key: Vec<u8>,
    why: Forward,
    /// The response to validate.
    stored: Option<Box<Stored>>,
    /// The part to ask for, if a client wants a range of a response that isn't stored.
    part: Option<Part>,
    on_failure: OnFailure,
    /// With the client's own conditions: the answer is probably of no use to other requests.
    as_it_came: bool,
    /// No client waits for the answer.
    is_in_background: bool,
    leader: Option<Leader>,
}

/// What to do about a request.
enum Plan<B> {
    Answer(Box<Reply<B>>),
    Hit(Box<Stored>),
    Ask(Box<Ask>),
}

impl Ask {
    /// Asks for all of it, as if nothing were stored.
    fn whole(key: &[u8], why: Forward) -> Self {
        Self {
            collapse_key: key.to_vec(),
            why,
            stored: None,
            part: None,
            on_failure: OnFailure::default(),
            as_it_came: false,
            is_in_background: false,
            leader: None,
        }
    }
}

/// The client's demands on the cache. Drops a range that the cache can't answer.
fn directives(settings: &Settings, parts: &mut Parts) -> RequestDirectives {
    if settings.compression.is_some() {
        entity_tag::drop_range_by_date(&mut parts.headers);
    }
    RequestDirectives::of(&parts.headers)
}

impl<U: Upstream> Visit<U> {
    /// A request without content. `address` is the key of its address.
    pub fn new(
        (pages, settings): (&Arc<Pages>, &Arc<Settings>),
        upstream: U,
        mut parts: Parts,
        address: String,
    ) -> Self {
        let directives = directives(settings, &mut parts);
        Self {
            pages: Arc::clone(pages),
            settings: Arc::clone(settings),
            upstream,
            directives,
            parts,
            key: address.clone().into_bytes(),
            address,
            address_tag: None,
            content: None,
            as_of: None,
            is_for_cache: false,
        }
    }

    /// Answers a GET, a HEAD or a QUERY.
    ///
    /// The hit path is small. The futures of everything except a hit are on the heap, because each caller moves the future of this
    /// function once, whatever becomes of the request.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn answer(self: &Arc<Self>) -> Answered<U> {
        if self.pages.store.has_failed() {
            return Box::pin(self.pass(CacheStatus::forwarded(Forward::UriMiss).detail("volume-failed"), None)).await;
        }
        let mut ask = match self.plan().await {
            Plan::Answer(response) => return Ok(*response),
            Plan::Hit(stored) => match self.hit(stored, CacheStatus::hit()).await {
                Ok(response) => return Ok(response),
                Err(Unusable) => Box::new(Ask::whole(&self.key, Forward::Partial)),
            },
            Plan::Ask(ask) => ask,
        };
        let asking = Asking::of(&self.pages, &self.key, &self.parts, ask.stored.is_some());
        match (asking, self.settings.place) {
            (Asking::Head, _) => {
                let stored = ask.stored.map(|stored| (stored, ask.on_failure));
                return Box::pin(self.pass(CacheStatus::forwarded(ask.why).detail("head"), stored)).await;
            }
            // The other cache would get nothing that it may take, and ask the upstream, too.
            (Asking::Range, Place::Gateway) if self.is_for_cache => return Ok(self.only_if_cached()),
            (Asking::Part(part), Place::Gateway) if self.is_for_cache && part.is_of_end() => {
                return Ok(self.only_if_cached());
            }
            (Asking::Range, Place::Gateway) => {
                return Box::pin(self.pass(CacheStatus::forwarded(ask.why).detail("range"), None)).await;
            }
            (Asking::Part(part), Place::Gateway) => ask.part = Some(part),
            (Asking::Whole, Place::Gateway) => {}
            (asking, Place::Origin) => {
                ask.as_it_came = ask.stored.is_none() && self.is_unstorable();
                // The upstream itself makes a part of a response that can't be stored in parts, if it can. No other request could
                // use the part.
                if ask.as_it_came || !matches!(asking, Asking::Whole) {
                    return Box::pin(self.fetch(*ask)).await;
                }
            }
        }
        Box::pin(self.collapse(*ask)).await
    }

    /// The plan for a request, by the entries of the volume and their terms.
    async fn plan(self: &Arc<Self>) -> Plan<U::Body> {
        let (key, directives) = (&self.key, self.directives);
        let ask = |why, collapse_key, stored, on_failure| {
            Plan::Ask(Box::new(Ask { collapse_key, stored, on_failure, ..Ask::whole(&[], why) }))
        };
        let selection = self.pages.select(key, &self.parts.headers, self.now()).await;
        let (stored, reuse, why) = match Verdict::of(selection, &directives, self.now(), &self.settings.policy) {
            Verdict::Stored { stored, reuse, why } => (stored, reuse, why),
            Verdict::Failure(status, left) => return Plan::Answer(Box::new(self.remembered(status, left))),
            Verdict::Timeout => return Plan::Answer(Box::new(self.only_if_cached())),
            Verdict::Nothing => return ask(Forward::UriMiss, key.clone(), None, OnFailure::default()),
            Verdict::OtherVariants(names) => {
                return ask(Forward::VaryMiss, self.collapse_key_of(&names), None, OnFailure::default());
            }
        };
        let collapse_key = stored.key.clone();
        match reuse {
            // The cache that asks has its own copy for the time when the origin gives none.
            Reuse::StaleAllowed | Reuse::StaleWhileRevalidate | Reuse::Validate { .. } if self.is_for_cache => {
                ask(why, collapse_key, Some(stored), OnFailure::default())
            }
            Reuse::Fresh | Reuse::StaleAllowed => Plan::Hit(stored),
            Reuse::StaleWhileRevalidate => {
                Box::pin(self.refresh(collapse_key)).await;
                Plan::Hit(stored)
            }
            Reuse::GatewayTimeout => Plan::Answer(Box::new(self.only_if_cached())),
            Reuse::Validate { on_failure } => ask(why, collapse_key, Some(stored), on_failure),
            Reuse::MustNotUse => ask(why, collapse_key, None, OnFailure::default()),
        }
    }

    fn now(&self) -> SystemTime {
        self.settings.now()
    }

    /// Whether the last answer for this key could not be stored.
    pub fn is_unstorable(&self) -> bool {
        self.pages.is_unstorable(&self.key)
    }

    /// The collapse key of requests whose responses vary by these fields.
    fn collapse_key_of(&self, names: &[HeaderName]) -> Vec<u8> {
        let variant = Variant::of(names, &self.parts.headers);
        [&self.key, &b" "[..], &variant.selecting_key].concat()
    }

    /// The method of a request to the upstream whose answer may be stored.
    pub(crate) fn method(&self) -> Method {
        if self.content.is_some() { Method::QUERY } else { Method::GET }
    }

    /// Which preconditions the cache evaluates for a stored response.
    pub(crate) fn role(&self, terms: &Terms) -> Role {
        match self.settings.place {
            Place::Origin if !terms.fresh_for(self.now()).is_zero() => Role::CacheOfOrigin,
            // If the response isn't fresh, the client may know a newer one than this cache does.
            Place::Origin | Place::Gateway => Role::Cache,
        }
    }

    /// The client's response for one of the upstream.
    fn response_of(&self, head: response::Parts, body: CachedBody<U::Body>) -> Reply<U::Body> {
        let mut response = reply::response(head.status, head.headers, body);
        if self.settings.place == Place::Origin {
            // Layers of the same process may have set them.
            (*response.extensions_mut(), *response.version_mut()) = (head.extensions, head.version);
        } else if let Some(stands_for) = head.extensions.get::<StandsFor>() {
            response.extensions_mut().insert(stands_for.clone());
        }
        response
    }

    /// Adds what another cache needs to a response that was stored, or will be.
    fn carry(&self, response: &mut Reply<U::Body>, carried: impl FnOnce() -> Option<Carried>) {
        if self.is_for_cache
            && let Some(carried) = carried()
        {
            response.extensions_mut().insert(carried);
        }
    }

    /// Adds the fields of the cache to a response: the connections that it passed, and what the cache did.
    pub fn finish(&self, fields: &mut HeaderMap, received: Version, status: &CacheStatus) {
        self.upstream.sign(fields, received);
        self.tell(fields, status);
    }

    fn tell(&self, fields: &mut HeaderMap, status: &CacheStatus) {
        if let Some(name) = &self.settings.name {
            status.append_to(fields, name);
        }
    }

    /// The response for a failure.
    pub fn failed(&self, failure: &Failure, status: CacheStatus) -> Reply<U::Body> {
        let mut response = reply::error(failure.status, &failure.words);
        self.tell(response.headers_mut(), &status.detail(failure.detail));
        response
    }

    /// RFC 9111, section 5.2.1.7.
    fn only_if_cached(&self) -> Reply<U::Body> {
        let words = "the client wanted a stored answer, and there is none";
        let mut response = reply::error(StatusCode::GATEWAY_TIMEOUT, words);
        self.tell(response.headers_mut(), &CacheStatus::hit().detail("only-if-cached"));
        response
    }
}
