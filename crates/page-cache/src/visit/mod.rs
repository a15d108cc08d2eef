//! A request at the cache, and what becomes of it (RFC 9111).
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
//! Which of these it is, `eyewall-http` decides; here are the volume, the upstream and the clock.

mod collapse;
mod failures;
mod fetch;
mod hit;
mod judging;
mod partial;
mod pass;
mod prescribed;
mod storing;

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use eyewall_http::reuse::{self, OnFailure, Reuse};
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::Variant;
use http::header::RANGE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, StatusCode, Version, response};

use crate::answer::Leader;
use crate::cached_body::CachedBody;
use crate::fragments::{Part, Unusable};
use crate::pages::Pages;
use crate::reply::{self, Reply};
use crate::selection::{Selection, Stored};
use crate::settings::{Place, Settings};
use crate::upstream::{Failure, Upstream};

pub use fetch::Asked;
pub(crate) use fetch::date;
pub use hit::Freshness;
pub use pass::Invalidated;
pub use prescribed::Prescribed;

/// A request, with all that it takes to answer it.
#[derive(Debug)]
pub struct Visit<U> {
    /// What is stored.
    pub pages: Arc<Pages>,
    /// How the front door wants its cache to work.
    pub settings: Arc<Settings>,
    /// Whoever makes the answers that are not stored.
    pub upstream: U,
    /// The head of the request.
    pub parts: Parts,
    /// The key of its address.
    pub address: String,
    /// The key of its answer, which begins with that of its address.
    pub key: Vec<u8>,
    /// What all responses of the address carry as a tag, where it has several keys.
    pub address_tag: Option<String>,
    /// What is asked about, of a QUERY.
    pub content: Option<Bytes>,
    /// What the client demands of the cache, as far as the front door lets it.
    pub directives: RequestDirectives,
}

/// The answer to a request; or why there is none, for the front door to tell.
pub type Answered<U> = Result<Reply<<U as Upstream>::Body>, Unanswered<<U as Upstream>::Error>>;

/// The upstream gave no answer, and nothing that is stored may take its place.
#[derive(Debug)]
pub struct Unanswered<E> {
    /// What the upstream said.
    pub error: E,
    /// What the cache did.
    pub status: CacheStatus,
}

/// What the upstream is asked for, and why.
pub(crate) struct Ask {
    /// Under which requests wait for one another: the key, and what its responses are known to vary by.
    collapse_key: Vec<u8>,
    why: Forward,
    /// What is to be validated.
    stored: Option<Box<Stored>>,
    /// Where a client wants a range of what isn't stored: what of it is asked for.
    part: Option<Part>,
    on_failure: OnFailure,
    /// With the client's own conditions: the answer isn't likely to be for others.
    as_it_came: bool,
    /// No client waits for the answer.
    is_in_background: bool,
    leader: Option<Leader>,
}

/// What is to be done about a request.
enum Plan<B> {
    Answer(Box<Reply<B>>),
    Hit(Box<Stored>),
    Ask(Box<Ask>),
}

impl Ask {
    /// For all of it, as if nothing were stored.
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

impl<U: Upstream> Visit<U> {
    /// A request without content, whose address has this key.
    pub fn new((pages, settings): (&Arc<Pages>, &Arc<Settings>), upstream: U, parts: Parts, address: String) -> Self {
        Self {
            pages: Arc::clone(pages),
            settings: Arc::clone(settings),
            upstream,
            directives: RequestDirectives::of(&parts.headers),
            parts,
            key: address.clone().into_bytes(),
            address,
            address_tag: None,
            content: None,
        }
    }

    /// Answers a GET, a HEAD or a QUERY.
    ///
    /// A hit needs little of what a miss does. The futures of everything except a hit are on the heap: each caller moves the future of this
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
        if self.parts.method == Method::HEAD {
            let stored = ask.stored.map(|stored| (stored, ask.on_failure));
            return Box::pin(self.pass(CacheStatus::forwarded(ask.why).detail("head"), stored)).await;
        }
        let is_ranged = ask.stored.is_none() && self.parts.headers.contains_key(RANGE);
        match self.settings.place {
            Place::Gateway if is_ranged => {
                let may_be_part = self.parts.method == Method::GET && !self.is_unstorable();
                ask.part = Part::of(&self.parts.headers, &self.pages).filter(|_| may_be_part);
                if ask.part.is_none() {
                    return Box::pin(self.pass(CacheStatus::forwarded(ask.why).detail("range"), None)).await;
                }
            }
            Place::Gateway => {}
            Place::Origin => {
                ask.as_it_came = ask.stored.is_none() && self.is_unstorable();
                // Of what isn't stored, the upstream makes a part itself, if it can: nobody else could do with it.
                if ask.as_it_came || is_ranged {
                    return Box::pin(self.fetch(*ask)).await;
                }
            }
        }
        Box::pin(self.collapse(*ask)).await
    }

    /// What the volume, and the terms of what is there, make of a request.
    async fn plan(self: &Arc<Self>) -> Plan<U::Body> {
        let (key, directives) = (&self.key, self.directives);
        let ask = |why, collapse_key, stored, on_failure| {
            Plan::Ask(Box::new(Ask { collapse_key, stored, on_failure, ..Ask::whole(&[], why) }))
        };
        let stored = match self.pages.select(key, &self.parts.headers, self.now()).await {
            Selection::Stored(stored) => stored,
            Selection::Failure(status, left) if !directives.no_cache && directives.max_age != Some(0) => {
                return Plan::Answer(Box::new(self.remembered(status, left)));
            }
            Selection::Nothing | Selection::Failure(..) | Selection::OtherVariants(_)
                if reuse::is_timeout_without_stored(&directives) =>
            {
                return Plan::Answer(Box::new(self.only_if_cached()));
            }
            Selection::Nothing | Selection::Failure(..) => {
                return ask(Forward::UriMiss, key.clone(), None, OnFailure::default());
            }
            Selection::OtherVariants(names) => {
                return ask(Forward::VaryMiss, self.collapse_key_of(&names), None, OnFailure::default());
            }
        };
        let now = self.now();
        let collapse_key = stored.key.clone();
        let why = if stored.terms.fresh_for(now).is_zero() { Forward::Stale } else { Forward::Request };
        match reuse::decide(&stored.terms, &directives, now, &self.settings.policy) {
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

    /// Whether the last answer of this key could not be stored.
    fn is_unstorable(&self) -> bool {
        self.pages.unstorable.contains(&self.key)
    }

    /// Under which requests wait for one another whose responses vary by these fields.
    fn collapse_key_of(&self, names: &[HeaderName]) -> Vec<u8> {
        let variant = Variant::of(names, &self.parts.headers);
        [&self.key, &b" "[..], &variant.selecting_key].concat()
    }

    /// The method by which the upstream is asked for what may be stored.
    pub(crate) fn method(&self) -> Method {
        if self.content.is_some() { Method::QUERY } else { Method::GET }
    }

    /// Which preconditions of requests are the cache's to evaluate, for a stored response.
    pub(crate) fn role(&self, terms: &Terms) -> Role {
        match self.settings.place {
            Place::Origin if !terms.fresh_for(self.now()).is_zero() => Role::CacheOfOrigin,
            // Of what isn't fresh, the client may know more than this cache does.
            Place::Origin | Place::Gateway => Role::Cache,
        }
    }

    /// A response of the upstream as its client gets it.
    fn response_of(&self, head: response::Parts, body: CachedBody<U::Body>) -> Reply<U::Body> {
        let mut response = reply::response(head.status, head.headers, body);
        if self.settings.place == Place::Origin {
            // Layers of the same process may have set them.
            (*response.extensions_mut(), *response.version_mut()) = (head.extensions, head.version);
        }
        response
    }

    /// Writes what went with a response: through where it came, and what the cache did.
    pub fn finish(&self, fields: &mut HeaderMap, received: Version, status: &CacheStatus) {
        self.upstream.sign(fields, received);
        self.tell(fields, status);
    }

    fn tell(&self, fields: &mut HeaderMap, status: &CacheStatus) {
        if let Some(name) = &self.settings.name {
            status.append_to(fields, name);
        }
    }

    /// The response that stands for a failure.
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
