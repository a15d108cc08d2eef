//! Refuses responses whose head is ambiguous about the end of the body.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Extensions, HeaderMap, StatusCode};

/// The transfer codings beside `chunked` (RFC 9112, section 7.2). An unknown name codes nothing: such a body is taken unchanged,
/// up to the connection's end.
const CODINGS: [&str; 5] = ["compress", "deflate", "gzip", "x-compress", "x-gzip"];

/// The transfer codings of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codings {
    None,
    /// Only `chunked`.
    Chunked,
    /// A single unknown name.
    NoCoding,
    /// One of [`CODINGS`], or several.
    Others,
}

impl Codings {
    pub(crate) fn of(fields: &HeaderMap) -> Self {
        let mut lines = fields.get_all(TRANSFER_ENCODING).iter();
        let Some(first) = lines.next().map(|line| line.as_bytes().trim_ascii()) else { return Self::None };
        let is = |name: &str| first.eq_ignore_ascii_case(name.as_bytes());
        if lines.next().is_some() || first.contains(&b',') || CODINGS.iter().any(|name| is(name)) {
            Self::Others
        } else if is("chunked") {
            Self::Chunked
        } else {
            Self::NoCoding
        }
    }
}

/// The reason to refuse a response, if there is one. hyper refuses differing lengths, and codings without an end. This function
/// refuses both fields at once, which may be an attack (RFC 9112, section 6.3), transfer codings that Eyewall can't decode, and
/// a change of protocol without a request for it.
pub(super) fn contradiction(status: StatusCode, fields: &HeaderMap) -> Option<&'static str> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Some("101 without a request for it");
    }
    match Codings::of(fields) {
        Codings::None => None,
        _ if fields.contains_key(CONTENT_LENGTH) => Some("both Transfer-Encoding and Content-Length"),
        Codings::Others => Some("a transfer coding other than chunked"),
        Codings::Chunked | Codings::NoCoding => None,
    }
}

/// An extension of a response: it has an unknown transfer coding.
#[derive(Debug, Clone, Copy)]
struct Coded;

/// Notes whether a response of an origin has an unknown transfer coding, before the field is removed.
pub(crate) fn note_coding(fields: &HeaderMap, extensions: &mut Extensions) {
    if !matches!(Codings::of(fields), Codings::None | Codings::Chunked) {
        extensions.insert(Coded);
    }
}

/// Whether it has one. Such a response is passed on, and never stored (RFC 9112, section 6.1).
pub(crate) fn is_coded(extensions: &Extensions) -> bool {
    extensions.get::<Coded>().is_some()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn a_body_has_one_end() {
        for (fields, is_sound) in [
            (&[][..], true),
            (&[(CONTENT_LENGTH, "5")], true),
            (&[(TRANSFER_ENCODING, "Chunked")], true),
            (&[(TRANSFER_ENCODING, "chunked"), (CONTENT_LENGTH, "5")], false),
            (&[(TRANSFER_ENCODING, "gzip, chunked")], false),
            (&[(TRANSFER_ENCODING, "gzip"), (TRANSFER_ENCODING, "chunked")], false),
            (&[(TRANSFER_ENCODING, "chunked"), (TRANSFER_ENCODING, "chunked")], false),
            (&[(TRANSFER_ENCODING, "gzip")], false),
            (&[(TRANSFER_ENCODING, "identity")], true),
            (&[(TRANSFER_ENCODING, "no-coding")], true),
        ] {
            let mut map = HeaderMap::new();
            for (name, value) in fields {
                map.append::<HeaderName>(name.clone(), HeaderValue::from_static(value));
            }
            assert_eq!(contradiction(StatusCode::OK, &map).is_none(), is_sound, "{fields:?}");
        }
        assert!(contradiction(StatusCode::SWITCHING_PROTOCOLS, &HeaderMap::new()).is_some());
    }
}
