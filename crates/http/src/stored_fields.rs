//! The stored form of header fields, which a caller keeps beside a stored response.
//!
//! ```text
//! each field: name (1..=N an index into NAMES; else 0, a length byte, the name), two bytes of length, the value
//! ```
//! Numbers are little-endian. Other programs may have written the bytes, so the reader checks everything.

use http::header::{
    ACCEPT_RANGES, ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE,
    CONTENT_LOCATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, DATE, ETAG, EXPIRES, LAST_MODIFIED, LINK, LOCATION,
    REFERRER_POLICY, SERVER, STRICT_TRANSPORT_SECURITY, VARY, VIA, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::reader::Reader;

/// Names that take one byte. They are part of the format: a change here changes the version of every format that
/// uses it.
static NAMES: [HeaderName; 22] = [
    CONTENT_TYPE,
    ETAG,
    LAST_MODIFIED,
    DATE,
    CACHE_CONTROL,
    EXPIRES,
    VARY,
    CONTENT_ENCODING,
    SERVER,
    VIA,
    LOCATION,
    LINK,
    CONTENT_LANGUAGE,
    CONTENT_LOCATION,
    CONTENT_DISPOSITION,
    ACCEPT_RANGES,
    ACCESS_CONTROL_ALLOW_ORIGIN,
    CONTENT_SECURITY_POLICY,
    REFERRER_POLICY,
    STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
];

/// Appends the fields in their order. Returns `None`, with some fields possibly appended, if a field is too long
/// for the format: a name of more than 255 bytes, or a value of more than 65,535.
pub fn write(fields: &HeaderMap, bytes: &mut Vec<u8>) -> Option<()> {
    for (name, value) in fields {
        if let Some(index) = NAMES.iter().position(|known| known == name) {
            bytes.push(index as u8 + 1);
        } else {
            bytes.extend([0, u8::try_from(name.as_str().len()).ok()?]);
            bytes.extend(name.as_str().as_bytes());
        }
        bytes.extend(u16::try_from(value.len()).ok()?.to_le_bytes());
        bytes.extend(value.as_bytes());
    }
    Some(())
}

/// Reads fields. `None` for bytes in another form.
pub fn read(bytes: &[u8]) -> Option<HeaderMap> {
    let mut stored = StoredFields::new(bytes);
    let mut fields = HeaderMap::new();
    while !stored.is_empty() {
        let (name, value) = stored.take_field()?;
        let name = match name {
            Name::Known(name) => name.clone(),
            Name::Own(name) => HeaderName::from_bytes(name).ok()?,
        };
        fields.try_append(name, HeaderValue::from_bytes(value).ok()?).ok()?;
    }
    Some(fields)
}

/// The stored name of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// A name that takes one byte.
    Known(&'static HeaderName),
    /// Any other name; the bytes may not be a valid name.
    Own(&'a [u8]),
}

/// Reads fields in place, for callers that only pass them on.
#[derive(Debug, Clone, Copy)]
pub struct StoredFields<'a>(Reader<'a>);

impl<'a> StoredFields<'a> {
    /// The fields that begin at the first of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Reader::new(bytes))
    }

    /// Whether no field is left.
    pub fn is_empty(&self) -> bool {
        self.0.rest().is_empty()
    }

    /// The next field. Its value may be invalid in a header field. `None` for bytes in another form.
    pub fn take_field(&mut self) -> Option<(Name<'a>, &'a [u8])> {
        let name = match self.0.array()? {
            [0] => {
                let [length] = self.0.array()?;
                Name::Own(self.0.take(length.into())?)
            }
            [index] => Name::Known(NAMES.get(usize::from(index) - 1)?),
        };
        let length = u16::from_le_bytes(self.0.array()?);
        Some((name, self.0.take(length.into())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_writing_and_reading() {
        let mut fields = HeaderMap::new();
        fields.append(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        fields.append("x-own", HeaderValue::from_static("1"));
        fields.append(LINK, HeaderValue::from_static("</a>; rel=next"));
        fields.append(LINK, HeaderValue::from_bytes(b"</\xe9>").unwrap());
        let mut bytes = Vec::new();
        write(&fields, &mut bytes).unwrap();
        assert_eq!(read(&bytes), Some(fields));
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        assert_eq!(read(b""), Some(HeaderMap::new()));
    }

    #[test]
    fn fields_too_long_for_the_format_are_not_written() {
        let mut fields = HeaderMap::new();
        fields.append("x-own", HeaderValue::from_bytes(&vec![b'x'; 0x1_0000]).unwrap());
        assert_eq!(write(&fields, &mut Vec::new()), None);
    }
}
