//! Requests that go past the volume: what can't be answered from it, and what changes what is stored.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use eyewall::Purge;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::connection::{self, Way};
use eyewall_http::field::groups;
use eyewall_http::message::{self, Exchange};
use eyewall_http::reuse::OnFailure;
use eyewall_http::{invalidation, storing};
use http::header::{AUTHORIZATION, COOKIE, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;

use super::fetch::Asked;
use super::inbound::Inbound;
use super::{Ask, Proxy, failed, finish, prepare, tags};
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::serve::body::Body;
use crate::serve::origin::{OriginRequest, RequestBody, asked_protocol};
use crate::serve::reply;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::PurgeTarget;

impl Proxy {
    /// Past the volume, with the client's own conditions. The answer to a HEAD tells whether `stored` is still right; if the
    /// origin gives none, the stored head is sent where that is allowed.
    pub(super) async fn pass(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        status: CacheStatus,
        stored: Option<(Box<Stored>, OnFailure)>,
    ) -> Response<Body> {
        let method = &inbound.parts.method;
        let (target, client_info) = (inbound.target(), inbound.client_info());
        let fields = inbound.forwarded_fields();
        let (requested, mark) = (SystemTime::now(), self.pages.mark(inbound.key.address()));
        match self
            .origins
            .send(OriginRequest { method: method.clone(), ..inbound.origin_request(&target, fields, &client_info) })
            .await
        {
            Ok(mut response) => {
                let applied = prepare(inbound.decision, &mut response);
                if let Some((stored, _)) = stored {
                    let exchange = Exchange { requested, received: SystemTime::now() };
                    self.freshen_with_head(inbound, stored, &response, Asked { applied, exchange, mark });
                }
                self.passed(method, response, status)
            }
            Err(error) => {
                let (stored, on_failure) = stored.unzip();
                match self.stale_without_origin(inbound, stored, on_failure.unwrap_or_default(), &error).await {
                    Some(response) => response,
                    None => failed(&error, status),
                }
            }
        }
    }

    /// A request that is not answered from the volume, whatever is there: with a body, of a method that asks for a change, or
    /// for another protocol.
    pub(super) async fn forward(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
        key: &CacheKey,
        client: IpAddr,
    ) -> Response<Body> {
        let protocol = asked_protocol(request.headers()).cloned();
        let on_upgrade = protocol.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let inbound = Inbound::new(&self.site, &mut parts, key, client);
        let parts = inbound.parts;
        let mut asked = inbound.forwarded_fields();
        if connection::step(&parts.method, &mut asked) == Way::EndsHere {
            return ended_here(&parts.method);
        }
        if parts.method == Method::TRACE {
            // Its answer shows the request: nothing that is secret goes with it (RFC 9110, section 9.3.8).
            for name in [AUTHORIZATION, COOKIE] {
                asked.remove(name);
            }
        }
        let client_info = inbound.client_info();
        let (method, target, fields) = (parts.method.clone(), &parts.uri, asked);
        let origin_request = OriginRequest {
            method,
            target,
            fields,
            body,
            client_info: Some(&client_info),
            stripped: inbound.stripped(),
        };
        let (requested, mark) = (SystemTime::now(), self.pages.mark(key.address()));
        let answered = match (protocol, on_upgrade) {
            (Some(protocol), Some(on_upgrade)) => self.origins.upgrade(origin_request, protocol, on_upgrade).await,
            _ => self.origins.send(origin_request).await,
        };
        let why = if parts.method == Method::GET { Forward::Bypass } else { Forward::Method };
        match answered {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => response.map(|_| Body::empty()),
            Ok(mut response) => {
                // Behind purges of groups, which may wait for others, it is unknown what came between.
                let is_first = !self.pages.may_be_purged_since(mark)
                    && groups::invalidated(&parts.method, response.headers()).is_empty();
                self.invalidate(inbound, response.status(), response.headers());
                let applied = prepare(inbound.decision, &mut response);
                let mark = self.pages.mark(key.address());
                if is_first && inbound.decision.bypass.is_none() && self.is_answer_to_get(inbound, &response) {
                    let asked = Asked { applied, exchange: Exchange { requested, received: SystemTime::now() }, mark };
                    return self.receive(inbound, Ask::whole(key.as_bytes(), why), response, asked).await;
                }
                self.passed(&parts.method, response, CacheStatus::forwarded(why))
            }
            Err(error) => failed(&error, CacheStatus::forwarded(why)),
        }
    }

    pub(super) fn passed(&self, method: &Method, response: Response<Incoming>, status: CacheStatus) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        let timeout = self.origins.timeouts().piece;
        let body = if method == Method::HEAD { Body::empty() } else { Body::passed(incoming, timeout) };
        finish(&mut head.headers, head.version, &status.forward_status(head.status));
        reply::response(head.status, head.headers, body)
    }

    /// Whether the answer to a POST is for those, too, who ask for its address by a GET, and can be stored at once.
    fn is_answer_to_get(&self, inbound: Inbound<'_>, response: &Response<Incoming>) -> bool {
        let is_same_target =
            inbound.parts.uri.path_and_query().is_some_and(|asked| *asked == *inbound.key.forwarded_target());
        let told = message::Response { status: response.status(), fields: response.headers() };
        let target = inbound.key.address().parse();
        inbound.parts.method == Method::POST
            && is_same_target
            && !self.pages.store.has_failed()
            && !inbound.fields().contains_key(RANGE)
            && target.is_ok_and(|target| storing::is_answer_to_get(&target, told, SystemTime::now(), &self.policy))
    }

    /// Purges what a change has made wrong (RFC 9111, section 4.4; RFC 9875, section 3).
    fn invalidate(&self, inbound: Inbound<'_>, status: StatusCode, answer: &HeaderMap) {
        let method = &inbound.parts.method;
        let groups = groups::invalidated(method, answer);
        if !groups.is_empty() {
            let prefix = inbound.key.host_prefix();
            let tags: Vec<String> = groups.iter().map(|name| tags::group(prefix, name)).collect();
            let many = tags::many(&self.site);
            let meant = tags.iter().chain([&many]).map(|tag| PurgeTarget::Tag(tag));
            self.pages.store.logged(self.pages.purge_many(meant, Purge::Hard));
        }
        let Ok(target) = inbound.key.address().parse() else { return };
        for uri in invalidation::invalidated(method, &target, status, answer) {
            if let Some(key) = self.key_of(uri) {
                let tag = tags::address(&self.site, &key);
                self.pages.store.logged(self.pages.purge_address(key.address(), tag.as_deref(), Purge::Hard));
            }
        }
    }

    /// The key of an address of this site.
    fn key_of(&self, uri: Uri) -> Option<CacheKey> {
        let host = RequestHost::parse(uri.authority()?.as_str()).ok()?;
        let scheme = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) { Scheme::Https } else { Scheme::Http };
        CacheKey::of_address(&self.site, &host, scheme, uri).ok()
    }
}

/// TRACE or OPTIONS whose `Max-Forwards` is used up (RFC 9110, section 7.6.2).
fn ended_here(method: &Method) -> Response<Body> {
    if method == Method::OPTIONS {
        reply::response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty())
    } else {
        reply::error(StatusCode::METHOD_NOT_ALLOWED, "requests are not traced here")
    }
}
