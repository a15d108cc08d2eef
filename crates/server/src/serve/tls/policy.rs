//! What HTTPS means for a request: the answer to an ACME challenge, a redirect to HTTPS, 421 for a host of another certificate, HSTS.
//!
//! A redirect has the status 301 for GET and HEAD, which every client follows, and 308 for other methods: after a 301, clients turn a
//! POST into a GET (RFC 9110, section 15.4.2). It must not be stored, so that browsers forget it when the operator takes it back.

use std::sync::Arc;

use eyewall_tls::acme::HTTP_PATH;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use toml::Spanned;

use super::Tls;
use crate::config::Config;
use crate::config::site::Site;
use crate::config::tls::{CertificateFiles, SiteTls};
use crate::key::{RequestHost, Scheme};
use crate::serve::arrival::Arrival;
use crate::serve::body::Body;
use crate::serve::reply;
use crate::sites::Sites;

/// Answers an authority that asks by HTTP-01; `None` if no order waits for this token. Then a site may answer: its origin may have an
/// ACME client of its own.
pub(crate) async fn challenge(tls: &Tls, request: &Parts) -> Option<Response<Body>> {
    let token = request.uri.path().strip_prefix(HTTP_PATH)?.to_owned();
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return None;
    }
    let challenges = Arc::clone(tls.challenges()?);
    // The answer is in a file, which may be on a slow disk.
    let answer = tokio::task::spawn_blocking(move || challenges.http_response(&token)).await.ok()??;
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(reply::response(StatusCode::OK, fields, Body::whole(answer)))
}

/// Redirects a request to the same address over HTTPS.
pub(crate) fn redirect(request: &Parts, host: &RequestHost, port: Option<u16>) -> Response<Body> {
    let is_plain = matches!(request.method, Method::GET | Method::HEAD);
    let status = if is_plain { StatusCode::MOVED_PERMANENTLY } else { StatusCode::PERMANENT_REDIRECT };
    let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
    let port =
        port.filter(|port| *port != Scheme::Https.default_port()).map(|port| format!(":{port}")).unwrap_or_default();
    let location = HeaderValue::from_str(&format!("https://{}{port}{target}", host.name()));
    let mut response = reply::error(status, "this address is available over HTTPS only");
    match location {
        Ok(location) => drop(response.headers_mut().insert(LOCATION, location)),
        // No target that was parsed has bytes that a field can't have.
        Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

/// Which sites share their certificates: for each site the number of the first site with the same ones; `None` without any.
pub(crate) fn certificate_groups(config: &Config) -> Vec<Option<usize>> {
    let sites = &config.sites;
    let group = |(number, site): (usize, &Site)| {
        let files = files_of(site)?;
        let first = || sites.iter().position(|other| files_of(other).is_some_and(|other| other == files));
        if files.is_empty() { Some(number) } else { first() }
    };
    sites.iter().enumerate().map(group).collect()
}

/// The files of a site's certificates; none for certificates by ACME, `None` without certificates.
fn files_of(site: &Site) -> Option<Vec<eyewall_tls::IdentityFiles>> {
    match site.tls.as_ref().map(Spanned::get_ref)? {
        SiteTls::Auto => Some(Vec::new()),
        SiteTls::Files(files) => Some(files.iter().filter_map(CertificateFiles::identity).collect()),
    }
}

/// Whether a connection was made for the site of this number, or has its certificates: a client may send requests for other hosts over it, for instance
/// because their names lead to the same address (RFC 9113, section 9.1.1). Without SNI, the client has chosen no site.
pub(crate) fn is_directed(arrival: &Arrival, site: usize, groups: &[Option<usize>], sites: &Sites) -> bool {
    if arrival.scheme == Scheme::Http {
        return true;
    }
    let group = groups.get(site).copied().flatten();
    let Some(name) = &arrival.server_name else { return group.is_some() };
    let of_handshake = sites.number_of(name);
    // A reload may have taken the certificates of a site away, and connections from before stay.
    of_handshake == Some(site)
        || group.is_some() && of_handshake.and_then(|number| groups.get(number).copied().flatten()) == group
}

/// The value of `Strict-Transport-Security`.
pub(crate) fn hsts(site: &Site) -> Option<HeaderValue> {
    let period = site.hsts.as_ref()?.get_ref().0;
    HeaderValue::from_str(&format!("max-age={}", period.as_secs())).ok()
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn redirected(method: &str, target: &str, host: &str, port: u16) -> (u16, String) {
        let request = Request::builder().method(method).uri(target).body(()).unwrap().into_parts().0;
        let response = redirect(&request, &RequestHost::parse(host).unwrap(), Some(port));
        (response.status().as_u16(), response.headers()[LOCATION].to_str().unwrap().to_owned())
    }

    #[test]
    fn a_redirect_keeps_host_and_target_and_the_method() {
        for (method, target, host, port, expected) in [
            ("GET", "/a?b=%20", "Example.org:80", 443, (301, "https://example.org/a?b=%20")),
            ("HEAD", "/", "example.org", 8443, (301, "https://example.org:8443/")),
            ("POST", "/a", "[::1]:8080", 443, (308, "https://[::1]/a")),
            ("GET", "http://example.org/a", "example.org", 443, (301, "https://example.org/a")),
        ] {
            let (status, location) = redirected(method, target, host, port);
            assert_eq!((status, location.as_str()), expected);
        }
    }

    #[test]
    fn sites_with_the_same_files_share_connections() {
        let tls = |files: &str| format!("origins = [\"http://a\"]\ntls = {files}\n");
        let text = [
            "[[site]]\nhosts = [\"none.example\"]\norigins = [\"http://a\"]\n".to_owned(),
            format!("[[site]]\nhosts = [\"one.example\"]\n{}", tls("{ certificate = \"/x\" }")),
            format!("[[site]]\nhosts = [\"two.example\"]\n{}", tls("{ certificate = \"/y\" }")),
            format!("[[site]]\nhosts = [\"three.example\"]\n{}", tls("{ certificate = \"/x\", key = \"/x\" }")),
            format!("[[site]]\nhosts = [\"auto.example\"]\n{}", tls("\"auto\"")),
            format!("[[site]]\nhosts = [\"auto.test\"]\n{}", tls("\"auto\"")),
        ];
        let config = Config::of_unchecked(&text.concat());
        let (groups, sites) = (certificate_groups(&config), Sites::of(&config.sites));
        assert_eq!(groups, [None, Some(1), Some(2), Some(1), Some(4), Some(5)]);
        let over = |scheme, name: Option<&str>| Arrival {
            scheme,
            server_name: name.map(Arc::from),
            ..Arrival::clear([127, 0, 0, 1].into())
        };
        let is_directed = |arrival: &Arrival| -> Vec<bool> {
            (0..groups.len()).map(|site| is_directed(arrival, site, &groups, &sites)).collect()
        };
        assert_eq!(is_directed(&over(Scheme::Http, None)), [true; 6]);
        assert_eq!(is_directed(&over(Scheme::Https, None)), [false, true, true, true, true, true]);
        let of_one = is_directed(&over(Scheme::Https, Some("one.example")));
        assert_eq!(of_one, [false, true, false, true, false, false]);
        assert_eq!(is_directed(&over(Scheme::Https, Some("unknown.example"))), [false; 6]);
        let of_none = is_directed(&over(Scheme::Https, Some("none.example")));
        assert_eq!(of_none, [true, false, false, false, false, false], "its certificates are gone");
    }
}
