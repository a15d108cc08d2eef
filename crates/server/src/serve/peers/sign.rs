//! Signatures of requests between nodes: HMAC-SHA256 by the fleet's key.
//!
//! A signature covers the node that is asked, the time, a number that is used once, and the whole question. So nobody without the key can
//! ask, a question to one node is none to another, and a question that was listened to is refused when it comes again: its time is too
//! old, or its number is remembered.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_lc_rs::hmac;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The field of a request with its time, its number and its signature.
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("eyewall-signature");
/// By how much the clocks of two nodes may differ, with the time that a request takes.
const WINDOW: Duration = Duration::from_secs(30);
/// The least length of a key.
const KEY_BYTES_MIN: usize = 32;
/// How many numbers are remembered for each window. More requests are refused.
const REMEMBERED_MAX: usize = 500_000;

/// The fleet's key, and the numbers that were used.
pub(super) struct Key {
    key: hmac::Key,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    began_ms: u64,
    now: HashSet<u128>,
    before: HashSet<u128>,
}

/// Why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the request has no signature")]
    Unsigned,
    #[error(
        "the signature is wrong: the nodes have different keys, or know this node by different addresses (`peer_url`)"
    )]
    Wrong,
    #[error("the request was signed at another time: the clocks of the nodes differ by more than 30 seconds")]
    OtherTime,
    #[error("the request has come before")]
    Replayed,
}

impl Key {
    /// Reads the key in a file.
    ///
    /// # Errors
    /// The system's, and [`io::ErrorKind::InvalidData`] if the key is short.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read(path)?;
        Self::new(text.trim_ascii()).ok_or_else(|| {
            let words = "the key has fewer than 32 characters; make one with `openssl rand -hex 32`";
            io::Error::new(io::ErrorKind::InvalidData, words)
        })
    }

    fn new(key: &[u8]) -> Option<Self> {
        let key = (key.len() >= KEY_BYTES_MIN).then(|| hmac::Key::new(hmac::HMAC_SHA256, key))?;
        Some(Self { key, used: Mutex::default() })
    }

    /// Signs a question to the node with this address.
    ///
    /// # Errors
    /// The system has no random number.
    pub(super) fn sign(&self, url: &str, question: &[u8], now: SystemTime) -> io::Result<HeaderValue> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let (time_ms, number) = (milliseconds(now), u128::from_le_bytes(number));
        let signature = hmac::sign(&self.key, &signed(url, time_ms, number, question));
        let digits: String = signature.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect();
        HeaderValue::try_from(format!("{time_ms} {number:032x} {digits}")).map_err(io::Error::other)
    }

    /// Checks the signature of a question to this node.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn check(&self, url: &str, fields: &HeaderMap, question: &[u8], now: SystemTime) -> Result<(), Refused> {
        let text = fields.get(SIGNATURE).and_then(|value| value.to_str().ok()).ok_or(Refused::Unsigned)?;
        let (time_ms, number, signature) = parsed(text).ok_or(Refused::Wrong)?;
        // The comparison takes the same time for each wrong signature.
        hmac::verify(&self.key, &signed(url, time_ms, number, question), &signature).map_err(|_| Refused::Wrong)?;
        let now_ms = milliseconds(now);
        if now_ms.abs_diff(time_ms) > WINDOW.as_millis() as u64 {
            return Err(Refused::OtherTime);
        }
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.take(number, now_ms) { Ok(()) } else { Err(Refused::Replayed) }
    }
}

impl Used {
    /// Notes a number. False: it was used, or too many are remembered. A number is remembered for at least twice the window, in which its
    /// time is accepted.
    fn take(&mut self, number: u128, now_ms: u64) -> bool {
        if now_ms.abs_diff(self.began_ms) > 2 * WINDOW.as_millis() as u64 {
            self.before = std::mem::take(&mut self.now);
            self.began_ms = now_ms;
        }
        self.now.len() < REMEMBERED_MAX && !self.before.contains(&number) && self.now.insert(number)
    }
}

fn signed(url: &str, time_ms: u64, number: u128, question: &[u8]) -> Vec<u8> {
    let mut bytes = b"eyewall peer 1\n".to_vec();
    bytes.extend(time_ms.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend((url.len() as u64).to_le_bytes());
    bytes.extend(url.as_bytes());
    bytes.extend(question);
    bytes
}

/// A hexadecimal digit.
fn digit(four_bits: u8) -> char {
    char::from_digit(four_bits.into(), 16).unwrap_or('0')
}

fn parsed(text: &str) -> Option<(u64, u128, Vec<u8>)> {
    let mut words = text.split(' ');
    let (time_ms, number, signature) = (words.next()?, words.next()?, words.next()?);
    let digits = signature.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    let signature = digits.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect::<Option<_>>()?;
    Some((time_ms.parse().ok()?, u128::from_str_radix(number, 16).ok()?, signature))
}

fn milliseconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "http://10.0.0.1:8443";

    fn key(text: &str) -> Key {
        Key::new(text.as_bytes()).unwrap()
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn fields(signature: HeaderValue) -> HeaderMap {
        HeaderMap::from_iter([(SIGNATURE, signature)])
    }

    #[test]
    fn a_question_is_accepted_once() {
        let key = key(&"k".repeat(32));
        for seconds in [1000, 1029, 1100, 1200] {
            let signed = fields(key.sign(URL, b"question", at(seconds)).unwrap());
            assert_eq!(key.check(URL, &signed, b"question", at(seconds + 1)), Ok(()));
            for later in [1, 2, 29] {
                let again = key.check(URL, &signed, b"question", at(seconds + later));
                assert_eq!(again, Err(Refused::Replayed));
            }
        }
    }

    #[test]
    fn nothing_of_a_question_can_be_changed() {
        let (key, other) = (key(&"k".repeat(32)), key(&"o".repeat(32)));
        let signature = key.sign(URL, b"question", at(1000)).unwrap();
        let signed = fields(signature.clone());
        assert_eq!(other.check(URL, &signed, b"question", at(1000)), Err(Refused::Wrong));
        assert_eq!(key.check("http://10.0.0.2:8443", &signed, b"question", at(1000)), Err(Refused::Wrong));
        assert_eq!(key.check(URL, &signed, b"question2", at(1000)), Err(Refused::Wrong));
        assert_eq!(key.check(URL, &HeaderMap::new(), b"question", at(1000)), Err(Refused::Unsigned));
        for late in [900, 960, 1040, 5000] {
            assert_eq!(key.check(URL, &signed, b"question", at(late)), Err(Refused::OtherTime), "{late}");
        }
        let text = signature.to_str().unwrap();
        for wrong in ["", "1 2", "x y z", &text[1..], &text[..text.len() - 2], &format!("1{text}")] {
            let signed = fields(HeaderValue::from_str(wrong).unwrap());
            assert_eq!(key.check(URL, &signed, b"question", at(1000)), Err(Refused::Wrong), "{wrong}");
        }
        assert_eq!(key.check(URL, &signed, b"question", at(1000)), Ok(()), "no wrong one has used the number");
    }

    #[test]
    fn a_short_key_is_refused() {
        assert!(Key::new(b"short").is_none());
    }
}
