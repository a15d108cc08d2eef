//! Objects as they lie in the store.
//!
//! ```text
//! byte 0   version, 1
//! byte 1   1 with a signature, 0 without
//! 2..10    until when it is usable: milliseconds since 1970, little-endian
//! 10..42   with a signature: HMAC-SHA256 of the name, the bytes before it, and the value
//! then the value
//! ```

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::{digest, hmac};
use bytes::Bytes;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 10;
const SIGNATURE_BYTES: usize = 32;
/// The bytes of a digest that name an object: more than anybody can find two keys for.
const NAME_BYTES: usize = 20;

/// The name of a key in the store, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Name(String);

impl Name {
    pub(crate) fn of(key: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, key);
        Self(in_hexadecimal(&digest.as_ref()[..NAME_BYTES]))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes and reads objects, with or without a secret.
#[derive(Debug)]
pub(crate) struct Framer(Option<hmac::Key>);

impl Framer {
    pub(crate) fn new(secret: Option<&[u8]>) -> Self {
        Self(secret.map(|secret| hmac::Key::new(hmac::HMAC_SHA256, secret)))
    }

    /// The object of a value that is usable for `ttl` from now on.
    pub(crate) fn write(&self, name: &Name, value: &[u8], ttl: Duration) -> Bytes {
        let mut object = Vec::with_capacity(HEAD_BYTES + SIGNATURE_BYTES + value.len());
        object.extend([VERSION, u8::from(self.0.is_some())]);
        object.extend(now_ms().saturating_add(ttl.as_millis() as u64).to_le_bytes());
        if let Some(key) = &self.0 {
            let signature = sign(key, name, &object, value);
            object.extend(signature.as_ref());
        }
        object.extend(value);
        object.into()
    }

    /// The value of an object. `None`: it is too old, or not one that a holder of the same secret has written.
    pub(crate) fn read(&self, name: &Name, object: &Bytes) -> Option<Bytes> {
        let head = object.first_chunk::<HEAD_BYTES>()?;
        let [version, is_signed, until @ ..] = head;
        if *version != VERSION || *is_signed != u8::from(self.0.is_some()) || u64::from_le_bytes(*until) <= now_ms() {
            return None;
        }
        let Some(key) = &self.0 else { return Some(object.slice(HEAD_BYTES..)) };
        let (signature, value) = object[HEAD_BYTES..].split_first_chunk::<SIGNATURE_BYTES>()?;
        let mut signed = context(key, name, head);
        signed.update(value);
        // The comparison takes the same time wherever they differ.
        aws_lc_rs::constant_time::verify_slices_are_equal(signed.sign().as_ref(), signature).ok()?;
        Some(object.slice(HEAD_BYTES + SIGNATURE_BYTES..))
    }
}

fn sign(key: &hmac::Key, name: &Name, head: &[u8], value: &[u8]) -> hmac::Tag {
    let mut signed = context(key, name, head);
    signed.update(value);
    signed.sign()
}

fn context(key: &hmac::Key, name: &Name, head: &[u8]) -> hmac::Context {
    let mut context = hmac::Context::with_key(key);
    context.update(name.as_str().as_bytes());
    context.update(head);
    context
}

/// Bytes in hexadecimal digits.
pub(crate) fn in_hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"))
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_mins(1);

    #[test]
    fn a_value_survives_with_and_without_a_secret() {
        let name = Name::of(b"key");
        assert_eq!((name.as_str().len(), name == Name::of(b"other")), (40, false));
        for framer in [Framer::new(None), Framer::new(Some(b"secret"))] {
            for value in [&b""[..], b"value"] {
                assert_eq!(framer.read(&name, &framer.write(&name, value, TTL)).unwrap(), value);
            }
            assert_eq!(framer.read(&name, &framer.write(&name, b"value", Duration::ZERO)), None);
        }
    }

    #[test]
    fn what_nobody_with_the_secret_wrote_is_refused() {
        let (name, framer) = (Name::of(b"key"), Framer::new(Some(b"secret")));
        let object = framer.write(&name, b"value", TTL);
        for other in [Framer::new(None), Framer::new(Some(b"other"))] {
            assert_eq!(other.read(&name, &object), None);
            assert_eq!(framer.read(&name, &other.write(&name, b"value", TTL)), None);
        }
        assert_eq!(framer.read(&Name::of(b"other"), &object), None, "it is of another key");
        for at in 0..object.len() {
            let mut changed = object.to_vec();
            changed[at] ^= 1;
            assert_eq!(framer.read(&name, &changed.into()), None, "{at}");
            assert_eq!(framer.read(&name, &object.slice(..at)), None, "{at}");
        }
    }
}
