//! `Cache-Status` (RFC 9211): what a cache did with a request.
//!
//! ```text
//! Eyewall; hit; ttl=27
//! Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=30; collapsed
//! Eyewall; fwd=bypass; fwd-status=200; detail=authorization
//! ```

use std::fmt::Write;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sfv::{ItemSerializer, StringRef, TokenRef};

/// The field's name.
pub const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Room for a usual member.
const MEMBER_BYTES: usize = 96;
/// The largest number of a structured field.
const INTEGER_MAX: i64 = 999_999_999_999_999;

/// Why a request was forwarded towards the origin: the parameter `fwd` (section 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// The cache's configuration excludes it.
    Bypass,
    /// The method must be forwarded.
    Method,
    /// Nothing was stored for the URI.
    UriMiss,
    /// Only other variants were stored for the URI.
    VaryMiss,
    /// No matching response was stored, for an unknown reason.
    Miss,
    /// A fresh response was stored, but the request's directives forbid using it.
    Request,
    /// The stored response is stale.
    Stale,
    /// The stored response lacks requested bytes.
    Partial,
}

impl Forward {
    /// The token of the field.
    pub fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// One cache's member of the field. Begin with [`hit`](Self::hit) or [`forwarded`](Self::forwarded), and add what
/// is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStatus {
    forward: Option<Forward>,
    forward_status: Option<StatusCode>,
    is_stored: bool,
    is_collapsed: bool,
    ttl_seconds: Option<i64>,
    key: Option<String>,
    detail: Option<String>,
}

impl CacheStatus {
    /// The cache answered the request.
    pub fn hit() -> Self {
        Self::new(None)
    }

    /// The cache forwarded the request, for this reason.
    pub fn forwarded(why: Forward) -> Self {
        Self::new(Some(why))
    }

    fn new(forward: Option<Forward>) -> Self {
        let (forward_status, ttl_seconds, key, detail) = (None, None, None, None);
        Self { forward, forward_status, is_stored: false, is_collapsed: false, ttl_seconds, key, detail }
    }

    /// The status of the response to the forwarded request. No effect on a hit; nor have the next two.
    pub fn forward_status(self, status: StatusCode) -> Self {
        Self { forward_status: Some(status), ..self }
    }

    /// Whether the response to the forwarded request is stored.
    pub fn stored(self, is_stored: bool) -> Self {
        Self { is_stored, ..self }
    }

    /// Whether other requests share the forwarded request.
    pub fn collapsed(self, is_collapsed: bool) -> Self {
        Self { is_collapsed, ..self }
    }

    /// The remaining lifetime in seconds; negative if the response is stale.
    pub fn ttl(self, seconds: i64) -> Self {
        Self { ttl_seconds: Some(seconds.clamp(-INTEGER_MAX, INTEGER_MAX)), ..self }
    }

    /// The key of the response in the cache. Bytes that a structured string can't contain are written as
    /// `%XX`.
    pub fn key(self, key: &[u8]) -> Self {
        Self { key: Some(printable(key)), ..self }
    }

    /// A text for people. Characters that a structured string can't contain are written as `%XX`.
    pub fn detail(self, detail: &str) -> Self {
        Self { detail: Some(printable(detail.as_bytes())), ..self }
    }

    /// The member of the field, with the name of this cache.
    pub fn member(&self, cache: &str) -> String {
        let mut text = String::with_capacity(MEMBER_BYTES);
        write_text(&mut text, &printable(cache.as_bytes()));
        if let Some(why) = self.forward {
            text.push_str("; fwd=");
            text.push_str(why.token());
            if let Some(status) = self.forward_status {
                text.push_str("; fwd-status=");
                text.push_str(status.as_str());
            }
            if self.is_stored {
                text.push_str("; stored");
            }
        } else {
            text.push_str("; hit");
        }
        if let Some(ttl) = self.ttl_seconds {
            let _ = write!(text, "; ttl={ttl}");
        }
        if self.forward.is_some() && self.is_collapsed {
            text.push_str("; collapsed");
        }
        for (name, value) in [("key", &self.key), ("detail", &self.detail)] {
            let Some(value) = value else { continue };
            text.push_str("; ");
            text.push_str(name);
            text.push('=');
            if name == "key" { write_string(&mut text, value) } else { write_text(&mut text, value) }
        }
        text
    }

    /// Appends the member after those of caches nearer to the origin.
    pub fn append_to(&self, fields: &mut HeaderMap, cache: &str) {
        // Printable ASCII throughout: always a valid value.
        if let Ok(value) = HeaderValue::try_from(self.member(cache)) {
            fields.append(CACHE_STATUS, value);
        }
    }
}

fn printable(text: &[u8]) -> String {
    let mut printable = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b' '..=b'~' => printable.push(char::from(byte)),
            _ => {
                // Writing to a string can't fail.
                let _ = write!(printable, "%{byte:02X}");
            }
        }
    }
    printable
}

/// As a token if possible, else as a string.
fn write_text(to: &mut String, value: &str) {
    match TokenRef::from_str(value) {
        Ok(token) => {
            ItemSerializer::with_buffer(to).bare_item(token);
        }
        Err(_) => write_string(to, value),
    }
}

fn write_string(to: &mut String, value: &str) {
    if let Ok(string) = StringRef::from_str(value) {
        ItemSerializer::with_buffer(to).bare_item(string);
    }
}
