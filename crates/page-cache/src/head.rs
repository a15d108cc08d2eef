//! The head of a stored response, as it lies in the entry's metadata.
//!
//! ```text
//! byte 0   version, 3        any other version: a miss
//! byte 1   kind              0 a response, 1 a vary index, 3 a response in fragments, 4 a fragment, 5 a response with trailer fields
//! 2..4     status            little-endian, as all numbers here
//! 4..40    kinds 0, 3 and 5 only: the terms of its reuse (`eyewall_http::terms`)
//! 40..60   kind 3 only: length of the body, generation, bytes of a fragment ([`Layout`])
//! 40..     kind 5 only: two bytes of length, and the trailer fields
//! then the fields (`eyewall_http::stored_fields`)
//! ```

use eyewall_http::reader::Reader;
use eyewall_http::stored_fields::{self, Name, StoredFields};
use eyewall_http::terms::{TERMS_BYTES, Terms};
use http::header::DATE;
use http::{HeaderMap, StatusCode};

use crate::layout::Layout;

const VERSION: u8 = 3;

/// Fields that are written for each response and never stored.
const WRITTEN: [&[u8]; 5] = [b"age", b"cache-status", b"connection", b"content-length", b"transfer-encoding"];

/// A stored response without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The kind of the value.
    pub kind: Kind,
    /// The status of the response.
    pub status: StatusCode,
    /// The fields that are stored.
    pub fields: HeaderMap,
    /// The trailer fields; of a whole response only. Few responses have any, so the field is boxed: heads are moved often.
    pub trailers: Option<Box<HeaderMap>>,
}

/// What the value of an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The value is the content of a response, which may be used again on these terms.
    Response(Terms),
    /// The value names the responses of the address. Fields of the request select one of them (`eyewall_http::vary_index`).
    VaryIndex,
    /// The content of a response lies in entries of its own. There is no value.
    Fragmented(Terms, Layout),
    /// The value is a fragment of a response's content.
    Fragment,
}

impl Head {
    /// A head without trailer fields.
    pub fn new(kind: Kind, status: StatusCode, fields: HeaderMap) -> Self {
        Self { kind, status, fields, trailers: None }
    }

    /// A head whose value is no response.
    pub(crate) fn bare(kind: Kind) -> Self {
        Self::new(kind, StatusCode::OK, HeaderMap::new())
    }

    /// The metadata of the entry. None if a field is too long for the format.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(VERSION);
        bytes.push(match self.kind {
            Kind::Response(_) if self.trailers.is_none() => 0,
            Kind::Response(_) => 5,
            Kind::VaryIndex => 1,
            Kind::Fragmented(..) => 3,
            Kind::Fragment => 4,
        });
        bytes.extend(self.status.as_u16().to_le_bytes());
        match &self.kind {
            Kind::Response(terms) => {
                bytes.extend(terms.to_bytes());
                if let Some(trailers) = &self.trailers {
                    let mut written = Vec::new();
                    stored_fields::write(trailers, &mut written)?;
                    bytes.extend(u16::try_from(written.len()).ok()?.to_le_bytes());
                    bytes.extend(written);
                }
            }
            Kind::Fragmented(terms, layout) => {
                bytes.extend(terms.to_bytes());
                bytes.extend(layout.to_bytes());
            }
            Kind::VaryIndex | Kind::Fragment => {}
        }
        stored_fields::write(&self.fields, &mut bytes)?;
        Some(bytes)
    }

    /// None for bytes that this version did not write: other users of the volume may use the same key.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let HeadView { kind, status, fields, trailers } = HeadView::of(bytes)?;
        let trailers = match trailers {
            Some(trailers) => Some(Box::new(stored_fields::read(trailers)?)),
            None => None,
        };
        Some(Self { kind, status, fields: stored_fields::read(fields)?, trailers })
    }
}

/// A head in place in the volume, for a caller that only passes it on.
#[derive(Debug)]
pub struct HeadView<'a> {
    /// The kind of the value.
    pub kind: Kind,
    /// The status of the response.
    pub status: StatusCode,
    /// The fields as [`stored_fields`] writes them.
    fields: &'a [u8],
    trailers: Option<&'a [u8]>,
}

impl<'a> HeadView<'a> {
    /// None for bytes that this version did not write.
    #[inline]
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.array::<1>()? != [VERSION] {
            return None;
        }
        let [kind] = reader.array()?;
        let status = StatusCode::from_u16(u16::from_le_bytes(reader.array()?)).ok()?;
        let mut trailers = None;
        let kind = match kind {
            0 => Kind::Response(Terms::from_bytes(reader.array::<TERMS_BYTES>()?)?),
            1 => Kind::VaryIndex,
            3 => Kind::Fragmented(
                Terms::from_bytes(reader.array::<TERMS_BYTES>()?)?,
                Layout::from_bytes(reader.array()?)?,
            ),
            4 => Kind::Fragment,
            5 => {
                let terms = Terms::from_bytes(reader.array::<TERMS_BYTES>()?)?;
                let length = u16::from_le_bytes(reader.array()?);
                trailers = Some(reader.take(length.into())?);
                Kind::Response(terms)
            }
            _ => return None,
        };
        Some(Self { kind, status, fields: reader.rest(), trailers })
    }

    /// Appends the fields as lines of HTTP/1. None if a line is no valid field, or if there is no `Date`; some lines may have been
    /// appended then.
    #[inline]
    pub fn write_lines(self, lines: &mut Vec<u8>) -> Option<()> {
        let mut is_dated = false;
        let mut fields = StoredFields::new(self.fields);
        while !fields.is_empty() {
            let (name, value) = fields.take_field()?;
            let name = match name {
                Name::Known(name) => {
                    is_dated |= *name == DATE;
                    name.as_str().as_bytes()
                }
                Name::Own(name) => Some(name).filter(|name| is_passed_on(name))?,
            };
            if !value.iter().copied().all(is_of_value) {
                return None;
            }
            for piece in [name, b": ", value, b"\r\n"] {
                lines.extend_from_slice(piece);
            }
        }
        is_dated.then_some(())
    }
}

/// Whether it is a valid name, and not of a field that is written for each response.
fn is_passed_on(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().copied().all(is_of_name) && !WRITTEN.contains(&name)
}

/// Letters of names as [`HeaderName`] has them: RFC 9110's tokens in lower case.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Bytes of values as [`HeaderValue`] has them.
fn is_of_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::{CONTENT_TYPE, LINK};

    use super::*;

    fn head() -> Head {
        let mut fields = HeaderMap::new();
        fields.append(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        fields.append("x-own", HeaderValue::from_static("1"));
        fields.append(LINK, HeaderValue::from_static("</a>; rel=next"));
        fields.append(LINK, HeaderValue::from_bytes(b"</\xe9>").unwrap());
        Head::new(Kind::VaryIndex, StatusCode::NOT_FOUND, fields)
    }

    #[test]
    fn a_head_survives_encoding() {
        let bytes = head().encode().unwrap();
        assert_eq!(Head::decode(&bytes), Some(head()));
        let terms = Terms::from_bytes([0; TERMS_BYTES]).unwrap();
        let layout = Layout { length: 1 << 40, generation: 7, fragment_bytes: 1 << 20 };
        for kind in [Kind::Response(terms), Kind::Fragmented(terms, layout), Kind::Fragment] {
            let head = Head { kind, ..head() };
            assert_eq!(Head::decode(&head.encode().unwrap()), Some(head));
        }
        let trailers = Some(Box::new(HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("0"))])));
        let head = Head { kind: Kind::Response(terms), trailers, ..head() };
        assert_eq!(Head::decode(&head.encode().unwrap()), Some(head));
    }

    #[test]
    fn another_version_and_bytes_of_others_are_no_head() {
        let mut bytes = head().encode().unwrap();
        bytes[0] += 1;
        assert_eq!(Head::decode(&bytes), None);
        for foreign in [&b""[..], b"\x01", b"hello, world", &[3, 9, 200, 0], &[3, 1, 0, 0], &[3, 0, 200, 0, 1]] {
            assert_eq!(Head::decode(foreign), None);
        }
    }

    #[test]
    fn a_cut_or_changed_head_is_no_head_or_another_one_but_never_a_panic() {
        let bytes = head().encode().unwrap();
        for end in 0..bytes.len() {
            let _ = Head::decode(&bytes[..end]);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 5, 23, 0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                let _ = Head::decode(&bytes);
            }
        }
    }
}
