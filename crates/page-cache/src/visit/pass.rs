//! Requests that bypass the volume: those that it can't answer, and those that change stored responses.

use std::sync::Arc;

use eyewall::Purge;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::groups;
use eyewall_http::invalidation;
use eyewall_http::message::Exchange;
use eyewall_http::reuse::OnFailure;
use eyewall_http::update::{self, HeadEffect};
use http::{HeaderMap, Method, Response, StatusCode, Uri, response};
use http_body::Body as _;

use super::fetch::{Asked, date, without_false_length};
use super::{Answered, Ask, Unanswered, Visit};
use crate::cached_body::CachedBody;
use crate::pages::Pages;
use crate::reply::{Reply, StandsFor};
use crate::selection::Stored;
use crate::store::PurgeTarget;
use crate::upstream::Upstream;

impl<U: Upstream> Visit<U> {
    /// Asks the upstream with the client's own conditions, past the volume. The answer to a HEAD tells whether `stored` is still
    /// right. If there is no answer, the stored head is sent where that is allowed.
    ///
    /// # Errors
    /// [`Unanswered`].
    pub async fn pass(self: &Arc<Self>, status: CacheStatus, stored: Option<(Box<Stored>, OnFailure)>) -> Answered<U> {
        let (requested, mark) = (self.now(), self.pages.mark(&self.address));
        let error = match self.ask(self.parts.method.clone(), self.fields()).await {
            Ok(response) => {
                let (mut head, body) = response.into_parts();
                let asked = Asked { exchange: Exchange { requested, received: self.now() }, mark };
                if stored.is_some() {
                    date(&mut head.headers, asked.exchange);
                }
                let rules = self.rules(head.status, &mut head.headers, &mut head.extensions);
                if let Some((stored, _)) = stored {
                    if head.status == StatusCode::NOT_MODIFIED {
                        let (status, fields) = (stored.found.head.status, &stored.found.head.fields);
                        head.extensions.insert(StandsFor::of(status, fields));
                    }
                    self.freshen_with_head(stored, &head, asked).await;
                }
                if self.parts.method == Method::HEAD {
                    // The response to a GET says it, too.
                    self.codings(rules.codings, (head.status, &mut head.headers), None);
                }
                return Ok(self.passed_on((head, body), status));
            }
            Err(error) => error,
        };
        let (stored, on_failure) = stored.unzip();
        let failure = self.upstream.failure(&error);
        let stale = self.stale_instead(stored, on_failure.unwrap_or_default(), &failure).await;
        stale.ok_or(Unanswered { error, status })
    }

    /// Renews or removes the stored response by the answer to a HEAD (RFC 9111, section 4.3.5).
    async fn freshen_with_head(&self, stored: Box<Stored>, answer: &response::Parts, asked: Asked) {
        let length = Some(stored.length());
        match update::effect_of_head(&stored.found.head.fields, length, answer.status, &answer.headers) {
            HeadEffect::None => {}
            HeadEffect::Updated(fields) => drop(self.renew(stored, fields, asked, None).await),
            HeadEffect::Outdated => self.pages.remove(stored).await,
        }
    }

    /// A response of the upstream, for this client alone.
    pub fn passed(&self, response: Response<U::Body>, status: CacheStatus) -> Reply<U::Body> {
        let (mut head, body) = without_false_length(response).into_parts();
        self.rules(head.status, &mut head.headers, &mut head.extensions);
        self.passed_on((head, body), status)
    }

    pub(super) fn passed_on(
        &self,
        (mut head, body): (response::Parts, U::Body),
        status: CacheStatus,
    ) -> Reply<U::Body> {
        let has_body = self.parts.method != Method::HEAD || !body.is_end_stream();
        let timeout = self.settings.piece_timeout;
        self.set_tag_of_not_modified(head.status, &mut head.headers);
        let body = if has_body { CachedBody::passed(body, timeout) } else { CachedBody::empty() };
        self.finish(&mut head.headers, head.version, &status.forward_status(head.status));
        self.response_of(head, body)
    }

    /// Receives an answer that the cache did not ask for, but that is one to a GET for the same address. Stores it if that is
    /// allowed, and returns it for the client.
    pub async fn receive_unasked(
        self: &Arc<Self>,
        why: Forward,
        response: Response<U::Body>,
        asked: Asked,
    ) -> Reply<U::Body> {
        let (mut head, body) = without_false_length(response).into_parts();
        date(&mut head.headers, asked.exchange);
        let rules = self.rules(head.status, &mut head.headers, &mut head.extensions);
        self.receive(Ask::whole(&self.key, why), (head, body), rules, asked).await
    }
}

/// What a change invalidates (RFC 9111, section 4.4; RFC 9875, section 3).
#[derive(Debug)]
pub struct Invalidated {
    /// Addresses.
    pub uris: Vec<Uri>,
    /// Groups of responses.
    pub groups: Vec<String>,
}

impl Invalidated {
    /// What a request by this method for `target` invalidates, according to its answer.
    pub fn by(method: &Method, target: &Uri, status: StatusCode, answer: &HeaderMap) -> Self {
        let uris = invalidation::invalidated(method, target, status, answer);
        Self { uris, groups: groups::invalidated(method, answer) }
    }

    /// Whether it invalidates nothing.
    pub fn is_empty(&self) -> bool {
        self.uris.is_empty() && self.groups.is_empty()
    }

    /// Purges all of it. `group` makes the tag of a group, `many` the tag of responses with too many groups. `address` makes the
    /// key of an address, with the tag of all its responses. It can wait for other writers.
    pub fn purge(
        &self,
        pages: &Pages,
        group: impl Fn(&str) -> Option<String>,
        many: &str,
        address: impl Fn(&Uri) -> Option<(String, Option<String>)>,
    ) {
        let tags: Vec<String> = self.groups.iter().filter_map(|name| group(name)).collect();
        let many = (!tags.is_empty()).then_some(many);
        for tag in tags.iter().map(String::as_str).chain(many) {
            pages.store.logged(pages.store.purge(PurgeTarget::Tag(tag), Purge::Hard));
        }
        for (address, tag) in self.uris.iter().filter_map(address) {
            pages.store.logged(pages.purge_address(&address, tag.as_deref(), Purge::Hard));
        }
    }
}
