//! Header fields from a table.

use http::{HeaderMap, HeaderName, HeaderValue};

/// The fields of these lines, in this order; values may have bytes from 0x80 on.
pub(crate) fn fields(lines: &[(&str, &str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        fields.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    fields
}
