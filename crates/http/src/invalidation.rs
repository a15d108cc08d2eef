//! The URIs that a response to an unsafe request invalidates (RFC 9111, section 4.4).

use std::fmt;

use http::header::{CONTENT_LOCATION, LOCATION};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, Method, StatusCode, Uri};

/// Registered safe methods other than those of RFC 9110.
const SAFE_TOO: [&str; 5] = ["PRI", "PROPFIND", "QUERY", "REPORT", "SEARCH"];

/// Whether a method is known to be safe (RFC 9110, section 9.2.1), so that it requests no change.
pub fn is_safe(method: &Method) -> bool {
    method.is_safe() || SAFE_TOO.contains(&method.as_str())
}

/// The URIs whose stored responses a response invalidates, each once. The target comes first; then the URIs in
/// `Location` and `Content-Location`, if they have the target's origin. Empty if the method is safe, or the
/// status is an error.
///
/// `target` has a scheme and an authority. The other URIs get them as the target spells them, so that they give
/// the same keys.
pub fn invalidated(method: &Method, target: &Uri, status: StatusCode, response: &HeaderMap) -> Vec<Uri> {
    if is_safe(method) || !(status.is_success() || status.is_redirection()) {
        return Vec::new();
    }
    let mut uris = vec![target.clone()];
    for name in [LOCATION, CONTENT_LOCATION] {
        for line in response.get_all(name) {
            let Some(uri) = of_same_origin(target, line.as_bytes().trim_ascii()) else { continue };
            if !uris.contains(&uri) {
                uris.push(uri);
            }
        }
    }
    uris
}

/// Scheme, host and port (RFC 9110, section 4.3.1). It displays as `https://example.org:443`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an absolute `http` or `https` URI. `None` for other URIs.
    pub fn of(uri: &Uri) -> Option<Self> {
        let (scheme, authority) = (uri.scheme()?, uri.authority()?);
        let default_port = if *scheme == Scheme::HTTP {
            80
        } else if *scheme == Scheme::HTTPS {
            443
        } else {
            return None;
        };
        let port = match authority.port() {
            Some(port) => port.as_u16(),
            // No port, or a colon without one. Anything but a number makes the origin invalid.
            None if authority.as_str().ends_with(':') || authority.as_str().ends_with(authority.host()) => default_port,
            None => return None,
        };
        let host = authority.host();
        (!host.is_empty()).then(|| Self {
            scheme: scheme.as_str().to_ascii_lowercase(),
            host: host.to_ascii_lowercase(),
            port,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Resolves a reference against the target (RFC 3986, section 5.2), if the result has the target's origin.
///
/// The crate `url` follows the WHATWG. It rewrites backslashes, tabs and characters that URIs don't have, so its
/// paths differ from those that clients request.
pub(crate) fn of_same_origin(target: &Uri, reference: &[u8]) -> Option<Uri> {
    let reference = std::str::from_utf8(reference).ok()?;
    let reference = reference.split_once('#').map_or(reference, |(before, _)| before);
    let (scheme, rest) = match scheme_of(reference) {
        Some((scheme, rest)) => (scheme, rest),
        None => (target.scheme_str()?, reference),
    };
    if !scheme.eq_ignore_ascii_case(target.scheme_str()?) {
        return None;
    }
    let path_and_query = if let Some(rest) = rest.strip_prefix("//") {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let theirs =
            Uri::builder().scheme(target.scheme()?.clone()).authority(authority).path_and_query("/").build().ok()?;
        if Origin::of(&theirs)? != Origin::of(target)? {
            return None;
        }
        let (path, query) = parted(rest);
        joined(&without_dots(path), query)
    } else if rest.len() < reference.len() {
        // A scheme without an authority: not an HTTP URI.
        return None;
    } else {
        let (path, query) = parted(rest);
        if path.is_empty() {
            joined(target.path(), query.or(target.query()))
        } else if path.starts_with('/') {
            joined(&without_dots(path), query)
        } else {
            let folder = target.path().rfind('/').map_or("/", |end| &target.path()[..=end]);
            joined(&without_dots(&format!("{folder}{path}")), query)
        }
    };
    let mut parts = target.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(path_and_query).ok()?);
    Uri::from_parts(parts).ok()
}

/// The scheme at the beginning of a reference, and the rest after its colon.
fn scheme_of(reference: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    is_scheme.then_some((scheme, rest))
}

fn parted(text: &str) -> (&str, Option<&str>) {
    text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)))
}

fn joined(path: &str, query: Option<&str>) -> String {
    let path = if path.is_empty() { "/" } else { path };
    query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

/// Removes `.` and `..` from a path that is empty or begins with a slash (section 5.2.4). Empty segments stay.
fn without_dots(path: &str) -> String {
    let Some(inner) = path.strip_prefix('/') else { return String::from("/") };
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = inner.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_dots = matches!(segment, "." | "..");
        if segment == ".." {
            kept.pop();
        }
        if !is_dots {
            kept.push(segment);
        } else if segments.peek().is_none() {
            // The path then names the folder.
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}
