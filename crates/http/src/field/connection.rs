//! Fields of one connection, which are neither forwarded nor stored (RFC 9110, section 7.6.1; RFC 9111, section 3.1), and the
//! routing fields `Via` and `Max-Forwards`.

use http::header::{
    AGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_RANGE,
    CONTENT_TYPE, COOKIE, DATE, ETAG, EXPIRES, FORWARDED, HOST, LAST_MODIFIED, LOCATION, MAX_FORWARDS, PRAGMA,
    PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, RANGE, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};

use super::list;

/// Fields that always belong to one connection, whatever `Connection` says, and those of a proxy.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authentication-info"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields for the final recipient, which `Connection` must not name. A sender that names one is wrong, or tries
/// to remove a field that distinguishes responses, frames them, or keeps them out of a shared cache.
const FOR_ALL: [HeaderName; 24] = [
    AGE,
    AUTHORIZATION,
    CACHE_CONTROL,
    HeaderName::from_static("cdn-cache-control"),
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_LOCATION,
    CONTENT_RANGE,
    CONTENT_TYPE,
    COOKIE,
    DATE,
    ETAG,
    EXPIRES,
    FORWARDED,
    HOST,
    LAST_MODIFIED,
    LOCATION,
    PRAGMA,
    RANGE,
    SET_COOKIE,
    VARY,
    VIA,
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// The names of the connection's fields: the known ones that are present, and those that `Connection` names, present or not,
/// except fields for the final recipient, such as `Host` or `Cache-Control`.
pub fn hop_by_hop(fields: &HeaderMap) -> Vec<HeaderName> {
    // Most messages have none. To look at each of their few names costs less than to look up each known one.
    fields.keys().filter(|name| is_hop_by_hop(name)).cloned().chain(named(fields)).collect()
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    name.as_str().starts_with(['c', 'k', 'p', 't', 'u']) && HOP_BY_HOP.contains(name)
}

/// The names in `Connection`, except those of fields for the final recipient.
pub fn named(fields: &HeaderMap) -> impl Iterator<Item = HeaderName> + '_ {
    let names = list::members(fields, &CONNECTION).filter_map(|name| HeaderName::from_bytes(name).ok());
    names.filter(|name| !FOR_ALL.contains(name))
}

/// Removes the fields of the connection on which a message arrived. A `Content-Length` beside a
/// `Transfer-Encoding` is removed, too, since it can't be trusted.
pub fn drop_hop_by_hop(fields: &mut HeaderMap) {
    if fields.contains_key(TRANSFER_ENCODING) {
        fields.remove(CONTENT_LENGTH);
    }
    for name in hop_by_hop(fields) {
        fields.remove(name);
    }
}

/// Records that `by`, a name without blanks, received a message in this version (RFC 9110, section 7.6.3).
pub fn append_via(fields: &mut HeaderMap, received: Version, by: &str) {
    let version = match received {
        Version::HTTP_09 => "0.9",
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2.0",
        Version::HTTP_3 => "3.0",
        _ => "1.1",
    };
    if let Ok(value) = HeaderValue::try_from([version, " ", by].concat()) {
        fields.append(VIA, value);
    }
}

/// Where a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the next server.
    On,
    /// No further: this server is its recipient.
    EndsHere,
}

/// Decrements the `Max-Forwards` of a TRACE or OPTIONS, or reports that it is 0 (RFC 9110, section 7.6.2).
///
/// Other methods, and a malformed or repeated field, are forwarded unchanged.
pub fn step(method: &Method, fields: &mut HeaderMap) -> Way {
    if !matches!(*method, Method::TRACE | Method::OPTIONS) {
        return Way::On;
    }
    let mut lines = fields.get_all(MAX_FORWARDS).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return Way::On };
    let digits = line.as_bytes().trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Way::On;
    }
    // No one needs a number beyond 64 bits: treat it as the largest.
    let left = super::range::number(digits).unwrap_or(u64::MAX);
    match left.checked_sub(1) {
        Some(left) => {
            fields.insert(MAX_FORWARDS, HeaderValue::from(left));
            Way::On
        }
        None => Way::EndsHere,
    }
}
