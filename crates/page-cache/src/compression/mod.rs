//! Compressed forms of stored responses: `br`, `zstd` and `gzip` (RFC 9110, sections 8.4 and 12.5.3).
//!
//! The cache stores a response as the upstream sends it. This is the *identity* of the page. If the front door allows it, the cache
//! also makes compressed forms of the identity, in the background, and sends them to clients that prefer them.
//!
//! ```text
//! ADDRESS [variant]             the identity: value, fields, terms; its head has the version of the body, and the codings
//! ADDRESS [variant] in br       a form: compressed bytes; its head has the version of the identity, and nothing else
//!
//! hit ──> identity ──> has it codings? ── no ──> identity
//!                          │ yes
//!                          v
//!            the client's codings, the most wanted first ──> is there a form of this version? ──> the form
//!                          │ none                                │ no
//!                          v                                     v
//!                       identity                    one job for the worker; the identity, or another form
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`form`] | the key of a form, how it is found, and the fields that it is sent with |
//! | [`entity_tag`] | the entity tags of forms, in responses and in conditions of clients |
//! | [`media_type`] | patterns of media types |
//! | `encode` | the encoders |
//! | `worker` | the queue of jobs, and the one thread that does them |
//!
//! # Invariants
//! - **The identity decides.** A form is sent only after its identity was found and may be sent. A form has no terms and no fields:
//!   both are those of the identity at that moment. So a purge of any kind, an expiry or a renewal of the identity covers its forms
//!   at once.
//! - **A form belongs to one body.** The version is a random number that is made when a body is stored. A renewal keeps the value of
//!   the entry, and so its version. A new body has a new version, and no form of an older one is sent with it.
//! - **The worker never writes the identity.** So it can't undo a renewal or a purge that comes at the same time. A form that it
//!   stores after its identity is gone is never found; the volume evicts it, or the next form takes its key.
//! - **A form is at most nine tenths as long as its identity.** Otherwise the entry of the form has no value, and this is remembered
//!   for as long as the form would be.
//! - **Vary.** A response that may be compressed has `Vary: Accept-Encoding` from the beginning, before there is any form. The cache
//!   itself doesn't select by it: it adds the field after it has judged the response.
//!
//! # When a form is made
//! The first request for a page stores it. The second one is a hit that finds no form, and asks for the one that its client wants
//! most. So no form is made for a page that is requested once, and none that no client prefers. A bounded table remembers for some
//! seconds what was asked for. If the queue is full, the job is dropped, and a later hit asks again.
//!
//! One thread of the process does the jobs of all volumes, at the lowest priority, and ends when there are none. It claims the key of
//! the form in the volume first, and looks again. So all processes on a volume make a form once. If a process dies with the claim,
//! or the volume has no place for one, another hit asks again later.
//!
//! # Entity tags
//! A strong tag `"x"` of the identity becomes `"x--br"` for its form, because representations with the same strong tag have the same
//! bytes (RFC 9110, section 8.8.3.3). A weak tag stays: it says nothing about bytes. A weak tag for all forms would be simpler, but
//! then no client could ever change a page under the condition that it is as the client knows it (`If-Match`), and downstream caches
//! would mix up the forms. A client's conditions name the tags of forms, which the upstream doesn't know. So a request that carries
//! them there names the tag of the identity, too.
//!
//! A client has a form only if it accepts the coding (section 13.1.2: its condition is for the representation that it would get). A cache
//! that lists the tags of all its forms would send one of them to a client that can't decode it. A date in `If-Range` stands for the
//! identity and all forms alike, so the range is dropped, and the client gets a whole response.
//!
//! # Responses that stay as they are
//! Responses other than 200; those with a content coding, a range, trailers, a digest (`Digest`, `Repr-Digest`, `Content-Digest`,
//! `Content-MD5`) or `no-transform`; large ones that are stored in fragments; other media types and lengths than the settings allow.
//! Requests for ranges, and those with `no-transform`, get the identity.

pub mod entity_tag;
pub mod form;
pub mod media_type;

mod encode;
mod worker;

use eyewall_http::coding::Codings;
use eyewall_http::field::cache_control::ResponseDirectives;
use eyewall_http::field::vary::Vary;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_RANGE, CONTENT_TYPE, TRAILER, VARY};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::layout::FRAGMENT_BYTES_MAX;
use media_type::TypePattern;

/// Shorter responses fit into one or two packets without compression.
const BYTES_MIN: u64 = 512;

/// Fields with a digest of the bytes. A form would need one of its own.
const DIGESTS: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];

/// Media types that are worth compressing.
const TYPES: [&str; 15] = [
    "text/*",
    "*+json",
    "*+xml",
    "application/javascript",
    "application/json",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/xml",
    "font/collection",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// Which stored responses are compressed, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compression {
    /// The codings of forms. Default: all.
    pub codings: Codings,
    /// The media types of responses that are compressed. Default: texts, scripts, JSON, XML, WebAssembly, and fonts and images that
    /// aren't compressed themselves.
    pub types: Vec<TypePattern>,
    /// The least length of a response that is compressed. Default: 512 bytes.
    pub bytes_min: u64,
    /// The greatest length. Longer responses are stored in fragments. Default, and at most: 1 MiB.
    pub bytes_max: u64,
}

impl Default for Compression {
    fn default() -> Self {
        let types = TYPES.iter().filter_map(|pattern| pattern.parse().ok()).collect();
        Self { codings: Codings::ALL, types, bytes_min: BYTES_MIN, bytes_max: FRAGMENT_BYTES_MAX }
    }
}

impl Compression {
    /// The codings among `allowed` of the forms that a response may have. `length`: that of the body, if it is known.
    pub fn codings_of(&self, allowed: Codings, status: StatusCode, fields: &HeaderMap, length: Option<u64>) -> Codings {
        let codings = self.codings.and(allowed);
        let is_suited = !codings.is_empty()
            && status == StatusCode::OK
            && length.is_none_or(|length| self.takes_length(length))
            && ![CONTENT_ENCODING, CONTENT_RANGE, TRAILER].iter().any(|name| fields.contains_key(name))
            && !DIGESTS.iter().any(|name| fields.contains_key(*name))
            && self.takes_type(fields)
            && !ResponseDirectives::of(fields).no_transform;
        if is_suited { codings } else { Codings::NONE }
    }

    /// Whether a response of this length is compressed.
    pub fn takes_length(&self, length: u64) -> bool {
        (self.bytes_min.max(1)..=self.bytes_max.min(FRAGMENT_BYTES_MAX)).contains(&length)
    }

    fn takes_type(&self, fields: &HeaderMap) -> bool {
        let mut lines = fields.get_all(CONTENT_TYPE).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return false };
        let Ok(line) = line.to_str() else { return false };
        let media_type = line.split(';').next().unwrap_or_default().trim();
        self.types.iter().any(|pattern| pattern.matches(media_type))
    }
}

/// Adds `Accept-Encoding` to the `Vary` of a response that may be compressed.
pub(crate) fn vary(fields: &mut HeaderMap) {
    let is_there = match Vary::of(fields) {
        Vary::Everything => true,
        Vary::Fields(names) => names.contains(&ACCEPT_ENCODING),
        Vary::Nothing => false,
    };
    if !is_there {
        fields.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use http::header::CACHE_CONTROL;

    use super::*;

    fn page(more: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut fields = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"))]);
        for (name, value) in more {
            fields.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        fields
    }

    fn codings(fields: &HeaderMap, length: Option<u64>) -> Codings {
        Compression::default().codings_of(Codings::ALL, StatusCode::OK, fields, length)
    }

    #[test]
    fn a_text_of_the_right_length_may_be_compressed() {
        for length in [None, Some(512), Some(1 << 20)] {
            assert_eq!(codings(&page(&[]), length), Codings::ALL, "{length:?}");
        }
        for length in [0, 511, (1 << 20) + 1] {
            assert_eq!(codings(&page(&[]), Some(length)), Codings::NONE, "{length}");
        }
        let gzip = Codings::from_iter([eyewall_http::coding::Coding::Gzip]);
        let compression = Compression { codings: gzip, ..Compression::default() };
        assert_eq!(compression.codings_of(Codings::ALL, StatusCode::OK, &page(&[]), None), gzip);
        assert_eq!(compression.codings_of(Codings::NONE, StatusCode::OK, &page(&[]), None), Codings::NONE);
    }

    #[test]
    fn types_digests_codings_and_directives_exclude_a_response() {
        for (name, value) in [
            ("content-type", "image/png"),
            ("content-encoding", "gzip"),
            ("content-digest", "sha-256=:x:"),
            ("content-md5", "x"),
            ("repr-digest", "sha-256=:x:"),
            ("digest", "x"),
            ("content-range", "bytes 0-1/2"),
            ("trailer", "digest"),
            ("cache-control", "max-age=1, no-transform"),
        ] {
            assert_eq!(codings(&page(&[(name, value)]), None), Codings::NONE, "{name}");
        }
        assert_eq!(codings(&HeaderMap::new(), None), Codings::NONE);
        assert_eq!(codings(&page(&[("content-type", "application/problem+json")]), None), Codings::ALL);
        let found = Compression::default().codings_of(Codings::ALL, StatusCode::NOT_FOUND, &page(&[]), None);
        assert_eq!(found, Codings::NONE);
        assert_eq!(
            codings(&HeaderMap::from_iter([(CACHE_CONTROL, HeaderValue::from_static("max-age=1"))]), None),
            Codings::NONE
        );
    }

    #[test]
    fn vary_names_the_field_once() {
        for (told, expected) in [
            (None, "Accept-Encoding"),
            (Some("accept-encoding"), "accept-encoding"),
            (Some("Cookie"), "Cookie; Accept-Encoding"),
            (Some("*"), "*"),
        ] {
            let mut fields = HeaderMap::new();
            fields.extend(told.map(|told| (VARY, HeaderValue::from_static(told))));
            vary(&mut fields);
            let lines: Vec<_> = fields.get_all(VARY).iter().filter_map(|line| line.to_str().ok()).collect();
            assert_eq!(lines.join("; "), expected);
        }
    }
}
