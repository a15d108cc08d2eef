//! QUERY: a GET with content (RFC 10008).
//!
//! Its responses are stored and validated like those of GET, and answer only requests with the same content (section 2.7): their
//! keys contain the request's content and the fields that describe it. This crate doesn't normalise content, which the RFC permits
//! but doesn't require: only the origin knows what two contents mean.
//!
//! `Location` and `Content-Location` of such a response name other resources, which are stored when a client gets them.

use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

/// The request fields that describe its content (RFC 9110, section 8).
pub const METADATA: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// Begins a line: its length in eight bytes and its bytes follow.
const LINE: u8 = 1;
/// Ends the lines of a field.
const END: u8 = 0;

/// Passes to `write`, piece by piece, bytes that identify a request's content. Two requests give the same bytes
/// if, and only if, their content and all lines of their [`METADATA`] are the same.
pub fn identify(fields: &HeaderMap, content: &[u8], mut write: impl FnMut(&[u8])) {
    for name in METADATA {
        for line in fields.get_all(name) {
            write(&[LINE]);
            write(&(line.len() as u64).to_be_bytes());
            write(line.as_bytes());
        }
        write(&[END]);
    }
    write(content);
}
