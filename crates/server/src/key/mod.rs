//! The key of the response to a request, and the target of the request to the origin.
//!
//! ```text
//! http://example.org:8080/path?query cookie:lang=de header:x-device=phone
//! scheme host        port path query  the further parts of the site's configuration
//! ```
//!
//! - The **scheme** is that of the connection.
//! - The **host** is in lower case, without a default port. The site's first host replaces an alias.
//! - In the **path**, escapes of unreserved characters are decoded, other escapes are in capitals, and `.` and `..` are resolved
//!   (RFC 3986, section 6.2.2). Its other bytes are unchanged.
//! - The **query** is unchanged, except that the site may strip parameters, or sort them by name.
//! - **Further parts** follow a blank, which no request target can have, and are percent-encoded. Responses to QUERY have three
//!   more behind the target: the word `query`, the generation of the address's responses, and the digest of the content. Copies of
//!   error pages have the word `error-page` there.
//!
//! # Why nobody can poison it
//! The request to the origin has the target and the host of the key: [`CacheKey::forwarded_target`] and
//! [`CacheKey::authority`] are pieces of it. So two requests with one key ask the origin for the same address. Eyewall drops the
//! fields by which a client could name another address ([`NOT_FROM_CLIENTS`]), unless the key has them.
//!
//! A slash or a port's colon follows the host, so a prefix `http://host/` matches one host only.

mod cookies;
mod error;
mod host;
mod language;
mod normal;

use std::borrow::Cow;

use eyewall_page_cache::query::behind_address;
use globset::GlobSet;
use http::header::COOKIE;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use crate::config::Site;
use crate::config::names::Glob;
pub(crate) use cookies::{CookieNames, cookies};
pub(crate) use error::KeyError;
pub(crate) use host::RequestHost;
pub(crate) use language::Languages;
pub(crate) use normal::{decoded, normal_path, unescaped};

/// The longest key: the engine's limit of 65,535 bytes, less room for what tells the variants of a response apart.
pub(crate) const KEY_BYTES_MAX: usize = 0xffff - 1024;

/// Fields by which a client could make the origin answer for another host, path or method than the key has. All clients would
/// then get that response. A field that is part of the key passes ([`KeyRules::has_header`]).
pub(crate) const NOT_FROM_CLIENTS: [&str; 28] = [
    "forwarded",
    "front-end-https",
    // Programs that read it as CGI's HTTP_PROXY would send their own requests there.
    "proxy",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-path",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-protocol",
    "x-forwarded-scheme",
    "x-forwarded-server",
    "x-forwarded-ssl",
    "x-forwarded-uri",
    "x-host",
    "x-http-host-override",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
    "x-scheme",
    "x-script-name",
    "x-sendfile-type",
    "x-accel-mapping",
    "x-url-scheme",
];

/// Fields in which content delivery networks name the client's address. They pass only if a trusted proxy sent them.
pub(crate) const CLIENT_ADDRESSES: [&str; 6] =
    ["cf-connecting-ip", "client-ip", "fastly-client-ip", "true-client-ip", "x-client-ip", "x-cluster-client-ip"];

/// Characters that a further part keeps unescaped: they can't be mistaken for its end.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b',');

/// The scheme of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// Without TLS.
    Http,
    /// With TLS.
    Https,
}

impl Scheme {
    /// As in an address.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The default port, which keys leave out.
    pub(crate) fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The parts of a site's keys, ready to use.
#[derive(Debug, Clone)]
pub(crate) struct KeyRules {
    /// The name that replaces an alias.
    name: Option<String>,
    aliases: Vec<String>,
    stripped: GlobSet,
    sort_query: bool,
    ignored_cookies: CookieNames,
    cookies: Vec<String>,
    headers: Vec<HeaderName>,
    languages: Languages,
}

impl KeyRules {
    /// From the settings of a site.
    pub(crate) fn of(site: &Site) -> Self {
        let key = &site.key;
        Self {
            name: site.name().map(str::to_owned),
            aliases: site.aliases.iter().map(|alias| alias.get_ref().0.clone()).collect(),
            ignored_cookies: CookieNames::of(key.dropped_cookies()),
            stripped: Glob::set(key.stripped_parameters(), false),
            sort_query: key.sort_query,
            cookies: key.cookies.iter().map(|name| name.0.clone()).collect(),
            headers: key.headers.iter().map(|name| name.get_ref().0.clone()).collect(),
            languages: Languages::of(site.accept_language.iter().flat_map(toml::Spanned::get_ref)),
        }
    }

    /// The host in the keys, for the host of a request.
    pub(crate) fn host<'a>(&'a self, host: &'a str) -> &'a str {
        match &self.name {
            Some(name) if self.aliases.iter().any(|alias| alias == host) => name,
            _ => host,
        }
    }

    /// Whether a field of requests is part of the keys.
    pub(crate) fn has_header(&self, name: &HeaderName) -> bool {
        self.headers.contains(name)
    }

    /// The fields of requests that are part of the keys. One may come twice.
    pub(crate) fn looked_at(&self) -> impl Iterator<Item = &HeaderName> {
        self.headers.iter().chain((!self.cookies.is_empty()).then_some(&COOKIE))
    }

    /// The cookies that Eyewall drops from requests first.
    pub(crate) fn ignored_cookies(&self) -> &CookieNames {
        &self.ignored_cookies
    }

    /// The languages to one of which Eyewall reduces those that a client accepts.
    pub(crate) fn languages(&self) -> &Languages {
        &self.languages
    }

    /// Whether keys can have further parts: one address then has several keys.
    pub(crate) fn has_parts(&self) -> bool {
        !self.cookies.is_empty() || !self.headers.is_empty()
    }

    /// Appends the query, with its question mark, unless nothing is left of it.
    fn push_query(&self, key: &mut String, query: &str) {
        if self.stripped.is_empty() && !self.sort_query {
            key.push('?');
            key.push_str(query);
            return;
        }
        let mut kept: Vec<&str> = query.split('&').filter(|piece| !self.strips(piece)).collect();
        if kept.is_empty() {
            return;
        }
        if self.sort_query {
            // A stable sort, because the order of parameters with one name may matter.
            kept.sort_by_key(|piece| name_of(piece));
        }
        let mut before = '?';
        for piece in kept {
            key.push(before);
            key.push_str(piece);
            before = '&';
        }
    }

    /// Whether keys don't have this parameter. Compares by the name as the origin would read it.
    pub(crate) fn strips(&self, piece: &str) -> bool {
        !piece.is_empty() && self.stripped.is_match(&*decoded_parameter(name_of(piece)))
    }

    fn push_parts(&self, key: &mut String, fields: &HeaderMap) {
        for wanted in &self.cookies {
            for (_, value) in cookies(fields).filter(|(name, _)| *name == wanted.as_bytes()) {
                push_part(key, "cookie", wanted, value);
            }
        }
        for wanted in &self.headers {
            for value in fields.get_all(wanted) {
                push_part(key, "header", wanted.as_str(), value.as_bytes());
            }
        }
    }
}

/// Whether one of these patterns strips this parameter.
pub(crate) fn strips<'a>(patterns: impl IntoIterator<Item = &'a str>, piece: &str) -> bool {
    Glob::set(patterns, false).is_match(&*decoded_parameter(name_of(piece)))
}

fn push_part(key: &mut String, kind: &str, name: &str, value: &[u8]) {
    key.extend([" ", kind, ":", name, "="]);
    key.extend(percent_encode(value, PART));
}

fn name_of(piece: &str) -> &str {
    piece.split_once('=').map_or(piece, |(name, _)| name)
}

/// A name or a value of a query as forms write them: `+` is a blank, escapes are decoded.
pub(crate) fn decoded_parameter(text: &str) -> Cow<'_, str> {
    if text.contains('+') { Cow::Owned(decoded(&text.replace('+', " ")).into_owned()) } else { decoded(text) }
}

/// A key, and the request to the origin that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheKey {
    /// The key; the rest are offsets into it.
    text: String,
    authority_start: usize,
    path_start: usize,
    path_end: usize,
    target_end: usize,
}

impl CacheKey {
    /// The key of a request with this `scheme` for a host of the site that has these `rules`.
    ///
    /// # Errors
    /// [`KeyError`], each with the status to answer with.
    pub(crate) fn of(rules: &KeyRules, host: &RequestHost, scheme: Scheme, request: &Parts) -> Result<Self, KeyError> {
        if request.uri.scheme_str().is_some_and(|found| !found.eq_ignore_ascii_case(scheme.as_str())) {
            return Err(KeyError::Scheme);
        }
        let target = request.uri.path_and_query().ok_or(KeyError::NoPath)?;
        let mut text = String::with_capacity(128 + target.as_str().len());
        text.extend([scheme.as_str(), "://"]);
        let authority_start = text.len();
        text.push_str(rules.host(host.name()));
        if let Some(port) = host.port().filter(|port| *port != scheme.default_port()) {
            text.push(':');
            text.push_str(&port.to_string());
        }
        let path_start = text.len();
        normal::push_path(&mut text, target.path())?;
        let path_end = text.len();
        if let Some(query) = target.query() {
            rules.push_query(&mut text, query);
        }
        let target_end = text.len();
        rules.push_parts(&mut text, &request.headers);
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        Ok(Self { text, authority_start, path_start, path_end, target_end })
    }

    /// The key of an address of a site, without further parts. It takes path and query of `address`, and its scheme if it has
    /// one.
    ///
    /// # Errors
    /// As [`CacheKey::of`].
    pub(crate) fn of_address(
        rules: &KeyRules,
        host: &RequestHost,
        scheme: Scheme,
        address: Uri,
    ) -> Result<Self, KeyError> {
        let mut request = Request::new(());
        *request.uri_mut() = address;
        Self::of(rules, host, scheme, &request.into_parts().0)
    }

    /// The key of a response to a QUERY with content of this digest (RFC 10008, section 2.7). `generation` is that of
    /// the address's responses, and `digest` is in hexadecimal digits.
    ///
    /// # Errors
    /// [`KeyError::TooLong`].
    pub(crate) fn of_query(&self, generation: u64, digest: &str) -> Result<Self, KeyError> {
        let text = [self.address(), &behind_address(generation, digest), &self.text[self.target_end..]].concat();
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        Ok(Self { text, ..*self })
    }

    /// The key of the copy that is shown in place of errors. A client's request for the page has another key, so it never gets this copy,
    /// whose times are Eyewall's own.
    ///
    /// # Errors
    /// [`KeyError::TooLong`].
    pub(crate) fn of_error_page(&self) -> Result<Self, KeyError> {
        let text = [self.address(), " error-page", &self.text[self.target_end..]].concat();
        if text.len() > KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        Ok(Self { text, ..*self })
    }

    /// The key, as the engine takes it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }

    /// The key as text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The scheme of the client's request.
    pub(crate) fn scheme(&self) -> Scheme {
        if self.text.starts_with("https:") { Scheme::Https } else { Scheme::Http }
    }

    /// The key without its further parts: scheme, host, port, path and query.
    pub(crate) fn address(&self) -> &str {
        &self.text[..self.target_end]
    }

    /// The host, and the port if it isn't the default: the `Host` for an origin that gets the client's.
    pub(crate) fn authority(&self) -> &str {
        &self.text[self.authority_start..self.path_start]
    }

    /// Path and query, as the origin gets them.
    pub(crate) fn forwarded_target(&self) -> &str {
        &self.text[self.path_start..self.target_end]
    }

    /// The path, in its normal form, escapes included.
    pub(crate) fn path(&self) -> &str {
        &self.text[self.path_start..self.path_end]
    }

    /// The query without its question mark; empty if there is none.
    pub(crate) fn query(&self) -> Option<&str> {
        self.text[self.path_end..self.target_end].strip_prefix('?')
    }

    /// Scheme, host and port with a slash. All keys of this host begin with it, and no other key does.
    pub(crate) fn host_prefix(&self) -> &str {
        &self.text[..=self.path_start]
    }
}

#[cfg(test)]
mod tests;
