//! A request that the cache looks at.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use eyewall_http::reuse::{self, OnFailure, Reuse};
use eyewall_http::vary_index::Variant;
use eyewall_page_cache::collapsing::Outcome;
use http::header::RANGE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response, Uri};
use http_body::Body as _;

use super::answer::Answer;
use super::answer::Pages;
use super::answer::{Joined, Leader};
use super::body::{CachedBody, RequestBody};
use super::claim;
use super::fill::Content;
use super::inner::Inner;
use super::reply::{self, AgeAndTtl};
use super::settings::Settings;
use eyewall_page_cache::selection::{Selection, Stored};

/// How often a request waits for another one: for any response of the address, for one of its variant, and once more.
const TURNS: usize = 3;

/// A request, with all that it takes to answer it.
pub(super) struct Visit<S, B> {
    pub(super) inner: S,
    pub(super) settings: Arc<Settings>,
    pub(super) pages: Arc<Pages>,
    pub(super) parts: Parts,
    /// What is asked for, absolute; None: it doesn't say of which host.
    pub(super) target: Option<Uri>,
    /// The key of its address, and that of the request's answer.
    pub(super) address: String,
    pub(super) key: Vec<u8>,
    /// What is asked about, of a QUERY.
    pub(super) content: Option<bytes::Bytes>,
    body: PhantomData<fn() -> B>,
}

/// What the inner service is asked for, and why.
pub(super) struct Ask {
    /// Under which requests wait for one another: the key, and what its responses are known to vary by.
    pub(super) collapse_key: Vec<u8>,
    pub(super) why: Forward,
    /// What is to be validated.
    pub(super) stored: Option<Box<Stored>>,
    pub(super) on_failure: OnFailure,
    /// With the client's own conditions: the answer isn't likely to be for others.
    pub(super) as_it_came: bool,
    pub(super) leader: Option<Leader>,
}

/// What is to be done about a request.
enum Plan<R> {
    Answer(Box<Response<CachedBody<R>>>),
    Hit(Box<Stored>),
    Ask(Box<Ask>),
}

impl Ask {
    /// For all of it, as if nothing were stored.
    pub(super) fn whole(key: &[u8], why: Forward) -> Self {
        let (collapse_key, on_failure) = (key.to_vec(), OnFailure::default());
        Self { collapse_key, why, stored: None, on_failure, as_it_came: false, leader: None }
    }
}

/// The answer of a [`Visit`].
pub(super) type Answered<S, B> = Result<Response<CachedBody<<S as Inner<B>>::Content>>, <S as Inner<B>>::Fault>;

impl<S, B> Visit<S, B> {
    pub(super) fn new(inner: S, settings: Arc<Settings>, pages: Arc<Pages>, parts: Parts) -> Self {
        let target = settings.key.target(&parts);
        let address = target.as_ref().map(|target| settings.address(target)).unwrap_or_default();
        let key = settings.key.of_request(&address, &parts);
        Self { inner, settings, pages, parts, target, address, key, content: None, body: PhantomData }
    }

    pub(super) fn now(&self) -> SystemTime {
        self.settings.now()
    }

    pub(super) fn directives(&self) -> RequestDirectives {
        RequestDirectives::of(&self.parts.headers)
    }

    /// What all responses of its address carry as a tag, where it has several keys.
    pub(super) fn address_tag(&self) -> Option<String> {
        self.settings.key.address_tag(&self.address)
    }

    /// Another one of the same, for what goes on behind the client's back.
    fn again(&self) -> Self
    where
        S: Clone,
    {
        Self {
            inner: self.inner.clone(),
            settings: Arc::clone(&self.settings),
            pages: Arc::clone(&self.pages),
            parts: self.parts.clone(),
            target: self.target.clone(),
            address: self.address.clone(),
            key: self.key.clone(),
            content: self.content.clone(),
            body: PhantomData,
        }
    }

    /// The method by which the inner service is asked for what may be stored.
    pub(super) fn method(&self) -> Method {
        if self.content.is_some() { Method::QUERY } else { Method::GET }
    }

    /// The request by which the inner service is asked, by this method and with these fields.
    pub(super) fn request(&self, method: Method, fields: HeaderMap) -> Request<RequestBody<B>> {
        let mut parts = self.parts.clone();
        (parts.method, parts.headers) = (method, fields);
        let body = self.content.clone().map_or_else(RequestBody::empty, RequestBody::whole);
        Request::from_parts(parts, body)
    }
}

impl<S: Inner<B>, B: Content> Visit<S, B> {
    /// Answers a GET, a HEAD or a QUERY.
    pub(super) async fn answer(&mut self) -> Answered<S, B> {
        if self.pages.store.has_failed() {
            let status = CacheStatus::forwarded(Forward::UriMiss).detail("volume-failed");
            return self.pass(status, None).await;
        }
        let mut ask = match self.plan().await {
            Plan::Answer(response) => return Ok(*response),
            Plan::Hit(stored) => return Ok(self.hit(*stored, CacheStatus::hit())),
            Plan::Ask(ask) => ask,
        };
        if self.parts.method == Method::HEAD {
            return self.pass(CacheStatus::forwarded(ask.why).detail("head"), ask.stored).await;
        }
        ask.as_it_came = ask.stored.is_none() && self.pages.unstorable.contains(&self.key);
        // Of what isn't stored, the inner service makes a part itself, if it can: nobody else could do with it.
        if ask.as_it_came || ask.stored.is_none() && self.parts.headers.contains_key(RANGE) {
            return self.ask(*ask).await;
        }
        self.collapse(*ask).await
    }

    /// What the volume, and the terms of what is there, make of a request.
    async fn plan(&mut self) -> Plan<S::Content> {
        let directives = self.directives();
        let now = self.now();
        let ask = |why, collapse_key, stored, on_failure| {
            Plan::Ask(Box::new(Ask { collapse_key, stored, on_failure, ..Ask::whole(&[], why) }))
        };
        let stored = match self.pages.select(&self.key, &self.parts.headers, now).await {
            Selection::Stored(stored) => stored,
            Selection::Nothing | Selection::Failure(..) | Selection::OtherVariants(_)
                if reuse::is_timeout_without_stored(&directives) =>
            {
                return Plan::Answer(Box::new(reply::only_if_cached(&self.settings)));
            }
            Selection::Nothing | Selection::Failure(..) => {
                return ask(Forward::UriMiss, self.key.clone(), None, OnFailure::default());
            }
            Selection::OtherVariants(names) => {
                let collapse_key = collapse_key_of(&self.key, &names, &self.parts.headers);
                return ask(Forward::VaryMiss, collapse_key, None, OnFailure::default());
            }
        };
        let collapse_key = stored.key.clone();
        let why = if stored.terms.fresh_for(now).is_zero() { Forward::Stale } else { Forward::Request };
        match reuse::decide(&stored.terms, &directives, now, &self.settings.policy) {
            Reuse::Fresh | Reuse::StaleAllowed => Plan::Hit(stored),
            Reuse::StaleWhileRevalidate => {
                self.refresh(collapse_key).await;
                Plan::Hit(stored)
            }
            Reuse::GatewayTimeout => Plan::Answer(Box::new(reply::only_if_cached(&self.settings))),
            Reuse::Validate { on_failure } => ask(why, collapse_key, Some(stored), on_failure),
            Reuse::MustNotUse => ask(why, collapse_key, None, OnFailure::default()),
        }
    }

    /// Asks the inner service, or waits for somebody who does already.
    async fn collapse(&mut self, ask: Ask) -> Answered<S, B> {
        let directives = self.directives();
        // Who wants an answer of his own doesn't take that of another.
        if directives.no_cache || directives.no_store {
            return self.ask(ask).await;
        }
        let mut collapse_key = ask.collapse_key.clone();
        for _ in 0..TURNS {
            let waiting = match self.pages.join(&collapse_key) {
                Joined::Lead(leader) => return self.lead(ask, collapse_key, leader).await,
                Joined::Follow(waiting) => waiting,
            };
            let is_late = waiting.is_late;
            match waiting.answer(self.settings.patience).await {
                Outcome::Answered(answer) if !answer.suits(&self.parts.headers) => {
                    let names = answer.variant.as_ref().map_or(&[][..], |variant| &variant.names);
                    collapse_key = collapse_key_of(&self.key, names, &self.parts.headers);
                }
                // Who comes behind the head takes it as he would take what is stored.
                Outcome::Answered(answer)
                    if !is_late
                        || reuse::decide(&answer.terms, &directives, self.now(), &self.settings.policy)
                            == Reuse::Fresh =>
                {
                    match self.follow(&answer, ask.why) {
                        Some(response) => return Ok(response),
                        None => break,
                    }
                }
                Outcome::Over => {
                    if let Some(response) = self.stored_by_now().await {
                        return Ok(response);
                    }
                }
                Outcome::Answered(_) | Outcome::Alone | Outcome::Late => break,
            }
        }
        self.ask(ask).await
    }

    /// Asks for all who wait in this process; and, where another one asks already, waits for that.
    async fn lead(&mut self, ask: Ask, collapse_key: Vec<u8>, mut leader: Leader) -> Answered<S, B> {
        if self.settings.is_across_processes
            && let Some(claim) = claim::claim(&self.pages, &collapse_key, self.settings.patience).await
        {
            leader.hold(claim);
        }
        // Another request may have stored the answer between the look and the leader, or the claim.
        if let Some(response) = self.stored_by_now().await {
            return Ok(response);
        }
        self.ask(Ask { leader: Some(leader), ..ask }).await
    }

    /// What another request has stored meanwhile.
    async fn stored_by_now(&mut self) -> Option<Response<CachedBody<S::Content>>> {
        if !self.pages.has_fresh(&self.key, &self.parts.headers, self.now()).await {
            return None;
        }
        match self.plan().await {
            Plan::Answer(response) => Some(*response),
            Plan::Hit(stored) => Some(self.hit(*stored, CacheStatus::hit())),
            Plan::Ask(_) => None,
        }
    }

    /// Validates behind the client's back, unless somebody does already.
    async fn refresh(&mut self, collapse_key: Vec<u8>) {
        let Joined::Lead(leader) = self.pages.join(&collapse_key) else { return };
        let selection = self.pages.select(&self.key, &self.parts.headers, self.now()).await;
        let Selection::Stored(stored) = selection else { return };
        let mut visit = self.again();
        let ask = Ask { stored: Some(stored), leader: Some(leader), ..Ask::whole(&collapse_key, Forward::Stale) };
        tokio::spawn(async move {
            // What comes of it is in the volume. An error of the inner service is for nobody.
            if let Ok(response) = visit.ask(ask).await
                && response.body().is_shared()
            {
                let mut body = Box::pin(response.into_body());
                while let Some(Ok(_)) = std::future::poll_fn(|context| body.as_mut().poll_frame(context)).await {}
            }
        });
    }

    /// A stored response, whole, in part, or 304 (RFC 9111, section 4.3.2).
    pub(super) fn hit(&self, stored: Stored, status: CacheStatus) -> Response<CachedBody<S::Content>> {
        let now = self.now();
        let age_and_ttl = AgeAndTtl::of(&stored.terms, now);
        // Of what isn't fresh, the client may know more than this cache does.
        let role = if stored.terms.fresh_for(now).is_zero() { Role::Cache } else { Role::CacheOfOrigin };
        let (code, received, trailers) = (stored.found.head.status, stored.received(), stored.trailers());
        let mut fields = stored.found.head.fields.clone();
        age_and_ttl.write_age(&mut fields);
        self.finish(&mut fields, &status.ttl(age_and_ttl.ttl));
        reply::representation(role, &self.parts, code, fields, received, stored.found.value(), trailers)
    }

    /// The answer to a request that waited for another one's. `None` if the start of the body is gone.
    fn follow(&self, answer: &Answer, why: Forward) -> Option<Response<CachedBody<S::Content>>> {
        let now = self.now();
        let age_and_ttl = AgeAndTtl::of(&answer.terms, now);
        let reader = answer.content.reader()?;
        let mut fields = answer.fields.clone();
        age_and_ttl.write_age(&mut fields);
        let status = CacheStatus::forwarded(why).forward_status(answer.status).stored(true).collapsed(true);
        self.finish(&mut fields, &status.ttl(age_and_ttl.ttl));
        Some(reply::coming(&self.parts, answer.status, fields, now, CachedBody::shared(reader)))
    }

    /// Writes what the cache did.
    pub(super) fn finish(&self, fields: &mut HeaderMap, status: &CacheStatus) {
        if let Some(name) = &self.settings.name {
            status.append_to(fields, name);
        }
    }
}

fn collapse_key_of(key: &[u8], names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let variant = Variant::of(names, request);
    [key, b" ", &variant.selecting_key].concat()
}
