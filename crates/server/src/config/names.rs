//! Names in the notation of the file: hosts, networks, fields, methods, patterns.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use globset::{Glob as GlobOfSet, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method};
use ipnet::IpNet;

use super::value::written_as_text;
use crate::host_name::is_host;

/// A host that a site answers for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// This one, in lower case.
    Name(String),
    /// All hosts below a name, `*.example.org`; kept as `.example.org`.
    Below(String),
    /// All hosts without a site of their own, `*`.
    Any,
}

impl FromStr for HostPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let (name, is_wildcard) = text.strip_prefix("*.").map_or((text, false), |name| (name, true));
        if name.contains('*') {
            return Err(format!("`{text}` is not a host; write `*` alone, or as the first label: *.example.org"));
        }
        if name.contains("://") || name.contains('/') {
            return Err(format!("`{text}` is an address; give the host alone, such as example.org"));
        }
        if !text.is_ascii() {
            return Err(format!("`{text}` is not a host as clients send it; write it in Punycode, xn--..."));
        }
        let name = name.to_ascii_lowercase();
        if !is_host(&name) {
            return Err(format!("`{text}` is not a host; give a name without a port, such as example.org"));
        }
        Ok(if is_wildcard { Self::Below(format!(".{name}")) } else { Self::Name(name) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Below(suffix) => write!(formatter, "*{suffix}"),
            Self::Any => formatter.write_str("*"),
        }
    }
}

/// A host by its name alone, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HostName(pub String);

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse()? {
            HostPattern::Name(name) => Ok(Self(name)),
            _ => Err(format!("`{text}` is a wildcard; give one host")),
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The `Host` field of requests to the origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// The host of the cache key: the client's `Host`, with aliases mapped.
    #[default]
    Client,
    /// The host of the origin's address.
    Origin,
    /// This one.
    Name(String),
}

impl FromStr for HostHeader {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "client" => Ok(Self::Client),
            "origin" => Ok(Self::Origin),
            // A host without a dot that is so similar is a mistyped word; a port makes it clear.
            name if !name.contains(['.', ':']) && mistyped(name).is_some() => Err(format!(
                "`{text}` is neither \"client\" nor \"origin\"; write \"{}\", or for a host of this name add the port: \"{text}:80\"",
                mistyped(name).unwrap_or_default()
            )),
            name => match name.parse::<Authority>() {
                Ok(authority) if is_host(&authority.host().to_ascii_lowercase()) && !name.contains('@') => {
                    Ok(Self::Name(name.to_ascii_lowercase()))
                }
                _ => Err(format!("`{text}` is not a host; give \"client\", \"origin\" or a name such as example.org")),
            },
        }
    }
}

/// The word of [`HostHeader`] that a text is similar to.
fn mistyped(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    ["client", "origin"].into_iter().find(|word| strsim::damerau_levenshtein(&text, word) <= 2)
}

impl fmt::Display for HostHeader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Client => "client",
            Self::Origin => "origin",
            Self::Name(name) => name,
        })
    }
}

/// Reads an address to listen on.
///
/// # Errors
/// A message with the probable addresses.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().filter(|port| port.parse::<u16>().is_ok()).unwrap_or("8080");
        format!(
            "`{text}` is not an address with a port; give 127.0.0.1:{port} for this machine alone, or 0.0.0.0:{port} and \
             [::]:{port} for all networks"
        )
    })
}

/// A range of addresses, `192.0.2.0/24`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(pub IpNet);

impl Network {
    /// Whether an address is in one of these networks. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn any_has(networks: &[Self], address: IpAddr) -> bool {
        let address = address.to_canonical();
        networks.iter().any(|network| network.0.contains(&address))
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<IpNet>()
            .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
            .map(|network| Self(network.trunc()))
            .map_err(|_| {
                format!(
                    "`{text}` is not a network; give an address such as 192.0.2.7, or a network such as 192.0.2.0/24"
                )
            })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.prefix_len() == self.0.max_prefix_len() {
            self.0.addr().fmt(formatter)
        } else {
            self.0.fmt(formatter)
        }
    }
}

/// The name of a header field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldName(pub HeaderName);

impl FromStr for FieldName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not the name of a field; give one such as X-Device"))
    }
}

impl fmt::Display for FieldName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

impl PartialOrd for FieldName {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FieldName {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

/// The value of a header field: visible ASCII, blanks and tabs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldValue(pub HeaderValue);

impl FromStr for FieldValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let value = HeaderValue::from_str(text.trim_matches([' ', '\t'])).ok().filter(|value| value.to_str().is_ok());
        value.map(Self).ok_or_else(|| format!("{text:?} can't be the value of a field; give ASCII text of one line"))
    }
}

impl fmt::Display for FieldValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.to_str().unwrap_or_default())
    }
}

/// A method, in capitals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodName(pub Method);

impl FromStr for MethodName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return Err(format!(
                "`{text}` is not a method: methods are in capitals; give `{}`",
                text.to_ascii_uppercase()
            ));
        }
        text.parse().map(Self).map_err(|_| format!("`{text}` is not a method; give one such as GET"))
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0.as_str())
    }
}

/// A cookie's exact name: a token (RFC 6265, section 4.1.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieName(pub String);

impl FromStr for CookieName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names of fields are the same tokens.
        if HeaderName::from_bytes(text.as_bytes()).is_ok() && !text.contains('*') {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not the name of a cookie; give exact names, such as \"lang\""))
        }
    }
}

impl fmt::Display for CookieName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A pattern for a whole text: `*` matches any characters, `?` one, `[a-z]` one of these, `{a,b}` either. A backslash escapes
/// the next character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it has no wildcards, and matches only itself.
    pub fn is_literal(&self) -> bool {
        !self.0.contains(['*', '?', '[', '{', '\\'])
    }

    fn build(text: &str, ignores_case: bool) -> Result<GlobOfSet, String> {
        GlobBuilder::new(text).backslash_escape(true).case_insensitive(ignores_case).build().map_err(|error| {
            format!("`{text}` is not a pattern: {}; a backslash escapes the next character", error.kind())
        })
    }

    /// A matcher for this pattern alone; `None` for a pattern that [`Glob::from_str`] would refuse.
    pub(crate) fn matcher(&self) -> Option<GlobMatcher> {
        Self::build(&self.0, false).ok().map(|glob| glob.compile_matcher())
    }

    /// A matcher for any of these patterns. It skips patterns that can't be part of a set, which [`Glob::from_str`] refuses.
    pub(crate) fn set<'a>(globs: impl IntoIterator<Item = &'a str>, ignores_case: bool) -> GlobSet {
        let mut builder = GlobSetBuilder::new();
        for glob in globs.into_iter().filter_map(|text| Self::build(text, ignores_case).ok()) {
            builder.add(glob);
        }
        builder.build().unwrap_or_else(|_| GlobSet::empty())
    }
}

impl FromStr for Glob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("an empty pattern matches nothing; remove it".to_owned());
        }
        let glob = Self::build(text, false)?;
        GlobSetBuilder::new()
            .add(glob)
            .build()
            .map_err(|error| format!("the pattern `{text}` is too large: {error}"))?;
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

written_as_text! {
    HostPattern: "a host such as \"example.org\" or \"*.example.org\"",
    HostName: "a host such as \"example.org\"",
    HostHeader: "\"client\", \"origin\" or a host",
    Network: "an address or a network such as \"192.0.2.0/24\"",
    FieldName: "the name of a field",
    FieldValue: "the value of a field",
    MethodName: "a method such as \"GET\"",
    CookieName: "the name of a cookie",
    Glob: "a pattern such as \"*.html\"",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_a_wildcard() {
        assert_eq!("Example.ORG".parse(), Ok(HostPattern::Name("example.org".to_owned())));
        assert_eq!("*.example.org".parse(), Ok(HostPattern::Below(".example.org".to_owned())));
        assert_eq!("*".parse(), Ok(HostPattern::Any));
        assert_eq!("[::1]".parse(), Ok(HostPattern::Name("[::1]".to_owned())));
        for wrong in ["", "a.*", "*a.b", "http://a", "a/b", "a:80", "a b", "m\u{fc}ller.de", "*.", "a..b", ".a"] {
            assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_network_is_one_address_or_many() {
        assert_eq!("192.0.2.7".parse::<Network>().unwrap().to_string(), "192.0.2.7");
        assert_eq!("192.0.2.7/24".parse::<Network>().unwrap().to_string(), "192.0.2.0/24");
        assert_eq!("::1".parse::<Network>().unwrap().to_string(), "::1");
        assert!("192.0.2.0/33".parse::<Network>().is_err() && "localhost".parse::<Network>().is_err());
    }

    #[test]
    fn a_mapped_address_is_in_the_network_of_its_ipv4_address() {
        let networks: Vec<Network> = ["127.0.0.0/8", "2001:db8::/32"].map(|network| network.parse().unwrap()).into();
        for (client, expected) in [
            ("127.0.0.2", true),
            ("::ffff:127.0.0.1", true),
            ("2001:db8::7", true),
            ("192.0.2.1", false),
            ("::ffff:192.0.2.1", false),
            ("::1", false),
        ] {
            assert_eq!(Network::any_has(&networks, client.parse().unwrap()), expected, "{client}");
        }
        assert!(!Network::any_has(&[], "127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn methods_and_cookies_are_exact_tokens() {
        assert!("get".parse::<MethodName>().unwrap_err().contains("give `GET`"));
        assert!("GET".parse::<MethodName>().is_ok() && "PURGE".parse::<MethodName>().is_ok());
        assert!("lang".parse::<CookieName>().is_ok());
        for wrong in ["", "a b", "a=b", "a;b", "wp-*"] {
            assert!(wrong.parse::<CookieName>().is_err(), "{wrong}");
        }
    }
}
