//! The served objects: random bytes that depend only on their length, and their fields.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::{AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED, VIA};

/// The source of all objects.
const SEED: u64 = 20_261_121;
/// The largest object, 64 MiB.
const BYTES_MAX: usize = 64 << 20;

/// The content of a path of the form /KIND/BYTES/NAME.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked<'a> {
    pub(crate) kind: &'a str,
    pub(crate) bytes: usize,
}

impl<'a> Asked<'a> {
    /// `None` if a path has another form, or asks for more than 64 MiB.
    pub(crate) fn by(path: &'a str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let (kind, bytes, _name) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        (parts.next().is_none() && bytes <= BYTES_MAX).then_some(Self { kind, bytes })
    }
}

/// An object and its fields.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

/// Objects by length, made on their first request.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    made: Mutex<HashMap<usize, Object>>,
    are_hits: bool,
}

impl Objects {
    /// With an origin's fields.
    pub(crate) fn of_origin() -> Self {
        Self::default()
    }

    /// With the fields of a hit of `eyewall serve`.
    pub(crate) fn of_cache() -> Self {
        Self { are_hits: true, ..Self::default() }
    }

    pub(crate) fn get(&self, bytes: usize) -> Object {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || Object { fields: fields(bytes, self.are_hits), body: body(bytes) };
        made.entry(bytes).or_insert_with(make).clone()
    }
}

/// All fields, except Date and Content-Length, which hyper adds.
fn fields(bytes: usize, is_hit: bool) -> HeaderMap {
    let always = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("max-age=3600")),
        (LAST_MODIFIED, HeaderValue::from_static("Sat, 21 Nov 2026 00:00:00 GMT")),
    ];
    let of_hits = [
        (AGE, HeaderValue::from_static("0")),
        (VIA, HeaderValue::from_static("1.1 eyewall")),
        (HeaderName::from_static("cache-status"), HeaderValue::from_static("Eyewall; hit; ttl=3600")),
    ];
    let mut fields: HeaderMap = always.into_iter().chain(of_hits.into_iter().filter(|_| is_hit)).collect();
    if let Ok(tag) = HeaderValue::try_from(format!("\"{bytes}\"")) {
        fields.insert(ETAG, tag);
    }
    fields
}

/// Bytes that don't compress (`SplitMix64`).
fn body(bytes: usize) -> Bytes {
    let mut state = SEED.wrapping_add(bytes as u64);
    let words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.flatten().take(bytes).collect::<Vec<u8>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_kind_and_a_number_of_bytes() {
        assert_eq!(Asked::by("/page/9689/a-name"), Some(Asked { kind: "page", bytes: 9689 }));
        assert_eq!(Asked::by("/page/67108864/x"), Some(Asked { kind: "page", bytes: 64 << 20 }));
    }

    #[test]
    fn other_paths_name_nothing() {
        for path in ["", "/", "/page", "/page/12", "/page/-1/x", "/page/1/x/y", "/page/67108865/x", "page/1/x"] {
            assert_eq!(Asked::by(path), None, "{path}");
        }
    }

    #[test]
    fn an_object_has_the_bytes_of_its_number_and_of_no_other() {
        let objects = Objects::of_origin();
        let body = objects.get(9689).body;
        assert_eq!(body.len(), 9689);
        assert_eq!(body, Objects::of_cache().get(9689).body);
        assert_ne!(body[..1024], objects.get(1024).body[..]);
    }
}
