//! The host of a request.

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Version};

use super::error::KeyError;
use crate::host_name::{ipv6, is_host};

/// The host that a request is for, in the form that keys have: lower case, without a dot at the end, and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHost {
    name: String,
    port: Option<u16>,
}

impl RequestHost {
    /// The host of an absolute target or of HTTP/2's `:authority`, else of the one `Host` (RFC 9112, section 3.2). A request of
    /// HTTP/1.0, as simple health checks send it, may have none, and counts as one for `localhost`.
    ///
    /// # Errors
    /// [`KeyError::NoHost`] and [`KeyError::Host`].
    pub(crate) fn of(request: &Parts) -> Result<Self, KeyError> {
        if let Some(authority) = request.uri.authority() {
            let host = Self::parse(authority.as_str())?;
            // In HTTP/1 the target outranks the field (RFC 9112, section 3.2.2); in HTTP/2 a request with two hosts is
            // malformed (RFC 9113, section 8.3.1).
            let is_same = |line: &HeaderValue| line.to_str().is_ok_and(|text| Self::parse(text).as_ref() == Ok(&host));
            let mut hosts = request.headers.get_all(HOST).iter();
            let is_sound = hosts.next().is_none_or(is_same) && hosts.next().is_none();
            return if request.version < Version::HTTP_2 || is_sound { Ok(host) } else { Err(KeyError::Host) };
        }
        let mut hosts = request.headers.get_all(HOST).iter();
        match (hosts.next(), hosts.next()) {
            (Some(host), None) => Self::parse(host.to_str().map_err(|_| KeyError::Host)?),
            (None, None) if request.version <= Version::HTTP_10 => Self::parse("localhost"),
            _ => Err(KeyError::NoHost),
        }
    }

    /// The same for text: a host, and maybe a port.
    ///
    /// # Errors
    /// [`KeyError::Host`].
    pub(crate) fn parse(text: &str) -> Result<Self, KeyError> {
        let authority: Authority = text.parse().map_err(|_| KeyError::Host)?;
        if text.contains('@') {
            return Err(KeyError::Host);
        }
        let after_host = &text[authority.host().len()..];
        let port = match after_host.strip_prefix(':') {
            // An empty port is the default (RFC 3986, section 3.2.3).
            None | Some("") => None,
            Some(digits) => Some(digits.parse().ok().filter(|port| *port > 0).ok_or(KeyError::Host)?),
        };
        let name = authority.host().to_ascii_lowercase();
        if let Some(address) = ipv6(&name) {
            return Ok(Self { name: format!("[{address}]"), port });
        }
        let name = name.strip_suffix('.').map(str::to_owned).unwrap_or(name);
        if is_host(&name) { Ok(Self { name, port }) } else { Err(KeyError::Host) }
    }

    /// In lower case; an IPv6 address in brackets and in its short form.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// As the client gave it.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_one_form() {
        for (text, name, port) in [
            ("Example.ORG", "example.org", None),
            ("example.org.", "example.org", None),
            ("example.org:8080", "example.org", Some(8080)),
            ("example.org:", "example.org", None),
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
            ("[0:0::1]:3000", "[::1]", Some(3000)),
            ("my_host", "my_host", None),
        ] {
            let host = RequestHost::parse(text).unwrap();
            assert_eq!((host.name(), host.port()), (name, port), "{text}");
        }
    }

    #[test]
    fn malformed_hosts_are_refused() {
        let long = "a.".repeat(200);
        for text in [
            "", ".", "..", "a..b", "u@a", "a b", "a/b", "a:0", "a:99999", "a:b", "a%41", "[::1", "[x]", "::1", "a,b",
            &long,
        ] {
            assert_eq!(RequestHost::parse(text), Err(KeyError::Host), "{text}");
        }
    }
}
