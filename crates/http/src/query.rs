//! QUERY: a GET with content (RFC 10008).
//!
//! Its answers are stored and validated as those of GET are, and serve requests of the same content alone (section 2.7): their
//! keys have the content in them, and what the client says of it. Nothing of that is normalised, which the RFC allows and
//! doesn't ask for: what two contents mean is the origin's business.
//!
//! What `Location` and `Content-Location` of such an answer name are resources of their own, which are stored when they are got.

use http::header::{CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

/// The fields of a request that say what its content is (RFC 9110, section 8).
pub const METADATA: [HeaderName; 4] = [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// Begins a line, whose length in eight bytes follows, and the line itself.
const LINE: u8 = 1;
/// Ends the lines of a field.
const END: u8 = 0;

/// Gives `write`, piece by piece, what tells the content of one request from that of another: two requests give the same
/// bytes if, and only if, their content and all lines of its [`METADATA`] are the same.
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
