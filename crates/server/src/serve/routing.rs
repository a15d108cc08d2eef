//! The way of a request until a source of its site has it, as its head, its connection and the configuration decide.
//!
//! ```text
//! receive ──> challenge? ──> route: limits, method, host, site, certificate, HTTPS, fields, key ──> sources: files, origins
//! ```
//! `service.rs` takes this way with the requests of clients. `explain/` takes it with requests that nobody has sent, so it can't foretell
//! another way. The fast path of hits has messages of its own, and asks [`find`] and [`is_sent_to_https`], too. `proxy/way.rs` has the rest of
//! the way, from an origin's point of view.

use std::net::IpAddr;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};

use super::admission::{Admission, Refusal};
use super::arrival::Arrival;
use super::body::Body;
use super::purge::method::is_purge;
use super::shared::{Shared, SharedSite};
use super::tls::policy;
use super::trusted_proxies::{self, Forwarded};
use super::unix_client::is_unix;
use super::{fields, reply};
use crate::config::names::Network;
use crate::key::{CacheKey, KeyError, RequestHost, Scheme};
use crate::sites::Site;

/// A request that a site answers.
pub(crate) struct Routed<'a> {
    /// The number of the site, in the order of the configuration.
    pub(crate) number: usize,
    pub(crate) shared_site: &'a SharedSite,
    pub(crate) key: CacheKey,
}

/// A request that gets to no source of a site.
pub(crate) struct Ended {
    /// The number of its site, if it has one.
    pub(crate) site: Option<usize>,
    pub(crate) end: End,
}

/// Why a request gets no further.
pub(crate) enum End {
    /// It purges, if it may: `purge/method.rs` decides that.
    Purge,
    /// The limits of the server or of the site refuse it.
    Limited(Refusal),
    /// Its method is CONNECT.
    Connect,
    /// It asks for the options of the server, and of no address.
    ServerOptions,
    /// It has no key.
    NoKey(KeyError),
    /// No site has its host.
    NoSite,
    /// The certificate of its connection is that of another site.
    OtherCertificate,
    /// Its site wants HTTPS.
    ToHttps(Response<Body>),
}

impl End {
    /// The response. `None` for a purge.
    pub(crate) fn response(self) -> Option<Response<Body>> {
        let error = |status| Some(reply::error(status, &self.words()));
        match self {
            Self::Purge => None,
            Self::Limited(refusal) => Some(refusal.response()),
            Self::Connect => error(StatusCode::METHOD_NOT_ALLOWED),
            Self::ServerOptions => Some(reply::response(StatusCode::NO_CONTENT, HeaderMap::new(), Body::empty())),
            Self::NoKey(refused) => error(refused.status()),
            Self::NoSite | Self::OtherCertificate => error(StatusCode::MISDIRECTED_REQUEST),
            Self::ToHttps(response) => Some(response),
        }
    }

    /// What the client is told.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Connect => "this server does not support CONNECT".to_owned(),
            Self::NoKey(error) => error.to_string(),
            Self::NoSite => "no site of this server has this host".to_owned(),
            Self::OtherCertificate => {
                "the certificate of this connection is not for this host; use a connection of its own".to_owned()
            }
            Self::Limited(refusal) => refusal.words().to_owned(),
            Self::Purge | Self::ServerOptions | Self::ToHttps(_) => String::new(),
        }
    }
}

/// Which sources of a site may answer a request, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sources {
    Files,
    FilesThenOrigins,
    Origins,
    /// The site has only files, which have only GET and HEAD.
    Neither,
}

/// Whether this address is that of a trusted proxy.
pub(crate) fn trusts(shared: &Shared, address: IpAddr) -> bool {
    is_unix(address) || Network::any_has(&shared.config.server.trusted_proxies, address)
}

/// Applies what a trusted proxy says of its client: the host becomes that of the request, the rest an extension of it. Returns the address of the
/// real client.
pub(crate) fn receive<B>(shared: &Shared, arrival: &Arrival, request: &mut Request<B>) -> IpAddr {
    if trusts(shared, arrival.client) {
        trusted_proxies::apply(&shared.config.server.trusted_proxies, arrival, request)
    } else {
        arrival.client
    }
}

/// The answer to a certificate authority that validates a host name (RFC 8555, section 8.3). It comes before the limits, because the addresses of
/// authorities are not known in advance.
pub(crate) async fn challenge(shared: &Shared, parts: &Parts, arrival: &Arrival) -> Option<Response<Body>> {
    let tls = shared.tls.as_ref().filter(|_| arrival.scheme == Scheme::Http)?;
    policy::challenge(tls, parts).await
}

/// The site of a request, and its key. Drops fields that the client may not send, and the token of the server: a request must not reveal it to
/// the origin by mistake. `admits` takes the request into account of the limits of the server and then of its site.
///
/// # Errors
/// The request gets no further.
pub(crate) fn route<'a>(
    shared: &'a Shared,
    parts: &mut Parts,
    arrival: &Arrival,
    admits: impl Fn(&Admission, IpAddr) -> Result<(), Refusal>,
) -> Result<Routed<'a>, Box<Ended>> {
    let ended = |site: Option<usize>, end: End| Box::new(Ended { site, end });
    let forwarded = parts.extensions.get::<Forwarded>();
    let (scheme, is_trusted) = (forwarded.map_or(arrival.scheme, |forwarded| forwarded.scheme), forwarded.is_some());
    let real_client = forwarded.map_or(arrival.client, |forwarded| forwarded.real_client.address);
    let within = |site: Option<usize>, admission: Option<&Admission>| {
        let admitted = admission.map_or(Ok(()), |admission| admits(admission, real_client));
        admitted.map_err(|refusal| ended(site, End::Limited(refusal)))
    };
    within(None, shared.admission.as_ref())?;
    if parts.method == Method::CONNECT {
        return Err(ended(None, End::Connect));
    }
    if parts.method == Method::OPTIONS && parts.uri.path() == "*" {
        return Err(ended(None, End::ServerOptions));
    }
    if is_purge(&parts.method) {
        return Err(ended(None, End::Purge));
    }
    if shared.purge_token.as_ref().is_some_and(|token| token.is_shown_by(&parts.headers)) {
        parts.headers.remove(AUTHORIZATION);
    }
    let host = RequestHost::of(parts).map_err(|error| ended(None, End::NoKey(error)))?;
    let (number, shared_site) = find(shared, &host).ok_or_else(|| ended(None, End::NoSite))?;
    let in_site = |end| ended(Some(number), end);
    within(Some(number), shared_site.admission.as_ref())?;
    if !is_directed(shared, arrival, number, is_trusted) {
        return Err(in_site(End::OtherCertificate));
    }
    let site = &shared_site.site;
    if is_sent_to_https(site, scheme) {
        return Err(in_site(End::ToHttps(policy::redirect(parts, &host, shared.https_port))));
    }
    fields::receive(&mut parts.headers, &site.key, is_trusted);
    let key = CacheKey::of(&site.key, &host, scheme, parts).map_err(|error| in_site(End::NoKey(error)))?;
    Ok(Routed { number, shared_site, key })
}

/// The site that has this host, with its number.
pub(crate) fn find<'a>(shared: &'a Shared, host: &RequestHost) -> Option<(usize, &'a SharedSite)> {
    let number = shared.by_host.number_of(host.name())?;
    Some((number, shared.sites.get(number)?))
}

/// Whether a connection may have requests for the site of this number. A trusted proxy speaks for clients of any site.
pub(crate) fn is_directed(shared: &Shared, arrival: &Arrival, site: usize, is_from_trusted_proxy: bool) -> bool {
    is_from_trusted_proxy || policy::is_directed(arrival, site, &shared.certificate_groups, &shared.by_host)
}

/// Whether a site sends requests with this scheme to HTTPS.
pub(crate) fn is_sent_to_https(site: &Site, scheme: Scheme) -> bool {
    scheme == Scheme::Http && site.settings.redirects_to_https()
}

/// The sources of a site for a request with this method.
pub(crate) fn sources(has_files: bool, has_origins: bool, method: &Method) -> Sources {
    match (has_files && eyewall_http::reuse::is_answerable(method), has_origins) {
        (true, true) => Sources::FilesThenOrigins,
        (true, false) => Sources::Files,
        (false, true) => Sources::Origins,
        (false, false) => Sources::Neither,
    }
}
