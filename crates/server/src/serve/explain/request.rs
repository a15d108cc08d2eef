//! The request of a question.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::header::HOST;
use http::{HeaderName, HeaderValue, Method, Request, Uri};

use super::explanation::Question;
use crate::key::Scheme;
use crate::serve::arrival::Arrival;
use crate::serve::purge::method::is_purge;

/// The request, as it would arrive over HTTP/1.1, and its connection.
pub(super) fn request_of(question: &Question) -> Result<(Request<()>, Arrival), String> {
    const EXAMPLE: &str = "give an address such as http://example.org/page";
    let uri: Uri = question.url.parse().map_err(|error| format!("{}: {error}; {EXAMPLE}", question.url))?;
    let scheme = match uri.scheme_str() {
        Some("http") => Scheme::Http,
        Some("https") => Scheme::Https,
        _ => return Err(format!("{} has no scheme; {EXAMPLE}", question.url)),
    };
    let authority = uri.authority().ok_or_else(|| format!("{} has no host; {EXAMPLE}", question.url))?;
    let method = Method::from_bytes(question.method.as_bytes())
        .map_err(|_| format!("{:?} is no method; give one such as GET or HEAD", question.method))?;
    if is_purge(&method) {
        return Err("a purge is no request for a page; `eyewall purge --server` purges".to_owned());
    }
    if authority.as_str().contains('@') {
        return Err("clients send a user and a password in Authorization; give that field in place of them".to_owned());
    }
    if let Some((name, _)) = question
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding"))
    {
        return Err(format!("requests with content can't be explained; leave out {name}"));
    }
    if method == Method::QUERY {
        return Err("the content of a QUERY is part of its key; no QUERY can be explained".to_owned());
    }
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = target(&uri).parse().map_err(|_| EXAMPLE)?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_str(authority.as_str()).map_err(|_| EXAMPLE)?);
    for (name, value) in &question.headers {
        let named = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is no name of a field"))?;
        let told = HeaderValue::from_str(value)
            .map_err(|_| format!("{name}: the value has characters that no field can have"))?;
        if named == HOST {
            headers.insert(HOST, told);
        } else {
            headers.append(named, told);
        }
    }
    let client = question.from.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)).to_canonical();
    // An address isn't named in the handshake (RFC 6066, section 3).
    let name = authority.host().trim_end_matches('.').to_ascii_lowercase();
    let is_named = scheme == Scheme::Https && !name.starts_with('[') && name.parse::<IpAddr>().is_err();
    let server_name = is_named.then(|| Arc::from(name));
    Ok((request, Arrival { scheme, server_name, ..Arrival::clear(client) }))
}

/// The target of a request for an address, which may have a query without a path.
fn target(address: &Uri) -> String {
    let target = address.path_and_query().map_or("/", |target| target.as_str());
    if target.starts_with('/') { target.to_owned() } else { format!("/{target}") }
}
