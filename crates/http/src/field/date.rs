//! Dates (RFC 9110, section 5.6.7).

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};

/// The date that a field of one value holds, in any of the three forms. None if it is absent or is no date.
///
/// Of several lines the first counts.
pub fn of(fields: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    parse(fields.get(name)?)
}

/// A date in one of the three forms: `IMF-fixdate`, `rfc850-date`, `asctime-date`.
pub fn parse(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?.trim()).ok()
}
