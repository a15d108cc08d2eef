//! The keys of stored responses.
//!
//! ```text
//! tower:NAMESPACE:https://example.org/path?query                 an address, also a vary index to its variants
//! ADDRESS +MORE                                                  if a closure adds parts
//! ADDRESS query                                                  the generation of the answers to QUERY
//! ```
//! No address has a blank, so none is a prefix of another address's keys.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use eyewall_page_cache::tags;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, Uri};
use percent_encoding::percent_decode_str;

/// The host of requests that don't name one.
const NO_HOST: &str = "localhost";

type More = dyn Fn(&Parts) -> String + Send + Sync;

/// The parts of a request that make the key of its response. Default: scheme, host, path and query.
///
/// If the inner service looks at anything else in a request, the `Vary` of its responses has to name that, or it has to be part of
/// the key.
#[derive(Clone)]
pub struct KeyParts {
    scheme: Option<Scheme>,
    has_scheme: bool,
    has_host: bool,
    query: Query,
    more: Option<Arc<More>>,
}

#[derive(Clone, Debug)]
enum Query {
    All,
    Nothing,
    Only(Vec<String>),
}

impl Default for KeyParts {
    fn default() -> Self {
        Self { scheme: None, has_scheme: true, has_host: true, query: Query::All, more: None }
    }
}

impl fmt::Debug for KeyParts {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, has_scheme, has_host, query, more } = self;
        let mut form = to.debug_struct("KeyParts");
        form.field("scheme", scheme).field("has_scheme", has_scheme).field("has_host", has_host).field("query", query);
        form.field("has_more", &more.is_some()).finish()
    }
}

impl KeyParts {
    /// A key of scheme, host, path and query.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this scheme for all requests. Default: the scheme of the request's target, and `http` if it has none, as over HTTP/1.1.
    /// Set `Scheme::HTTPS` for a service behind TLS, so that HTTP/1.1 and HTTP/2 make the same keys.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = Some(scheme);
        self
    }

    /// Leaves the scheme out of the key. The answer over TLS is then the same as the one without TLS.
    pub fn without_scheme(mut self) -> Self {
        self.has_scheme = false;
        self
    }

    /// Leaves the host out of the key, for services that answer all hosts alike.
    pub fn without_host(mut self) -> Self {
        self.has_host = false;
        self
    }

    /// Leaves the query out of the key, for services that don't look at it.
    pub fn without_query(mut self) -> Self {
        self.query = Query::Nothing;
        self
    }

    /// Keeps only these names of the query in the key, for services that ignore all others, such as `utm_source`. The inner service
    /// gets the whole query. An escaped name counts as the same name, as it does for services.
    pub fn query_only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.query = Query::Only(names.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a part to the key that `part` makes of a request, such as the language of a cookie. The purge of an address covers all
    /// such parts.
    pub fn and(mut self, part: impl Fn(&Parts) -> String + Send + Sync + 'static) -> Self {
        self.more = Some(Arc::new(part));
        self
    }

    /// The target of a request, with scheme and authority. None: the host is missing, or ambiguous.
    pub(crate) fn target(&self, parts: &Parts) -> Option<Uri> {
        let told = host(&parts.headers).ok()?;
        // Services look at one or the other. A response that is stored for one host must not be made for another.
        let authority = match (parts.uri.authority(), told) {
            (Some(asked), Some(told)) if *asked != told => return None,
            (Some(authority), _) => authority.clone(),
            (None, told) => told.unwrap_or_else(|| Authority::from_static(NO_HOST)),
        };
        if authority.as_str().contains('@') || !has_sound_port(&authority) {
            return None;
        }
        self.absolute(&parts.uri, authority)
    }

    /// Parses an address as people write it: absolute, or a path.
    pub(crate) fn parsed(&self, address: &str) -> Option<Uri> {
        let uri: Uri = address.parse().ok()?;
        let authority = uri.authority().cloned().unwrap_or_else(|| Authority::from_static(NO_HOST));
        self.absolute(&uri, authority)
    }

    fn absolute(&self, uri: &Uri, authority: Authority) -> Option<Uri> {
        let scheme = self.scheme.clone().or_else(|| uri.scheme().cloned()).unwrap_or(Scheme::HTTP);
        let path = uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path).build().ok()
    }

    /// The key of an address, after this prefix. `uri` is absolute.
    pub(crate) fn address(&self, prefix: &str, uri: &Uri) -> String {
        let mut key = prefix.to_owned();
        let scheme = uri.scheme_str().unwrap_or("http");
        if self.has_scheme {
            key.push_str(scheme);
            key.push(':');
        }
        if let (true, Some(authority)) = (self.has_host, uri.authority()) {
            key.push_str("//");
            key.push_str(&authority.host().to_ascii_lowercase());
            let default_port = if scheme == "https" { 443 } else { 80 };
            if let Some(port) = authority.port_u16().filter(|port| *port != default_port) {
                key.push(':');
                key.push_str(&port.to_string());
            }
        }
        key.push_str(uri.path());
        if let Some(query) = uri.query().and_then(|query| self.query.kept(query)) {
            key.push('?');
            key.push_str(&query);
        }
        key
    }

    /// The key of a request for this address.
    pub(crate) fn of_request(&self, address: &str, parts: &Parts) -> Vec<u8> {
        match &self.more {
            // Without blanks, so that no part looks like the suffix of an address.
            Some(more) => format!("{address} +{}", more(parts).replace('%', "%25").replace(' ', "%20")).into_bytes(),
            None => address.as_bytes().to_vec(),
        }
    }

    /// The tag of all responses of an address, if the address has several keys.
    pub(crate) fn address_tag(&self, address: &str) -> Option<String> {
        self.more.is_some().then(|| tags::address(address))
    }
}

impl Query {
    fn kept<'a>(&self, query: &'a str) -> Option<Cow<'a, str>> {
        match self {
            Self::All => Some(Cow::Borrowed(query)),
            Self::Nothing => None,
            Self::Only(names) => {
                let is_named = |pair: &&str| {
                    // Decoded as services decode it, so that the key keeps every name that they look at.
                    let name = pair.split_once('=').map_or(*pair, |(name, _)| name).replace('+', " ");
                    names.iter().any(|known| percent_decode_str(&name).eq(known.bytes()))
                };
                let kept: Vec<&str> = query.split('&').filter(is_named).collect();
                (!kept.is_empty()).then(|| Cow::Owned(kept.join("&")))
            }
        }
    }
}

/// Whether the host is followed by a port, an empty port, or nothing. Anything else would not be part of a key, but a service that
/// repeats the host in its response would repeat it.
fn has_sound_port(authority: &Authority) -> bool {
    match authority.as_str().strip_prefix(authority.host()).map(|rest| rest.strip_prefix(':').ok_or(rest)) {
        Some(Ok(port)) => {
            port.is_empty() || port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok()
        }
        Some(Err(rest)) => rest.is_empty(),
        None => false,
    }
}

/// The field occurs twice, or is invalid.
struct NoHost;

/// The host in `Host`, if the field is present.
fn host(fields: &HeaderMap) -> Result<Option<Authority>, NoHost> {
    let mut lines = fields.get_all(HOST).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Ok(None),
        (Some(host), None) => Authority::try_from(host.as_bytes()).map(Some).map_err(|_| NoHost),
        (Some(_), Some(_)) => Err(NoHost),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn key(parts: &KeyParts, target: &str, hosts: &[&str]) -> Option<String> {
        let mut request = Request::get(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let address = parts.address("tower:", &parts.target(&head)?);
        Some(String::from_utf8(parts.of_request(&address, &head)).unwrap())
    }

    #[test]
    fn the_default_key_is_scheme_host_path_and_query() {
        let parts = KeyParts::new();
        let found = |target, hosts: &[&str]| key(&parts, target, hosts);
        assert_eq!(found("/a?b=c", &["Example.org:80"]).unwrap(), "tower:http://example.org/a?b=c");
        assert_eq!(found("https://example.org:443", &[]).unwrap(), "tower:https://example.org/");
        assert_eq!(found("http://example.org:81/", &["EXAMPLE.org:81"]).unwrap(), "tower:http://example.org:81/");
        assert_eq!(found("http://example.org/", &["other.org"]), None, "it says two hosts");
        assert_eq!(found("/", &[]).unwrap(), "tower:http://localhost/");
        assert_eq!(found("/", &["a", "b"]), None, "it says twice of which host");
        assert_eq!(found("/", &["a b"]), None);
        assert_eq!(found("/", &["user@a"]), None);
    }

    #[test]
    fn parts_can_be_left_out_and_added() {
        let bare = KeyParts::new().without_scheme().without_host().without_query();
        assert_eq!(key(&bare, "https://example.org/a?b", &[]).unwrap(), "tower:/a");
        let over_tls = KeyParts::new().scheme(Scheme::HTTPS).query_only(["b", "d"]);
        assert_eq!(key(&over_tls, "/?a=1&b=2&c&d", &["x"]).unwrap(), "tower:https://x/?b=2&d");
        assert_eq!(key(&over_tls, "/?a=1", &["x"]).unwrap(), "tower:https://x/");
        let more = KeyParts::new().and(|parts| format!("{} 1%", parts.method));
        assert_eq!(key(&more, "/", &["x"]).unwrap(), "tower:http://x/ +GET%201%25");
    }
}
