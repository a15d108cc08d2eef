//! The cookies of requests (RFC 6265, section 5.4).

use globset::{Candidate, GlobSet};
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use crate::config::names::Glob;

/// Patterns for the names of cookies.
#[derive(Debug, Clone)]
pub(crate) struct CookieNames(GlobSet);

impl CookieNames {
    pub(crate) fn of<'a>(globs: impl IntoIterator<Item = &'a str>) -> Self {
        Self(Glob::set(globs, false))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, name: &[u8]) -> bool {
        self.0.is_match_candidate(&Candidate::from_bytes(name))
    }

    /// Drops the cookies of these names from the first `Cookie` field, and the field if no cookie is left.
    pub(crate) fn drop_from(&self, fields: &mut HeaderMap) {
        let Some(kept) = fields.get(COOKIE).and_then(|cookies| self.without(cookies.as_bytes())) else { return };
        fields.remove(COOKIE);
        // Never refused: these are bytes of a valid field.
        if let Ok(kept) = HeaderValue::from_bytes(&kept)
            && !kept.is_empty()
        {
            fields.insert(COOKIE, kept);
        }
    }

    /// A `Cookie` field without these cookies, byte for byte; empty if no cookie is left, `None` if it has none of them. A part
    /// without `=` has no name, and stays.
    fn without(&self, field: &[u8]) -> Option<Vec<u8>> {
        if self.is_empty() {
            return None;
        }
        let is_named = |pair: &&[u8]| {
            let end = pair.iter().position(|byte| *byte == b'=');
            end.is_some_and(|end| self.contains(pair[..end].trim_ascii()))
        };
        let pairs = || field.split(|byte| *byte == b';');
        if !pairs().any(|pair| is_named(&pair)) {
            return None;
        }
        let kept: Vec<&[u8]> = pairs().filter(|pair| !is_named(pair)).collect();
        if kept.iter().all(|pair| pair.trim_ascii().is_empty()) {
            return Some(Vec::new());
        }
        Some(kept.join(&b';').trim_ascii_start().to_vec())
    }
}

/// The cookies of a request, by name and value, with any bytes: a client must not evade a rule or a key by odd cookies. A
/// part without `=` is a name.
pub(crate) fn cookies(fields: &HeaderMap) -> impl Iterator<Item = (&[u8], &[u8])> {
    fields.get_all(COOKIE).iter().flat_map(|value| value.as_bytes().split(|byte| *byte == b';')).map(|pair| {
        let end = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        (pair[..end].trim_ascii(), pair.get(end + 1..).unwrap_or_default().trim_ascii())
    })
}
