//! Requests that bypass the volume, and the stored responses that changes among them remove.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use eyewall::Purge as Kind;
use eyewall_fleet::Covers;
use eyewall_fleet_agent::words::{Purging, Subject};
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::groups;
use eyewall_http::message::{self, Exchange};
use eyewall_http::storing;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::recent_purges::Mark;
use eyewall_page_cache::visit::{Asked, Invalidated, Visit};
use http::header::{AUTHORIZATION, COOKIE, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};

use super::inbound::{Inbound, receive};
use super::{Proxy, failed, tags, way};
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::serve::body::Body;
use crate::serve::origin::{ClientSide, OriginRequest, RequestBody, ResponseBody, asked_protocol};

impl Proxy {
    /// Forwards a request that is never answered from the volume: with a body, with a method that asks for a change, or for another
    /// protocol.
    pub(super) async fn forward(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
        key: CacheKey,
        client: IpAddr,
    ) -> Response<Body> {
        let protocol = asked_protocol(request.headers()).cloned();
        let client_side = protocol.is_some().then(|| ClientSide::of(&mut request));
        let (parts, body) = request.into_parts();
        let visit = self.visit(parts, key, client, None);
        let (inbound, parts) = (&visit.upstream, &visit.parts);
        let mut asked = visit.fields();
        let why = match way::forwarding(&parts.method, &mut asked) {
            Ok(why) => why,
            Err(answer) => return *answer,
        };
        if parts.method == Method::TRACE {
            // The answer to a TRACE shows the request, so no secret goes with it (RFC 9110, section 9.3.8).
            for name in [AUTHORIZATION, COOKIE] {
                asked.remove(name);
            }
        }
        let client_info = inbound.client_info(parts);
        let (method, target, fields) = (parts.method.clone(), &parts.uri, asked);
        let origin_request = OriginRequest {
            method,
            target,
            fields,
            body,
            client_info: Some(&client_info),
            stripped: inbound.stripped(),
        };
        let (requested, mark) = (SystemTime::now(), self.pages.mark(&visit.address));
        let answered = match (protocol, client_side) {
            (Some(protocol), Some(client)) => self.origins.upgrade(origin_request, protocol, client).await,
            _ => self.origins.send(origin_request).await,
        };
        match answered {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => response.map(|_| Body::empty()),
            Ok(mut response) => {
                let unpurged = self.invalidate(&visit, mark, response.status(), response.headers()).await;
                receive(&mut response);
                let may_be_stored = inbound.decision().bypass.is_none() && self.is_answer_to_get(&visit, &response);
                let response = match unpurged.filter(|_| may_be_stored) {
                    Some(mark) => {
                        let asked = Asked { exchange: Exchange { requested, received: SystemTime::now() }, mark };
                        visit.receive_unasked(why, response, asked).await
                    }
                    None => visit.passed(response, CacheStatus::forwarded(why)),
                };
                response.map(Body::from)
            }
            Err(error) => failed(&error, CacheStatus::forwarded(why)),
        }
    }

    /// Whether the answer to a POST is also right for a GET of its address, and can be stored at once.
    fn is_answer_to_get(&self, visit: &Visit<Inbound>, response: &Response<ResponseBody>) -> bool {
        let (parts, key) = (&visit.parts, &visit.upstream.key);
        let is_same_target = parts.uri.path_and_query().is_some_and(|asked| *asked == *key.forwarded_target());
        let told = message::Response { status: response.status(), fields: response.headers() };
        let target = key.address().parse();
        parts.method == Method::POST
            && is_same_target
            && !self.pages.store.has_failed()
            && !parts.headers.contains_key(RANGE)
            && target.is_ok_and(|target| storing::is_answer_to_get(&target, told, SystemTime::now(), &self.policy))
    }

    /// Purges the responses that a request invalidates. Returns the mark of these purges, or none if another purge may have come
    /// since `mark`, before the response could be stored.
    async fn invalidate(
        self: &Arc<Self>,
        visit: &Arc<Visit<Inbound>>,
        mark: Mark,
        status: StatusCode,
        answer: &HeaderMap,
    ) -> Option<Mark> {
        let method = &visit.parts.method;
        let invalidated = match visit.address.parse() {
            Ok(target) => Invalidated::by(method, &target, status, answer),
            // An address in its normal form needn't be one that can be parsed again. Groups don't depend on it.
            Err(_) => Invalidated { uris: Vec::new(), groups: groups::invalidated(method, answer) },
        };
        if invalidated.is_empty() {
            return (!self.pages.may_be_purged_since(mark)).then_some(mark);
        }
        // Purges of groups may wait for other writers, so another purge may come between.
        let has_groups = !invalidated.groups.is_empty();
        let (proxy, visit) = (Arc::clone(self), Arc::clone(visit));
        let purge = move |pages: &Pages| {
            let is_first = !pages.may_be_purged_since(mark);
            proxy.purge(&visit.upstream.key, &invalidated);
            (is_first && !has_groups).then(|| pages.mark(&visit.address))
        };
        self.pages.write(purge).await.flatten()
    }

    fn purge(&self, key: &CacheKey, invalidated: &Invalidated) {
        let group = |name: &str| Some(tags::group(key.host_prefix(), name));
        let address = |uri: &Uri| {
            let key = self.key_of(uri.clone())?;
            Some((key.address().to_owned(), tags::address(&self.site, &key)))
        };
        self.tell_fleet(invalidated, group, address);
        invalidated.purge(&self.pages, group, &tags::many(&self.site), address);
    }

    /// Writes what a request invalidates to the log of the fleet if this node takes responses of others: they may still have the old ones.
    fn tell_fleet(
        &self,
        invalidated: &Invalidated,
        group: impl Fn(&str) -> Option<String>,
        address: impl Fn(&Uri) -> Option<(String, Option<String>)>,
    ) {
        let takes_foreign = self.peers.is_some() || self.second_level.is_some();
        let Some(fleet) = self.fleet.as_ref().filter(|_| takes_foreign) else { return };
        let mut tags: Vec<String> = invalidated.groups.iter().filter_map(|name| group(name)).collect();
        if !tags.is_empty() {
            tags.push(tags::many(&self.site));
        }
        let keys: Vec<_> = invalidated.uris.iter().filter_map(|uri| Some((uri, address(uri)?))).collect();
        if tags.is_empty() && keys.is_empty() {
            return;
        }
        let of_uris = keys.iter().map(|(uri, _)| Subject::Url(uri.to_string()));
        let subjects = of_uris.chain(tags.iter().cloned().map(Subject::EntryTag)).collect();
        let of_keys = keys.iter().flat_map(|(_, (address, tag))| {
            [Some(Covers::Address(address)), tag.as_deref().map(Covers::Tag)].into_iter().flatten()
        });
        let covers = of_keys.chain(tags.iter().map(|tag| Covers::Tag(tag)));
        fleet.write_later(Purging::new(subjects, Kind::Hard).encode(), covers);
    }

    /// The key of an address of this site.
    fn key_of(&self, uri: Uri) -> Option<CacheKey> {
        let host = RequestHost::parse(uri.authority()?.as_str()).ok()?;
        let scheme = if uri.scheme() == Some(&http::uri::Scheme::HTTPS) { Scheme::Https } else { Scheme::Http };
        CacheKey::of_address(&self.site.key, &host, scheme, uri).ok()
    }
}
