//! Parsers of field values, which treat malformed values as the RFCs require; and a field as a line.

pub mod cache_control;
pub mod cache_status;
pub mod connection;
pub mod date;
pub mod entity_tag;
pub mod groups;
pub mod list;
pub mod quality;
pub mod range;
pub mod seconds;
pub mod targeted;
pub mod vary;

/// Appends a field as a line of HTTP/1.
#[inline]
pub fn push_line(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for piece in [name, b": ", value, b"\r\n"] {
        lines.extend_from_slice(piece);
    }
}
