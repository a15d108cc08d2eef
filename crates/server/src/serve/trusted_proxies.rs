//! The fields of trusted proxies (`trusted_proxies`) about their clients: `X-Forwarded-For`, `-Proto` and `-Host`.
//!
//! The last value of each field counts. The proxy itself has set or added it; the values before it may be an invention of the
//! client. So the real client is the last address of the chain that is not a trusted proxy.
//!
//! [`fields::receive`](super::fields::receive) drops these fields of clients that aren't trusted.

use std::net::{IpAddr, SocketAddr};

use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use super::arrival::Arrival;
use super::simple_request::SimpleRequest;
use super::unix_client::is_unix;
use crate::config::names::Network;
use crate::key::Scheme;

pub(crate) const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(crate) const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(crate) const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A trusted proxy's report of its client: an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct Forwarded {
    /// The client at the start of the chain of proxies.
    pub(crate) real_client: RealClient,
    /// The scheme of its request.
    pub(crate) scheme: Scheme,
    /// The chain of clients before the proxy: values of `X-Forwarded-For`, the first client first.
    pub(crate) chain: Option<HeaderValue>,
}

/// The client at the start of the chain of proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RealClient {
    pub(crate) address: IpAddr,
    /// False if the proxies don't name it reliably; the address is then that of the last known proxy.
    pub(crate) is_known: bool,
}

/// Applies the fields of a trusted proxy, which has this connection: the request is now for the host that it names. Its other values
/// become an extension of the request. Returns the real client.
pub(crate) fn apply<B>(trusted: &[Network], arrival: &Arrival, request: &mut Request<B>) -> IpAddr {
    let proxy = arrival.client;
    let fields = request.headers();
    let chain: Vec<&[u8]> = fields.get_all(X_FORWARDED_FOR).iter().map(HeaderValue::as_bytes).collect();
    let real_client = real_client(trusted, proxy, chain.iter().rev().copied());
    let chain = HeaderValue::from_bytes(&chain.join(&b", "[..])).ok().filter(|chain| !chain.is_empty());
    let told = last_value(fields, &X_FORWARDED_PROTO).map(scheme_of);
    let of_target = || request.uri().scheme_str().map(|name| scheme_of(name.as_bytes()));
    let scheme = told.or_else(of_target).unwrap_or(arrival.scheme);
    let named = last_value(fields, &X_FORWARDED_HOST).and_then(|host| HeaderValue::from_bytes(host).ok());
    let authority = request.uri().authority().and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    // The parser of hosts refuses a request with two hosts, and one whose target is only a host.
    let is_clear = fields.get_all(HOST).iter().count() < 2 && request.uri().path_and_query().is_some();
    if request.method() != Method::CONNECT
        && is_clear
        && let Some(host) = named.or(authority)
    {
        // A host in the target overrides the field (RFC 9112, section 3.2.2).
        let target = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from(target);
        request.headers_mut().insert(HOST, host);
    }
    request.extensions_mut().insert(Forwarded { real_client, scheme, chain });
    real_client.address
}

/// The same for a simple request.
pub(crate) fn apply_to_simple(trusted: &[Network], proxy: IpAddr, request: &mut SimpleRequest<'_>) -> IpAddr {
    request.is_from_trusted_proxy = true;
    if let Some(host) = request.last_field(X_FORWARDED_HOST.as_str()).and_then(last_of) {
        request.host = host;
    }
    let told = request.last_field(X_FORWARDED_PROTO.as_str()).and_then(last_of);
    request.scheme = told.map_or(request.scheme, scheme_of);
    real_client(trusted, proxy, request.values(X_FORWARDED_FOR.as_str()).rev()).address
}

/// The trusted proxies that are believed about a request with these fields, the nearest first. `proxy` has the connection, and is one of them.
pub(crate) fn believed(trusted: &[Network], proxy: IpAddr, fields: &HeaderMap) -> Vec<IpAddr> {
    let mut believed = Vec::new();
    let values = fields.get_all(X_FORWARDED_FOR).iter().map(HeaderValue::as_bytes);
    ask(trusted, proxy, values.rev(), |proxy| believed.push(proxy));
    if believed.is_empty() {
        // It says the scheme and the host.
        believed.push(proxy);
    }
    believed
}

/// `values` are those of `X-Forwarded-For`, the last first.
fn real_client<'a>(trusted: &[Network], proxy: IpAddr, values: impl Iterator<Item = &'a [u8]>) -> RealClient {
    ask(trusted, proxy, values, |_| {})
}

/// The real client. `believes` learns of each proxy that is asked for the one before it.
fn ask<'a>(
    trusted: &[Network],
    proxy: IpAddr,
    values: impl Iterator<Item = &'a [u8]>,
    mut believes: impl FnMut(IpAddr),
) -> RealClient {
    let mut address = proxy;
    for name in values.flat_map(|value| value.rsplit(|byte| *byte == b',')) {
        believes(address);
        match address_of(name) {
            // A loopback address in the field is not an address of this machine.
            Some(named) if !named.is_loopback() || address.is_loopback() || is_unix(address) => address = named,
            // `unknown`, the path of a socket, nothing at all.
            _ => return RealClient { address, is_known: false },
        }
        if !Network::any_has(trusted, address) {
            break;
        }
    }
    RealClient { address, is_known: true }
}

/// An address of `X-Forwarded-For`, which some proxies write with a port, or in brackets.
fn address_of(name: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(name).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse()
        .or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()))
        .ok()
        .map(|address| address.to_canonical())
        .filter(|address| !address.is_unspecified())
}

fn scheme_of(name: &[u8]) -> Scheme {
    // Some proxies send this for WebSocket.
    let is_secure = name.eq_ignore_ascii_case(b"https") || name.eq_ignore_ascii_case(b"wss");
    if is_secure { Scheme::Https } else { Scheme::Http }
}

fn last_value<'a>(fields: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    fields.get_all(name).iter().next_back().and_then(|value| last_of(value.as_bytes()))
}

/// The last element of a list, if there is one.
fn last_of(list: &[u8]) -> Option<&[u8]> {
    list.rsplit(|byte| *byte == b',').next().map(<[u8]>::trim_ascii).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROXY: &str = "10.0.0.1";

    fn trusted() -> Vec<Network> {
        ["10.0.0.0/8", "127.0.0.1"].map(|network| network.parse().unwrap()).into()
    }

    fn applied(target: &str, fields: &[(&str, &str)]) -> (Request<()>, Forwarded) {
        let request = Request::builder().uri(target).header("host", "proxy.example");
        let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let mut request = request.body(()).unwrap();
        let real_client = apply(&trusted(), &Arrival::clear(PROXY.parse().unwrap()), &mut request);
        let forwarded = request.extensions().get::<Forwarded>().unwrap().clone();
        assert_eq!(real_client, forwarded.real_client.address);
        (request, forwarded)
    }

    #[test]
    fn the_real_client_is_the_last_of_the_chain_that_is_not_a_proxy() {
        for (chain, real_client, is_known) in [
            (&[][..], PROXY, true),
            (&["192.0.2.7"], "192.0.2.7", true),
            (&["203.0.113.9, 192.0.2.7"], "192.0.2.7", true),
            (&["203.0.113.9", "192.0.2.7, 10.2.3.4"], "192.0.2.7", true),
            (&["10.9.9.9"], "10.9.9.9", true),
            (&["192.0.2.7:4711"], "192.0.2.7", true),
            (&["[2001:db8::7]:4711"], "2001:db8::7", true),
            (&["[2001:db8::7]"], "2001:db8::7", true),
            (&["::ffff:192.0.2.7"], "192.0.2.7", true),
            (&["127.0.0.1,10.9.9.9"], "10.9.9.9", false),
            (&["127.0.0.1"], PROXY, false),
            (&["192.0.2.7, unknown"], PROXY, false),
            (&["192.0.2.7, unix:"], PROXY, false),
            (&["fe80::1%eth0"], PROXY, false),
            (&["unknown, 10.9.9.9"], "10.9.9.9", false),
            (&["", "192.0.2.7, "], PROXY, false),
        ] {
            let fields: Vec<_> = chain.iter().map(|value| ("x-forwarded-for", *value)).collect();
            let (_, forwarded) = applied("/", &fields);
            let address = real_client.parse::<IpAddr>().unwrap();
            assert_eq!(forwarded.real_client, RealClient { address, is_known }, "{chain:?}");
        }
        let (_, forwarded) = applied("/", &[("x-forwarded-for", "a"), ("x-forwarded-for", "b")]);
        assert_eq!(forwarded.chain.unwrap(), "a, b");
        assert!(applied("/", &[]).1.chain.is_none());
    }

    #[test]
    fn each_proxy_on_the_way_to_the_client_is_believed() {
        for (chain, expected) in [
            ("", &[PROXY][..]),
            ("192.0.2.7", &[PROXY]),
            ("203.0.113.9, 192.0.2.7, 10.2.3.4", &[PROXY, "10.2.3.4"]),
            ("unknown, 10.9.9.9", &[PROXY, "10.9.9.9"]),
        ] {
            let mut fields = HeaderMap::new();
            fields.insert(X_FORWARDED_FOR, HeaderValue::from_static(chain));
            let found = believed(&trusted(), PROXY.parse().unwrap(), &fields);
            assert_eq!(found, expected.iter().map(|one| one.parse::<IpAddr>().unwrap()).collect::<Vec<_>>(), "{chain}");
        }
    }

    #[test]
    fn the_last_scheme_and_the_last_host_count() {
        for (target, fields, expected) in [
            ("/a?b", &[][..], ("/a?b", "proxy.example", Scheme::Http)),
            ("/a", &[("x-forwarded-proto", "https")], ("/a", "proxy.example", Scheme::Https)),
            ("/a", &[("x-forwarded-proto", "https, HTTP")], ("/a", "proxy.example", Scheme::Http)),
            ("/a", &[("x-forwarded-proto", "WSS")], ("/a", "proxy.example", Scheme::Https)),
            ("/a", &[("x-forwarded-host", "evil.example , a.example")], ("/a", "a.example", Scheme::Http)),
            ("/a", &[("x-forwarded-host", "b"), ("x-forwarded-host", "")], ("/a", "proxy.example", Scheme::Http)),
            ("https://h2.example/a", &[], ("/a", "h2.example", Scheme::Https)),
            ("http://h2.example", &[("x-forwarded-proto", "https")], ("/", "h2.example", Scheme::Https)),
            ("http://h2.example/a", &[("x-forwarded-host", "a.example")], ("/a", "a.example", Scheme::Http)),
        ] {
            let (request, forwarded) = applied(target, fields);
            let host = request.headers()[HOST].to_str().unwrap();
            assert_eq!((request.uri().to_string().as_str(), host, forwarded.scheme), expected, "{target} {fields:?}");
        }
    }
}
