//! One request in, one response out.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use eyewall_http::reuse;
use http::header::{ALLOW, AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::admission::{Admission, Refusal};
use super::body::Body;
use super::files::Files;
use super::origin::Origins;
use super::proxy::Proxy;
use super::proxy::fast_path::FastHit;
use super::shared::{Shared, SharedSite};
use super::simple_request::SimpleRequest;
use super::trusted_proxies::Forwarded;
use super::{fields, purge, reply};
use crate::config::names::Network;
use crate::key::{CacheKey, KeyError, RequestHost, Scheme};
use crate::sites::Sites;

/// The part of a worker that all its connections share.
pub(crate) struct Service {
    shared: Arc<Shared>,
    /// In the order of the configuration.
    sites: Vec<Handlers>,
    /// Whether the server or any site limits the requests of clients.
    is_limited: bool,
}

/// The sources of a site: files first, then origins.
struct Handlers {
    files: Option<Arc<Files>>,
    proxy: Option<Arc<Proxy>>,
}

impl Service {
    /// Call it on the worker's thread, which has its own connections to origins.
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        let sites = shared.sites.iter().map(|site| Handlers::new(site, shared)).collect();
        let is_limited = shared.admission.is_some() || shared.sites.iter().any(|site| site.admission.is_some());
        Self { shared: Arc::clone(shared), sites, is_limited }
    }

    /// Whether a client with this address may connect. A trusted proxy may, because its requests are those of its clients.
    pub(crate) fn may_connect(&self, client: IpAddr) -> bool {
        let admission = self.shared.admission.as_ref();
        admission.is_none_or(|admission| admission.may_connect(client)) || self.trusts(client)
    }

    /// Whether the real client of a request may have the hit by the fast path for this route. If it may not, [`Service::answer`] refuses it.
    pub(crate) fn admits(&self, real_client: IpAddr, route: Option<&Route>) -> bool {
        !self.is_limited || self.admit(real_client, route.map(|route| route.site)).is_ok()
    }

    /// Applies the limits of the server, or of the site of this number after them.
    fn admit(&self, real_client: IpAddr, site: Option<usize>) -> Result<(), Refusal> {
        let of_site = site.and_then(|site| self.shared.sites.get(site)?.admission.as_ref());
        let admit = |admission: Option<&Admission>| admission.map_or(Ok(()), |admission| admission.admit(real_client));
        admit(self.shared.admission.as_ref()).and_then(|()| admit(of_site))
    }

    /// The entry that answers a simple request at once; writes the head of the response to `head`. `None`: call
    /// [`Service::answer`], which may find the same entry. `route` is the route of the connection's last request.
    pub(crate) fn fast_hit(
        &self,
        request: &SimpleRequest<'_>,
        route: &mut Option<Route>,
        head: &mut Vec<u8>,
    ) -> Option<FastHit<'_>> {
        if route.as_ref().is_none_or(|route| *route.written != *request.host) {
            *route = Route::of(request.host, &self.shared.by_host);
        }
        let route = route.as_ref()?;
        match self.sites.get(route.site)? {
            Handlers { files: None, proxy: Some(proxy) } => proxy.fast_hit(request, &route.host, head),
            Handlers { .. } => None,
        }
    }

    /// Reads bytes of the volume that the kernel couldn't send, so that the engine notices their loss.
    pub(crate) fn notice_loss(&self, value: &[u8]) {
        self.shared.pages.store.notice_loss(value);
    }

    /// Whether this address is that of a trusted proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        Network::any_has(self.trusted_proxies(), address)
    }

    /// The networks of trusted proxies.
    pub(crate) fn trusted_proxies(&self) -> &[Network] {
        &self.shared.config.server.trusted_proxies
    }

    /// Answers a request of the client with this address. Its extensions have the fields of a trusted proxy about its client.
    pub(crate) async fn answer(&self, request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        let forwarded = request.extensions().get::<Forwarded>();
        let real_client = forwarded.map_or(client, |forwarded| forwarded.real_client.address);
        if self.is_limited
            && let Err(refusal) = self.admit(real_client, None)
        {
            return refusal.response();
        }
        if request.method() == Method::CONNECT {
            return reply::error(StatusCode::METHOD_NOT_ALLOWED, "this server does not support CONNECT");
        }
        if request.method() == Method::OPTIONS && request.uri().path() == "*" {
            return reply::response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty());
        }
        let (mut parts, body) = request.into_parts();
        if purge::method::is_purge(&parts.method) {
            return purge::method::answer(&self.shared, &parts, client).await;
        }
        // The token is for this server: a request must not reveal it to the origin by mistake.
        if self.shared.purge_token.as_ref().is_some_and(|token| token.is_shown_by(&parts.headers)) {
            parts.headers.remove(AUTHORIZATION);
        }
        let host = match RequestHost::of(&parts) {
            Ok(host) => host,
            Err(error) => return refused(error),
        };
        let Some((shared_site, handlers)) = self
            .shared
            .by_host
            .number_of(host.name())
            .and_then(|number| Some((self.shared.sites.get(number)?, self.sites.get(number)?)))
        else {
            return reply::error(StatusCode::MISDIRECTED_REQUEST, "no site of this server has this host");
        };
        if let Some(Err(refusal)) = shared_site.admission.as_ref().map(|admission| admission.admit(real_client)) {
            return refusal.response();
        }
        let site = &shared_site.site;
        fields::receive(&mut parts.headers, &site.key, parts.extensions.get::<Forwarded>().is_some());
        let scheme = parts.extensions.get::<Forwarded>().map_or(Scheme::Http, |forwarded| forwarded.scheme);
        let key = match CacheKey::of(&site.key, &host, scheme, &parts) {
            Ok(key) => key,
            Err(error) => return refused(error),
        };
        handlers.answer(Request::from_parts(parts, body), key, client).await
    }
}

/// The site of the last request's host: most connections have requests for one host only.
pub(crate) struct Route {
    /// As the client wrote it.
    written: Box<[u8]>,
    host: RequestHost,
    /// The number of its site.
    site: usize,
}

impl Route {
    fn of(written: &[u8], sites: &Sites) -> Option<Self> {
        let host = RequestHost::parse(str::from_utf8(written).ok()?).ok()?;
        Some(Self { site: sites.number_of(host.name())?, host, written: written.into() })
    }
}

impl Handlers {
    fn new(shared_site: &SharedSite, shared: &Shared) -> Self {
        let SharedSite { site, files, origins, is_checked, .. } = shared_site;
        if let Some(origins) = origins.as_ref().filter(|_| !is_checked.swap(true, Ordering::Relaxed)) {
            let origins = Origins::new(Arc::clone(origins));
            tokio::spawn(async move { origins.keep_checking().await });
        }
        let proxy =
            origins.as_ref().map(|origins| Arc::new(Proxy::new(site, Origins::new(Arc::clone(origins)), shared)));
        Self { files: files.clone(), proxy }
    }

    async fn answer(&self, request: Request<Incoming>, key: CacheKey, client: IpAddr) -> Response<Body> {
        let files = self.files.as_ref().filter(|_| reuse::is_answerable(request.method()));
        let (parts, body) = request.into_parts();
        let Some(proxy) = &self.proxy else {
            return match files {
                Some(files) => files.answer(&parts).await,
                None => method_not_allowed(),
            };
        };
        let found = match files {
            Some(files) => files.find_answer(&parts).await,
            None => None,
        };
        match found {
            Some(found) => found,
            None => proxy.answer(Request::from_parts(parts, body), key, client).await,
        }
    }
}

fn refused(error: KeyError) -> Response<Body> {
    reply::error(error.status(), &error.to_string())
}

fn method_not_allowed() -> Response<Body> {
    let mut response = reply::error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
