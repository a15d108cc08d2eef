//! The address of an origin.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::{Authority, PathAndQuery, Scheme};
use percent_encoding::percent_decode_str;

use super::value::written_as_text;
use crate::host_name::is_host;

/// The most bytes of the path of a Unix socket (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;
/// The host of an origin at a Unix socket, which has no other.
const LOCALHOST: Authority = Authority::from_static("localhost");

/// The place of an origin, and a path to put before the path of each request: `http://` or `https://` with a host, and a port if it
/// isn't the scheme's; or `unix:` with the path of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginUrl {
    place: Place,
    /// Empty, or with a slash at its beginning and none at its end.
    prefix: String,
}

/// The peer of a connection to an origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(Scheme, Authority),
    /// A Unix socket.
    Unix(PathBuf),
}

impl OriginUrl {
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn is_secure(&self) -> bool {
        matches!(&self.place, Place::Tcp(scheme, _) if *scheme == Scheme::HTTPS)
    }

    /// The host, with the port if it isn't the scheme's own, as in the field `Host` (RFC 9110, section 7.2).
    pub(crate) fn host(&self) -> &str {
        let Place::Tcp(_, authority) = &self.place else { return "localhost" };
        let usual = if self.is_secure() { 443 } else { 80 };
        match authority.port_u16() {
            Some(port) if port != usual => authority.as_str(),
            _ => authority.host(),
        }
    }

    /// The target at this origin. `None` if the request's path leaves the prefix by `..`, because a client must not reach other
    /// paths of the origin.
    pub(crate) fn target(&self, asked: &Uri) -> Option<Uri> {
        let target = asked.path_and_query().map_or("/", PathAndQuery::as_str);
        if !self.prefix.is_empty() && leads_up(asked.path()) {
            return None;
        }
        let target = if self.prefix.is_empty() { target.to_owned() } else { format!("{}{target}", self.prefix) };
        let (scheme, authority) = match &self.place {
            Place::Tcp(scheme, authority) => (scheme.clone(), authority.clone()),
            Place::Unix(_) => (Scheme::HTTP, LOCALHOST),
        };
        Uri::builder().scheme(scheme).authority(authority).path_and_query(target).build().ok()
    }

    /// The text behind `unix:`: the path of a socket, and behind a colon the path to put before that of each request, as nginx
    /// writes it.
    fn of_socket(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "give an absolute path such as unix:/run/app.sock, or unix:/run/app.sock:/path";
        let (socket, prefix) = text.split_once(':').unwrap_or((text, "/"));
        if !socket.starts_with('/') || socket.ends_with('/') {
            return Err(format!("`{socket}` is not the path of a socket; {EXAMPLE}"));
        }
        if socket.len() > SOCKET_PATH_BYTES_MAX {
            return Err(format!(
                "the path of the socket has {} bytes; Linux allows {SOCKET_PATH_BYTES_MAX}",
                socket.len()
            ));
        }
        let path =
            prefix.parse::<PathAndQuery>().ok().filter(|path| path.as_str() == prefix && prefix.starts_with('/'));
        let path = path.ok_or_else(|| format!("`{prefix}` is not a path of requests; {EXAMPLE}"))?;
        Ok(Self { place: Place::Unix(PathBuf::from(socket)), prefix: prefix_of(&path)? })
    }
}

/// The path of an origin, without a slash at its end.
fn prefix_of(path: &PathAndQuery) -> Result<String, String> {
    if path.query().is_some() {
        return Err("an origin can't have a query; give host, port and path only".to_owned());
    }
    if leads_up(path.path()) {
        return Err("the path of an origin can't have `..`; write it without".to_owned());
    }
    Ok(path.path().trim_end_matches('/').to_owned())
}

/// Whether a segment is `..` in any spelling, or has an escaped slash, which some servers take for a slash.
fn leads_up(path: &str) -> bool {
    let path = percent_decode_str(path).decode_utf8_lossy();
    path.split(['/', '\\']).any(|segment| segment.split(';').next() == Some(".."))
}

impl FromStr for OriginUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const EXAMPLE: &str = "give an address such as http://127.0.0.1:3000 or unix:/run/app.sock";
        if let Some(text) = text.strip_prefix("unix:") {
            return Self::of_socket(text);
        }
        let parts = text.parse::<Uri>().map_err(|_| format!("`{text}` is not an address; {EXAMPLE}"))?.into_parts();
        let scheme = match parts.scheme {
            Some(scheme) if scheme == Scheme::HTTP || scheme == Scheme::HTTPS => scheme,
            Some(scheme) => return Err(format!("the scheme {scheme} is not supported; {EXAMPLE}")),
            None => return Err(format!("`{text}` has no scheme; {EXAMPLE}")),
        };
        let prefix = prefix_of(&parts.path_and_query.unwrap_or_else(|| PathAndQuery::from_static("/")))?;
        let authority = parts.authority.ok_or_else(|| format!("`{text}` has no host; {EXAMPLE}"))?;
        if authority.as_str().contains('@') {
            return Err("an origin can't have a user name; Eyewall doesn't send it".to_owned());
        }
        let after_host = &authority.as_str()[authority.host().len()..];
        if !after_host.is_empty() && authority.port_u16().is_none_or(|port| port == 0) {
            return Err(format!("`{text}` has an impossible port; give 1 to 65535"));
        }
        if !is_host(&authority.host().to_ascii_lowercase()) {
            return Err(format!("`{}` is not a host; {EXAMPLE}", authority.host()));
        }
        Ok(Self { place: Place::Tcp(scheme, authority), prefix })
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Tcp(scheme, authority) => write!(formatter, "{scheme}://{authority}{}", self.prefix),
            Place::Unix(path) if self.prefix.is_empty() => write!(formatter, "unix:{}", path.display()),
            Place::Unix(path) => write!(formatter, "unix:{}:{}", path.display(), self.prefix),
        }
    }
}

written_as_text! {
    OriginUrl: "an address such as \"http://127.0.0.1:3000\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_a_host_and_perhaps_a_path() {
        for (text, shown) in [
            ("http://127.0.0.1:3000/", "http://127.0.0.1:3000"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("https://a", "https://a"),
            ("http://a/app/", "http://a/app"),
            ("http://a/b/c", "http://a/b/c"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("unix:/run/app.sock:/", "unix:/run/app.sock"),
            ("unix:/run/app.sock:/app/", "unix:/run/app.sock:/app"),
        ] {
            assert_eq!(text.parse::<OriginUrl>().unwrap().to_string(), shown);
        }
        for wrong in [
            "",
            "example.org",
            "http://a/?q",
            "http://u:p@a",
            "ftp://a",
            "http://",
            "http://a/b/../c",
            "http://a:0",
            "http://a:x",
            "http://a..b",
            "unix:",
            "unix:app.sock",
            "unix:/run/",
            "unix:/run/app.sock:app",
            "unix:/run/app.sock:/a?q",
            "unix:/run/app.sock:/../b",
            &format!("unix:/{}", "a".repeat(107)),
        ] {
            assert!(wrong.parse::<OriginUrl>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_host_has_a_port_if_it_is_not_the_default() {
        for (origin, host) in [
            ("http://a", "a"),
            ("http://a:80", "a"),
            ("https://a:80", "a:80"),
            ("https://[::1]:443/app", "[::1]"),
            ("http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("unix:/run/app.sock:/app", "localhost"),
        ] {
            assert_eq!(origin.parse::<OriginUrl>().unwrap().host(), host);
        }
    }

    #[test]
    fn the_path_of_the_origin_is_a_prefix_that_requests_can_not_leave() {
        for (origin, asked, target) in [
            ("http://a", "/x?y", Some("http://a/x?y")),
            ("http://a", "/../x", Some("http://a/../x")),
            ("http://a/app", "/", Some("http://a/app/")),
            ("http://a/app/", "/x?y=/../z", Some("http://a/app/x?y=/../z")),
            ("http://a/app", "/a..b/...", Some("http://a/app/a..b/...")),
            ("unix:/s:/app", "/x", Some("http://localhost/app/x")),
            ("unix:/s:/app", "/../x", None),
            ("http://a/app", "/../admin", None),
            ("http://a/app", "/x/%2e%2E/..", None),
            ("http://a/app", "/%2e.%2fadmin", None),
            ("http://a/app", "/..;v=1/admin", None),
            ("http://a/app", "/..%5cadmin", None),
        ] {
            let found = origin.parse::<OriginUrl>().unwrap().target(&asked.parse().unwrap());
            assert_eq!(found.map(|target| target.to_string()).as_deref(), target, "{origin} {asked}");
        }
    }
}
