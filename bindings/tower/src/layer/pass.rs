//! Requests that go past the volume: what can't be answered from it, and what changes what is stored.

use std::sync::Arc;

use eyewall::Purge;
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::groups;
use eyewall_http::invalidation;
use eyewall_http::message::Exchange;
use eyewall_http::update::{self, HeadEffect};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response, StatusCode, Uri};

use super::answer::Pages;
use super::ask::{self, Asked};
use super::body::{CachedBody, RequestBody};
use super::fill::Content;
use super::inner::Inner;
use super::settings::Settings;
use super::tags;
use super::visit::{Answered, Visit};
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::PurgeTarget;

impl<S: Inner<B>, B: Content> Visit<S, B> {
    /// Past the volume, with the client's own conditions. The answer to a HEAD tells whether `stored` is still right.
    pub(super) async fn pass(&mut self, status: CacheStatus, stored: Option<Box<Stored>>) -> Answered<S, B> {
        let (requested, mark) = (self.now(), self.pages.mark(self.address.as_bytes()));
        let request = self.request(self.parts.method.clone(), self.parts.headers.clone());
        let mut response = self.inner.clone().ask(request).await?;
        if let Some(stored) = stored {
            let asked = Asked { exchange: Exchange { requested, received: self.now() }, mark };
            ask::date(response.headers_mut(), asked.exchange);
            self.freshen_with_head(stored, &response, asked);
        }
        Ok(self.passed(response, status))
    }

    /// What the answer to a HEAD says of what is stored (RFC 9111, section 4.3.5).
    fn freshen_with_head(&self, mut stored: Box<Stored>, answer: &Response<S::Content>, asked: Asked) {
        let length = Some(stored.found.bytes().len() as u64);
        match update::effect_of_head(&stored.found.head.fields, length, answer.status(), answer.headers()) {
            HeadEffect::None => {}
            HeadEffect::Updated(fields) => self.renew(&mut stored, fields, asked),
            HeadEffect::Outdated => self.pages.store.remove_found(&stored.key, &stored.found),
        }
    }

    /// A request that is not answered from the volume, whatever is there: with a body, of a method that asks for a change, or
    /// for another protocol.
    pub(super) async fn forward(&mut self, body: RequestBody<B>, status: CacheStatus) -> Answered<S, B> {
        let request = Request::from_parts(self.parts.clone(), body);
        let response = self.inner.clone().ask(request).await?;
        // Each call of gRPC is a POST, whatever it asks for, and nobody gets what it names.
        if !is_grpc(&self.parts.headers) {
            self.invalidate(response.status(), response.headers()).await;
        }
        Ok(self.passed(response, status))
    }

    pub(super) fn passed(
        &self,
        mut response: Response<S::Content>,
        status: CacheStatus,
    ) -> Response<CachedBody<S::Content>> {
        let forward_status = response.status();
        if !is_grpc(&self.parts.headers) {
            self.finish(response.headers_mut(), &status.forward_status(forward_status));
        }
        response.map(CachedBody::passed)
    }

    /// Purges what a change has made wrong (RFC 9111, section 4.4; RFC 9875, section 3).
    async fn invalidate(&mut self, status: StatusCode, answer: &HeaderMap) {
        let Some(target) = &self.target else { return };
        let uris = invalidation::invalidated(&self.parts.method, target, status, answer);
        let groups = groups::invalidated(&self.parts.method, answer);
        if uris.is_empty() && groups.is_empty() {
            return;
        }
        let (settings, pages) = (Arc::clone(&self.settings), Arc::clone(&self.pages));
        let target = target.clone();
        let invalidating = move || invalidate(&settings, &pages, &target, &uris, &groups);
        if self.pages.store.allows_inline_writes() {
            self.pages.store.write_inline(invalidating);
        } else {
            // Its thread has logged a panic already.
            let _ = tokio::task::spawn_blocking(invalidating).await;
        }
    }
}

fn invalidate(settings: &Settings, pages: &Pages, target: &Uri, uris: &[Uri], groups: &[String]) {
    let tags: Vec<String> = groups.iter().filter_map(|name| tags::group(target, name)).collect();
    let many = (!tags.is_empty()).then(|| tags::many(settings));
    for tag in tags.iter().chain(&many) {
        pages.store.logged(pages.store.purge(PurgeTarget::Tag(tag), Purge::Hard));
    }
    for uri in uris {
        let address = settings.address(uri);
        let tag = settings.key.address_tag(&address);
        pages.store.logged(pages.purge_address(&address, tag.as_deref(), Purge::Hard));
    }
}

/// Whether a request is a call of gRPC.
pub(super) fn is_grpc(fields: &HeaderMap) -> bool {
    fields.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
