//! The encoders. Their levels are those at which more time buys few bytes: a form is made once, and sent many times.

use std::io::{self, Write as _};

use brotli::enc::BrotliEncoderParams;
use eyewall_http::coding::Coding;
use flate2::Compression;
use flate2::write::GzEncoder;

const BROTLI_QUALITY: i32 = 7;
/// Its window is within the 8 MiB that clients accept (RFC 9659).
const ZSTANDARD_LEVEL: i32 = 12;
const GZIP_LEVEL: u32 = 9;

/// The bytes in a coding.
pub(super) fn encode(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
    match coding {
        Coding::Brotli => {
            let params = BrotliEncoderParams {
                quality: BROTLI_QUALITY,
                size_hint: bytes.len(),
                ..BrotliEncoderParams::default()
            };
            let mut encoded = Vec::new();
            brotli::BrotliCompress(&mut &*bytes, &mut encoded, &params)?;
            Ok(encoded)
        }
        Coding::Zstandard => zstd::bulk::compress(bytes, ZSTANDARD_LEVEL),
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
            encoder.write_all(bytes)?;
            encoder.finish()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    fn decode(coding: Coding, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoded = Vec::new();
        match coding {
            Coding::Brotli => brotli::BrotliDecompress(&mut &*bytes, &mut decoded)?,
            Coding::Zstandard => decoded = zstd::stream::decode_all(bytes)?,
            Coding::Gzip => drop(flate2::read::GzDecoder::new(bytes).read_to_end(&mut decoded)?),
        }
        Ok(decoded)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn each_form_decodes_to_the_identity(words in prop::collection::vec("[a-z<>/ ]{0,12}|\\PC{0,4}", 0..400), noise in any::<Vec<u8>>()) {
            let identity = [words.concat().as_bytes(), &noise].concat();
            for coding in Coding::ALL {
                let form = encode(coding, &identity).unwrap();
                prop_assert_eq!(decode(coding, &form).unwrap(), identity.clone());
            }
        }
    }

    #[test]
    fn a_long_text_becomes_short() {
        let identity = "a line of a page\n".repeat(60_000);
        for coding in Coding::ALL {
            let form = encode(coding, identity.as_bytes()).unwrap();
            assert!(form.len() < identity.len() / 50, "{coding:?}: {}", form.len());
            assert_eq!(decode(coding, &form).unwrap(), identity.as_bytes());
        }
    }
}
