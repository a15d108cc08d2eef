//! The `Cache-Status` field (RFC 9211): what this cache did with a request.
//!
//! ```text
//! Eyewall; hit; ttl=27                             answered from the volume
//! Eyewall; fwd=miss; fwd-status=200; stored; ttl=30     fetched; the volume takes it
//! Eyewall; fwd=miss; fwd-status=200; detail=no-store    fetched; why it is not stored
//! Eyewall; fwd=bypass; fwd-status=200; detail=authorization   the cache was not asked
//! ```
//! `fwd=miss` and not `uri-miss` or `stale`, since an expired entry looks like none. `stored` says that the value is
//! being stored; it stands before the body, when the last word is not spoken.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

pub(crate) const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Why a request went past the cache, and with what result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Handled {
    /// Answered from the volume, which would do so for this long.
    Hit(Option<Duration>),
    /// Fetched, and being stored for this long.
    Stored(Option<StatusCode>, Option<Duration>),
    /// Fetched, and not stored, with the reason.
    Passed(Option<StatusCode>, &'static str),
    /// The cache was not asked, with the reason.
    Bypassed(Option<StatusCode>, &'static str),
}

impl Handled {
    fn text(self) -> String {
        let status = |status: Option<StatusCode>| {
            status.map_or_else(String::new, |status| format!("; fwd-status={}", status.as_u16()))
        };
        let ttl = |ttl: Option<Duration>| ttl.map_or_else(String::new, |ttl| format!("; ttl={}", ttl.as_secs()));
        match self {
            Self::Hit(left) => format!("Eyewall; hit{}", ttl(left)),
            Self::Stored(code, left) => format!("Eyewall; fwd=miss{}; stored{}", status(code), ttl(left)),
            Self::Passed(code, why) => format!("Eyewall; fwd=miss{}; detail={why}", status(code)),
            Self::Bypassed(code, why) => format!("Eyewall; fwd=bypass{}; detail={why}", status(code)),
        }
    }

    /// Appends to what caches nearer to the origin said.
    pub(crate) fn append_to(self, fields: &mut HeaderMap) {
        // Made of digits and tokens: always a valid value.
        if let Ok(value) = HeaderValue::from_str(&self.text()) {
            fields.append(CACHE_STATUS, value);
        }
    }
}
