//! Fields that belong to one connection and are not passed on (RFC 9110, section 7.6.1), and `Via`.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue, Version};

use crate::key::NOT_FROM_CLIENTS;

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

/// Drops what belongs to the connection on which the message came, whatever its `Connection` field names included.
pub(crate) fn drop_hop_by_hop(fields: &mut HeaderMap) {
    // A length beside a transfer coding is not to be believed.
    if fields.contains_key(TRANSFER_ENCODING) {
        fields.remove(CONTENT_LENGTH);
    }
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        fields.remove(name);
    }
}

/// The fields of a client's request as the origin gets them.
pub(crate) fn of_forwarded_request(fields: &HeaderMap, version: Version) -> HeaderMap {
    let mut fields = fields.clone();
    drop_hop_by_hop(&mut fields);
    for name in [HOST, EXPECT, CONTENT_LENGTH] {
        fields.remove(name);
    }
    for name in NOT_FROM_CLIENTS {
        fields.remove(name);
    }
    append_via(&mut fields, version);
    fields
}

/// Says that the message came through here, and by which version it was received.
pub(crate) fn append_via(fields: &mut HeaderMap, received: Version) {
    let via = if received == Version::HTTP_10 { "1.0 eyewall" } else { "1.1 eyewall" };
    fields.append(VIA, HeaderValue::from_static(via));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_connection_field_names_is_dropped_with_it() {
        let mut fields = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("etag", "\"a\""),
        ] {
            fields.insert(name, HeaderValue::from_static(value));
        }
        drop_hop_by_hop(&mut fields);
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["etag"]);
    }

    #[test]
    fn a_client_can_not_speak_for_another_host() {
        let fields = HeaderMap::from_iter([
            (HOST, HeaderValue::from_static("example.org")),
            (HeaderName::from_static("x-forwarded-host"), HeaderValue::from_static("evil.example")),
        ]);
        let fields = of_forwarded_request(&fields, Version::HTTP_11);
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["via"]);
    }
}
