//! The fields of a request as the origin gets them, and `Via`.

use eyewall_http::field::connection;
use http::header::{CONTENT_LENGTH, EXPECT, HOST};
use http::{HeaderMap, Version};

/// The fields of a client's request as the origin gets them, without those that are `dropped`.
pub(crate) fn of_forwarded_request(
    fields: &HeaderMap,
    version: Version,
    dropped: impl IntoIterator<Item = &'static str>,
) -> HeaderMap {
    let mut fields = fields.clone();
    connection::drop_hop_by_hop(&mut fields);
    for name in [HOST, EXPECT, CONTENT_LENGTH] {
        fields.remove(name);
    }
    for name in dropped {
        fields.remove(name);
    }
    append_via(&mut fields, version);
    fields
}

/// Says that the message came through here, and by which version it was received.
pub(crate) fn append_via(fields: &mut HeaderMap, received: Version) {
    connection::append_via(fields, received, "eyewall");
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::key::NOT_FROM_CLIENTS;

    #[test]
    fn a_client_can_not_speak_for_another_host() {
        let fields = HeaderMap::from_iter([
            (HOST, HeaderValue::from_static("example.org")),
            (HeaderName::from_static("x-forwarded-host"), HeaderValue::from_static("evil.example")),
        ]);
        let fields = of_forwarded_request(&fields, Version::HTTP_11, NOT_FROM_CLIENTS);
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["via"]);
    }
}
