//! The head of a stored response, as it lies in the entry's metadata.
//!
//! ```text
//! byte 0   version, 1        another one: not ours to read, so a miss
//! byte 1   kind              0 a response, 1 a signpost
//! 2..4     status            little-endian, as all numbers here
//! kind 0:  the terms of its reuse (`eyewall_http::terms`), two bytes of length, trailer fields
//! then the fields (`eyewall_http::stored_fields`)
//! ```

use eyewall_http::stored_fields;
use eyewall_http::terms::{TERMS_BYTES, Terms};
use http::{HeaderMap, StatusCode};

const VERSION: u8 = 1;

/// A stored response without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The value is the content of a response, which may be used again on these terms, and is followed by these trailer fields.
    Response(Terms, HeaderMap),
    /// The value names the responses of which one is chosen by fields of the request (`eyewall_http::signpost`).
    Signpost,
}

impl Head {
    pub(crate) fn of_signpost() -> Self {
        Self { kind: Kind::Signpost, status: StatusCode::OK, fields: HeaderMap::new() }
    }

    /// The metadata of the entry, or none if a field is longer than the format can tell.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(VERSION);
        bytes.push(match self.kind {
            Kind::Response(..) => 0,
            Kind::Signpost => 1,
        });
        bytes.extend(self.status.as_u16().to_le_bytes());
        if let Kind::Response(terms, trailers) = &self.kind {
            bytes.extend(terms.to_bytes());
            let mut behind = Vec::new();
            stored_fields::write(trailers, &mut behind)?;
            bytes.extend(u16::try_from(behind.len()).ok()?.to_le_bytes());
            bytes.extend(behind);
        }
        stored_fields::write(&self.fields, &mut bytes)?;
        Some(bytes)
    }

    /// None for what this version did not write: other users of the volume may hold the same key.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[version, kind, low, high], rest) = bytes.split_first_chunk()?;
        let status = StatusCode::from_u16(u16::from_le_bytes([low, high])).ok()?;
        let (kind, rest) = match (version, kind) {
            (VERSION, 0) => {
                let (terms, rest) = rest.split_first_chunk::<TERMS_BYTES>()?;
                let (length, rest) = rest.split_first_chunk()?;
                let (trailers, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
                (Kind::Response(Terms::from_bytes(*terms)?, stored_fields::read(trailers)?), rest)
            }
            (VERSION, 1) => (Kind::Signpost, rest),
            _ => return None,
        };
        Some(Self { kind, status, fields: stored_fields::read(rest)? })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn head() -> Head {
        let mut fields = HeaderMap::new();
        fields.append("content-type", HeaderValue::from_static("text/html"));
        fields.append("x-own", HeaderValue::from_static("1"));
        let mut trailers = HeaderMap::new();
        trailers.append("grpc-status", HeaderValue::from_static("0"));
        let kind = Kind::Response(Terms::from_bytes([0; TERMS_BYTES]).unwrap(), trailers);
        Head { kind, status: StatusCode::NOT_FOUND, fields }
    }

    #[test]
    fn a_head_comes_back_as_it_was() {
        for head in [head(), Head::of_signpost()] {
            assert_eq!(Head::decode(&head.encode().unwrap()), Some(head));
        }
    }

    #[test]
    fn a_cut_or_changed_head_and_bytes_of_others_are_no_head_or_another_one_but_never_a_panic() {
        let bytes = head().encode().unwrap();
        for end in 0..bytes.len() {
            let _ = Head::decode(&bytes[..end]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 23, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = Head::decode(&bytes);
            }
        }
        for foreign in [&b""[..], b"\x02\x00\xc8\x00", b"hello, world", &[1, 9, 200, 0], &[1, 1, 0, 0]] {
            assert_eq!(Head::decode(foreign), None);
        }
    }
}
