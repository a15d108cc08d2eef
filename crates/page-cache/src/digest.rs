//! Digests of the content of requests, for keys.

use std::fmt::{self, Write as _};

use ring::digest::{Context, SHA256};

/// The greatest length of content that becomes part of a key. A front door holds it in memory while it answers the request.
pub const CONTENT_BYTES_MAX: usize = 64 << 10;

/// A digest of content. Nobody can find two contents with one digest, so nobody can store an answer under another client's key.
#[derive(Clone)]
pub struct ContentDigest(Context);

impl ContentDigest {
    /// The digest of nothing.
    pub fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    /// Adds bytes at the end of the content.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all bytes, in hexadecimal digits.
    pub fn finish(self) -> String {
        self.0.finish().as_ref().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string can't fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl fmt::Debug for ContentDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ContentDigest").finish_non_exhaustive()
    }
}

impl Default for ContentDigest {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_all_pieces() {
        let mut digest = ContentDigest::new();
        for piece in ["a", "", "bc"] {
            digest.update(piece.as_bytes());
        }
        assert_eq!(digest.finish(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
