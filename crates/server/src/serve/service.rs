//! One request in, one response out.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use eyewall_page_cache::store::Store;
use eyewall_tls::acme::HTTP_PATH;
use http::header::{ALLOW, CONTENT_TYPE, LOCATION, STRICT_TRANSPORT_SECURITY};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::admission::Admission;
use super::arrival::Arrival;
use super::body::Body;
use super::files::Files;
use super::origin::Origins;
use super::proxy::Proxy;
use super::proxy::fast_path::FastHit;
use super::routing::{self, Routed, Sources};
use super::shared::{Shared, SharedSite};
use super::simple_request::SimpleRequest;
use super::tls::{Tls, policy};
use super::unix_client::is_unix;
use super::{error_pages, outcome, purge, reply};
use crate::config::names::Network;
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::sites::Site;

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
    /// Whether rules redirect requests, or change fields on their way.
    is_rewritten: bool,
    /// The field for browsers that use HTTPS.
    hsts: Option<HeaderValue>,
}

impl Service {
    /// Call it on the worker's thread, which has its own connections to origins. The service before this one, if there is one,
    /// gives it its connections to the origins that are still the same.
    pub(crate) fn new(shared: &Arc<Shared>, before: Option<&Self>) -> Self {
        let before = before.map_or(&[][..], |before| &before.sites);
        let sites = shared.sites.iter().map(|site| Handlers::new(site, shared, before)).collect();
        let is_limited = shared.admission.is_some() || shared.sites.iter().any(|site| site.admission.is_some());
        Self { shared: Arc::clone(shared), sites, is_limited }
    }

    /// Whether a client with this address may connect.
    pub(crate) fn may_connect(&self, client: IpAddr) -> bool {
        self.shared.admission.as_ref().is_none_or(|admission| admission.may_connect(client))
    }

    /// Whether the real client of a request may have the hit by the fast path for this route. If it may not, [`Service::answer`] refuses it.
    pub(crate) fn admits(&self, real_client: IpAddr, route: Option<&Route>) -> bool {
        if !self.is_limited {
            return true;
        }
        let of_site = route.and_then(|route| self.shared.sites.get(route.site)?.admission.as_ref());
        match (self.shared.admission.as_ref(), of_site) {
            (None, None) => true,
            (Some(one), None) | (None, Some(one)) => one.admit(real_client).is_ok(),
            // The full path takes tokens of its own for what is refused here.
            (Some(first), Some(second)) => {
                second.check(real_client).is_ok()
                    && first.admit(real_client).is_ok()
                    && second.admit(real_client).is_ok()
            }
        }
    }

    /// The entry that answers a simple request at once; writes the head of the response to `head`. `None`: call
    /// [`Service::answer`], which may find the same entry. `route` is the route of the connection's last request.
    pub(crate) fn fast_hit(
        &self,
        request: &SimpleRequest<'_>,
        arrival: &Arrival,
        route: &mut Option<Route>,
        head: &mut Vec<u8>,
    ) -> Option<FastHit<'_>> {
        if route.as_ref().is_none_or(|route| *route.written != *request.host) {
            let is_trusted = request.is_from_trusted_proxy;
            let directed = |route: &Route| routing::is_directed(&self.shared, arrival, route.site, is_trusted);
            *route = Route::of(request.host, &self.shared).filter(directed);
        }
        let route = route.as_ref()?;
        if routing::is_sent_to_https(&self.shared.sites.get(route.site)?.site, request.scheme) {
            return None;
        }
        match self.sites.get(route.site)? {
            Handlers { files: None, proxy: Some(proxy), .. } => proxy.fast_hit(request, &route.host, head),
            Handlers { files: Some(files), is_rewritten: false, hsts, .. } => {
                files.fast_hit(request, hsts.as_ref(), head)
            }
            Handlers { .. } => None,
        }
    }

    /// The number of the site that has this host, as a client wrote it.
    pub(crate) fn site_of(&self, host: Option<&[u8]>) -> Option<usize> {
        let host = RequestHost::parse(str::from_utf8(host?).ok()?).ok()?;
        self.shared.by_host.number_of(host.name())
    }

    /// The name of a site.
    pub(crate) fn label(&self, site: Option<usize>) -> Option<String> {
        self.shared.sites.get(site?).map(|site| site.site.label())
    }

    /// Reads bytes of the volume that the kernel couldn't send, so that the engine notices their loss.
    pub(crate) fn notice_loss(&self, value: &[u8]) {
        self.shared.pages.store.notice_loss(value);
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.shared.pages.store
    }

    /// Whether it is the service by this state.
    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    /// The origins of the site that has this authority, behind the volume.
    pub(crate) fn proxy(&self, authority: &str) -> Option<&Arc<Proxy>> {
        let host = RequestHost::parse(authority).ok()?;
        self.sites.get(self.shared.by_host.number_of(host.name())?)?.proxy.as_ref()
    }

    /// The certificates, if a site has any.
    pub(crate) fn tls(&self) -> Option<&Tls> {
        self.shared.tls.as_deref()
    }

    /// Whether this address is that of a trusted proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        routing::trusts(&self.shared, address)
    }

    /// Applies what a trusted proxy says of its client, and returns the address of that one.
    pub(crate) fn receive<B>(&self, arrival: &Arrival, request: &mut Request<B>) -> IpAddr {
        routing::receive(&self.shared, arrival, request)
    }

    /// Whether a PROXY header from this address counts.
    pub(crate) fn trusts_proxy_header(&self, address: IpAddr) -> bool {
        is_unix(address) || Network::any_has(&self.shared.config.server.proxy_protocol_from, address)
    }

    /// The networks of trusted proxies.
    pub(crate) fn trusted_proxies(&self) -> &[Network] {
        &self.shared.config.server.trusted_proxies
    }

    /// Answers a request of this connection, by the way of `routing.rs`. Its extensions have the fields of a trusted proxy about its client. `site` gets
    /// the number of its site, once that is known.
    pub(crate) async fn answer(
        &self,
        request: Request<Incoming>,
        arrival: &Arrival,
        site: &mut Option<usize>,
    ) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        if parts.uri.path().starts_with(HTTP_PATH)
            && let Some(answer) = routing::challenge(&self.shared, &parts, arrival).await
        {
            return answer;
        }
        let routed = match routing::route(&self.shared, &mut parts, arrival, Admission::admit) {
            Ok(routed) => routed,
            Err(ended) => {
                *site = ended.site;
                return match ended.end.response() {
                    Some(response) => response,
                    None => purge::method::answer(&self.shared, &parts, arrival.client).await,
                };
            }
        };
        let Routed { number, shared_site, key } = routed;
        *site = Some(number);
        let (site, handlers, scheme) = (&shared_site.site, &self.sites[number], key.scheme());
        let request = Request::from_parts(parts, body);
        if handlers.is_rewritten || !site.error_pages.is_empty() {
            return Box::pin(handlers.answer_rewritten(site, request, key, arrival)).await;
        }
        let mut response = handlers.answer(request, key, arrival).await;
        handlers.tell_hsts(scheme, &mut response);
        response
    }
}

/// The site of the last request's host: most connections have requests for one host only.
pub(crate) struct Route {
    /// As the client wrote it.
    written: Box<[u8]>,
    host: RequestHost,
    /// The number of its site.
    pub(crate) site: usize,
}

impl Route {
    fn of(written: &[u8], shared: &Shared) -> Option<Self> {
        let host = RequestHost::parse(str::from_utf8(written).ok()?).ok()?;
        let (site, _) = routing::find(shared, &host)?;
        Some(Self { site, host, written: written.into() })
    }
}

impl Handlers {
    fn new(shared_site: &SharedSite, shared: &Shared, before: &[Self]) -> Self {
        let SharedSite { site, files, origins, fetches_pages, .. } = shared_site;
        let proxy = origins.as_ref().map(|origins| {
            let mut known = before.iter().filter_map(|before| before.proxy.as_ref()).map(|proxy| proxy.origins());
            let same = known.find(|known| Arc::ptr_eq(known.site(), origins));
            let origins = same.map_or_else(|| Arc::new(Origins::new(Arc::clone(origins))), Arc::clone);
            origins.start_checking();
            Arc::new(Proxy::new(site, origins, shared))
        });
        let has_pages = !site.error_pages.is_empty();
        if let Some(proxy) = proxy.as_ref().filter(|_| has_pages && !fetches_pages.swap(true, Ordering::Relaxed)) {
            tokio::spawn(error_pages::keep_fetching(Arc::downgrade(proxy)));
        }
        let hsts = policy::hsts(&site.settings);
        Self { files: files.clone(), proxy, is_rewritten: site.rules.rewrite(), hsts }
    }

    /// Adds `Strict-Transport-Security`, if the site has it and the client uses HTTPS.
    fn tell_hsts(&self, scheme: Scheme, response: &mut Response<Body>) {
        if let Some(hsts) = self.hsts.as_ref().filter(|_| scheme == Scheme::Https) {
            response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, hsts.clone());
        }
    }

    /// Answers for a site with error pages, or with rules that redirect or change fields on their way.
    async fn answer_rewritten(
        &self,
        site: &Site,
        request: Request<Incoming>,
        key: CacheKey,
        arrival: &Arrival,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let decision = site.rules.of_request(&key, &parts);
        let (takes_pages, scheme) = (error_pages::takes_pages(&parts.headers), key.scheme());
        let mut response = match decision.redirect(&key) {
            Some((status, location)) => redirect(status, &location),
            None => self.answer(Request::from_parts(parts, body), key, arrival).await,
        };
        if takes_pages
            && let Some(path) = error_pages::page_for(&site.error_pages, &response)
            && let Some(page) = error_pages::find(path, self.files.as_deref(), self.proxy.as_ref()).await
        {
            response = error_pages::with_page(response, page);
        }
        self.tell_hsts(scheme, &mut response);
        outcome::note(&mut response);
        decision.rewrite_response(&mut response);
        response
    }

    async fn answer(&self, request: Request<Incoming>, key: CacheKey, arrival: &Arrival) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let sends_files = arrival.files.is_some() && parts.version < Version::HTTP_2;
        match routing::sources(self.files.is_some(), self.proxy.is_some(), &parts.method) {
            Sources::Files => match &self.files {
                Some(files) => return files.answer(&parts, sends_files).await,
                None => return method_not_allowed(),
            },
            Sources::FilesThenOrigins => {
                if let Some(files) = &self.files
                    && let Some(found) = files.find_answer(&parts, sends_files).await
                {
                    return found;
                }
            }
            Sources::Origins => {}
            Sources::Neither => return method_not_allowed(),
        }
        match &self.proxy {
            Some(proxy) => proxy.answer(Request::from_parts(parts, body), key, arrival.client).await,
            None => method_not_allowed(),
        }
    }
}

/// The response of a rule with `redirect`. Only its status says whether it may be stored.
fn redirect(status: StatusCode, location: &str) -> Response<Body> {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(reply::TEXT));
    // It is ASCII without control characters.
    fields.extend(HeaderValue::from_str(location).ok().map(|location| (LOCATION, location)));
    reply::response(status, fields, Body::whole(reply::error_text(status, "the address is another one")))
}

fn method_not_allowed() -> Response<Body> {
    let mut response = reply::error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
