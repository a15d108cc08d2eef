//! The head of a stored response, as it lies in the entry's metadata.
//!
//! ```text
//! byte 0   version, 3        any other version: a miss
//! byte 1   kind              0 a response, 1 a vary index, 3 a response in fragments, 4 a fragment, 5 a response with trailer fields,
//!                            6 a response that may be compressed, 7 a compressed form
//! 2..4     status            little-endian, as all numbers here
//! 4..40    kinds 0, 3, 5 and 6 only: the terms of its reuse (`eyewall_http::terms`)
//! 40..60   kind 3 only: length of the body, generation, bytes of a fragment ([`Layout`])
//! 40..     kind 5 only: two bytes of length, and the trailer fields
//! 40..49   kind 6 only: the version of the body, and the codings ([`Compressible`])
//! 4..12    kind 7 only: the version of the body that it is a form of
//! then the fields (`eyewall_http::stored_fields`)
//! ```

use std::num::NonZeroU64;

use eyewall_http::coding::{Coding, Codings};
use eyewall_http::field::push_line;
use eyewall_http::reader::Reader;
use eyewall_http::stored_fields::{self, Name, StoredFields};
use eyewall_http::terms::{TERMS_BYTES, Terms};
use http::header::{ACCEPT_RANGES, DATE, ETAG};
use http::{HeaderMap, StatusCode};

use crate::compression::entity_tag;
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
    /// What compressed forms need to know; of a whole response without trailers only.
    pub compressible: Option<Compressible>,
}

/// A number that distinguishes a body from those that were stored under the same key before.
pub type Version = NonZeroU64;

/// A response that may have compressed forms ([`crate::compression`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compressible {
    /// That of the body, at random.
    pub version: Version,
    /// The codings that it may have.
    pub codings: Codings,
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
    /// The value is a compressed form of the body that has this version. Without a value: the form would not be smaller.
    Form(Version),
}

impl Head {
    /// A head without trailer fields.
    pub fn new(kind: Kind, status: StatusCode, fields: HeaderMap) -> Self {
        Self { kind, status, fields, trailers: None, compressible: None }
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
            Kind::Response(_) if self.trailers.is_some() => 5,
            Kind::Response(_) if self.compressible.is_some() => 6,
            Kind::Response(_) => 0,
            Kind::VaryIndex => 1,
            Kind::Fragmented(..) => 3,
            Kind::Fragment => 4,
            Kind::Form(_) => 7,
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
                } else if let Some(Compressible { version, codings }) = self.compressible {
                    bytes.extend(version.get().to_le_bytes());
                    bytes.push(codings.to_byte());
                }
            }
            Kind::Fragmented(terms, layout) => {
                bytes.extend(terms.to_bytes());
                bytes.extend(layout.to_bytes());
            }
            Kind::Form(version) => bytes.extend(version.get().to_le_bytes()),
            Kind::VaryIndex | Kind::Fragment => {}
        }
        stored_fields::write(&self.fields, &mut bytes)?;
        Some(bytes)
    }

    /// None for bytes that this version did not write: other users of the volume may use the same key.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let HeadView { kind, status, fields, trailers, compressible } = HeadView::of(bytes)?;
        let trailers = match trailers {
            Some(trailers) => Some(Box::new(stored_fields::read(trailers)?)),
            None => None,
        };
        Some(Self { kind, status, fields: stored_fields::read(fields)?, trailers, compressible })
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
    /// What compressed forms need to know.
    pub compressible: Option<Compressible>,
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
        let (mut trailers, mut compressible) = (None, None);
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
            6 => {
                let terms = Terms::from_bytes(reader.array::<TERMS_BYTES>()?)?;
                let version = version(&mut reader)?;
                let [codings] = reader.array()?;
                compressible = Some(Compressible { version, codings: Codings::from_byte(codings) });
                Kind::Response(terms)
            }
            7 => Kind::Form(version(&mut reader)?),
            _ => return None,
        };
        Some(Self { kind, status, fields: reader.rest(), trailers, compressible })
    }

    /// Appends the fields as lines of HTTP/1. None if a line is no valid field, or if there is no `Date`; some lines may have been
    /// appended then.
    #[inline]
    pub fn write_lines(self, lines: &mut Vec<u8>) -> Option<()> {
        let mut is_dated = false;
        let mut fields = StoredFields::new(self.fields);
        while !fields.is_empty() {
            let (name, value) = fields.take_field()?;
            is_dated |= matches!(name, Name::Known(name) if *name == DATE);
            write_line(name, value, lines)?;
        }
        is_dated.then_some(())
    }

    /// Appends the fields of a compressed form as [`HeadView::write_lines`] does those of the identity
    /// ([`crate::compression::form::dress`]). None if there are several entity tags, too.
    pub fn write_lines_of_form(self, coding: Coding, lines: &mut Vec<u8>) -> Option<()> {
        let (mut is_dated, mut is_tagged) = (false, false);
        let mut fields = StoredFields::new(self.fields);
        while !fields.is_empty() {
            let (name, value) = fields.take_field()?;
            match name {
                Name::Known(name) if *name == ACCEPT_RANGES => continue,
                Name::Known(name) if *name == ETAG && is_tagged => return None,
                Name::Known(known) if *known == ETAG => {
                    is_tagged = true;
                    if let Some(tag) = entity_tag::of_form(value, coding) {
                        write_line(name, &tag, lines)?;
                    }
                    continue;
                }
                Name::Known(name) => is_dated |= *name == DATE,
                Name::Own(_) => {}
            }
            write_line(name, value, lines)?;
        }
        for piece in ["content-encoding: ", coding.name(), "\r\n"] {
            lines.extend_from_slice(piece.as_bytes());
        }
        is_dated.then_some(())
    }
}

fn version(reader: &mut Reader<'_>) -> Option<Version> {
    Version::new(u64::from_le_bytes(reader.array()?))
}

/// Appends a field as a line of HTTP/1. None if it is no valid field.
#[inline]
fn write_line(name: Name<'_>, value: &[u8], lines: &mut Vec<u8>) -> Option<()> {
    let name = match name {
        Name::Known(name) => name.as_str().as_bytes(),
        Name::Own(name) => Some(name).filter(|name| is_passed_on(name))?,
    };
    if !value.iter().copied().all(is_of_value) {
        return None;
    }
    push_line(lines, name, value);
    Some(())
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
        for kind in [Kind::Response(terms), Kind::Fragmented(terms, layout), Kind::Fragment, Kind::Form(Version::MIN)] {
            let head = Head { kind, ..head() };
            assert_eq!(Head::decode(&head.encode().unwrap()), Some(head));
        }
        let trailers = Some(Box::new(HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("0"))])));
        let head_with_trailers = Head { kind: Kind::Response(terms), trailers, ..head() };
        assert_eq!(Head::decode(&head_with_trailers.encode().unwrap()), Some(head_with_trailers));
        let compressible = Some(Compressible { version: Version::MIN, codings: Codings::from_iter([Coding::Gzip]) });
        let compressible_head = Head { kind: Kind::Response(terms), compressible, ..head() };
        assert_eq!(Head::decode(&compressible_head.encode().unwrap()), Some(compressible_head));
        let form = Head::bare(Kind::Form(Version::MAX));
        assert_eq!(Head::decode(&form.encode().unwrap()), Some(form));
    }

    #[test]
    fn the_lines_of_a_form_are_its_fields() {
        let mut fields = head().fields;
        for (name, value) in [("date", "x"), ("etag", "\"1\""), ("accept-ranges", "bytes"), ("vary", "Accept-Encoding")]
        {
            fields.insert(name, HeaderValue::from_static(value));
        }
        let identity = Head { fields, ..head() }.encode().unwrap();
        let mut lines = Vec::new();
        HeadView::of(&identity).unwrap().write_lines_of_form(Coding::Zstandard, &mut lines).unwrap();
        let mut dressed = Head::decode(&identity).unwrap().fields;
        crate::compression::form::dress(&mut dressed, Coding::Zstandard);
        let mut expected: Vec<Vec<u8>> = dressed
            .iter()
            .map(|(name, value)| [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r"].concat())
            .collect();
        let mut found: Vec<Vec<u8>> = lines.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        assert_eq!(found.pop().unwrap(), b"");
        expected.sort();
        found.sort();
        assert_eq!(found, expected);
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
