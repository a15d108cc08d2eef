//! Requests that go past the volume: what can't be answered from it, and what changes what is stored.

use std::net::IpAddr;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::connection::{self, Way};
use eyewall_http::field::groups;
use eyewall_http::invalidation;
use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;

use super::pages::{Stored, group_tag};
use super::{Proxy, failed, finish, prepare};
use crate::serve::body::Body;
use crate::serve::origin::{Outgoing, Peer, RequestBody, asked_protocol};
use crate::serve::{fields, reply};

impl Proxy {
    /// Past the volume, with the client's own conditions. The answer to a HEAD tells whether `stored` is still right.
    pub(super) async fn pass(
        &self,
        request: &Parts,
        status: CacheStatus,
        stored: Option<Box<Stored>>,
    ) -> Response<Body> {
        let asked = fields::of_forwarded_request(&request.headers, request.version);
        let requested = SystemTime::now();
        match self.origins.fetch(request.method.clone(), &request.uri, asked).await {
            Ok(mut response) => {
                prepare(response.headers_mut());
                if let Some(stored) = stored {
                    self.heed(request, stored, &response, requested);
                }
                self.passed(&request.method, response, status)
            }
            Err(fault) => failed(&fault, status),
        }
    }

    /// A request that is not answered from the volume, whatever is there: with a body, of a method that asks for a change, or
    /// for another protocol.
    pub(super) async fn forward(&self, mut request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        if request.method() == Method::CONNECT {
            return reply::error(StatusCode::METHOD_NOT_ALLOWED, "this server is no tunnel");
        }
        let protocol = asked_protocol(request.headers()).cloned();
        let on_upgrade = protocol.is_some().then(|| hyper::upgrade::on(&mut request));
        let (parts, body) = request.into_parts();
        let mut asked = fields::of_forwarded_request(&parts.headers, parts.version);
        if connection::step(&parts.method, &mut asked) == Way::EndsHere {
            return ended_here(&parts.method);
        }
        let peer = Peer { address: client, is_secure: false, host: host(&parts) };
        let body = RequestBody::streamed(body, &parts.headers);
        let outgoing =
            Outgoing { method: parts.method.clone(), target: &parts.uri, fields: asked, body, peer: Some(&peer) };
        let answered = match (protocol, on_upgrade) {
            (Some(protocol), Some(on_upgrade)) => self.origins.upgrade(outgoing, protocol, on_upgrade).await,
            _ => self.origins.send(outgoing).await,
        };
        let why = if parts.method == Method::GET { Forward::Bypass } else { Forward::Method };
        match answered {
            Ok(response) if response.status() == StatusCode::SWITCHING_PROTOCOLS => response.map(|_| Body::empty()),
            Ok(mut response) => {
                prepare(response.headers_mut());
                self.invalidate(&parts, &peer, response.status(), response.headers());
                self.passed(&parts.method, response, CacheStatus::forwarded(why))
            }
            Err(fault) => failed(&fault, CacheStatus::forwarded(why)),
        }
    }

    pub(super) fn passed(&self, method: &Method, response: Response<Incoming>, status: CacheStatus) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        let timeout = self.origins.timeouts().piece;
        let body = if method == Method::HEAD { Body::empty() } else { Body::passed(incoming, timeout) };
        finish(&mut head.headers, head.version, &status.forward_status(head.status));
        reply::response(head.status, head.headers, body)
    }

    /// Purges what a change has made wrong (RFC 9111, section 4.4; RFC 9875, section 3).
    fn invalidate(&self, request: &Parts, peer: &Peer, status: StatusCode, answer: &HeaderMap) {
        for group in groups::invalidated(&request.method, answer) {
            self.pages.purge_group(&group_tag(&self.origins.key(), &group));
        }
        // The address as the client knows it: what the origin names in `Location` has its host.
        let host = peer.host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let path = request.uri.path_and_query().map_or("/", |target| target.as_str());
        let Ok(target) = Uri::builder().scheme("http").authority(host).path_and_query(path).build() else { return };
        for uri in invalidation::invalidated(&request.method, &target, status, answer) {
            self.pages.purge(&self.key(&uri));
        }
    }
}

/// The host that a client asks for.
fn host(request: &Parts) -> Option<http::HeaderValue> {
    let authority = request.uri.authority().and_then(|authority| authority.as_str().parse().ok());
    authority.or_else(|| request.headers.get(HOST).cloned())
}

/// TRACE or OPTIONS whose `Max-Forwards` is used up (RFC 9110, section 7.6.2).
fn ended_here(method: &Method) -> Response<Body> {
    if method == Method::OPTIONS {
        reply::response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty())
    } else {
        reply::error(StatusCode::METHOD_NOT_ALLOWED, "requests are not traced here")
    }
}
