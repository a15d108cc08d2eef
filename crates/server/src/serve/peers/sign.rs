//! Signatures of requests between nodes: HMAC-SHA256 by the fleet's key.
//!
//! A signature covers the node that is asked, the time, a number that is used once, and the whole question. So nobody without the key can
//! ask, a question to one node is none to another, and a question that was listened to is refused when it comes again: its time is too
//! old, or its number is remembered.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_lc_rs::hmac;
use http::{HeaderMap, HeaderName, HeaderValue};

/// The field of a request with its time, its number and its signature.
pub(super) const SIGNATURE: HeaderName = HeaderName::from_static("eyewall-signature");
/// The field of an answer that proves that the key is known there.
pub(super) const PROOF: HeaderName = HeaderName::from_static("eyewall-proof");
/// The field of a refusal that names its reason ([`Refused::word`]).
pub(super) const REFUSED: HeaderName = HeaderName::from_static("eyewall-refused");
/// What the proof of an answer covers that says that the node takes no more questions at present. No envelope begins so.
const BUSY: &[u8] = b"busy";
/// The length of a signature.
pub(super) const MAC_BYTES: usize = 32;
/// By how much the clocks of two nodes may differ, with the time that a request takes.
const WINDOW: Duration = Duration::from_secs(30);
/// The least length of a key.
const KEY_BYTES_MIN: usize = 32;
/// How many numbers are remembered, in at most 70 MB. More requests are refused.
const REMEMBERED_MAX: usize = 2_000_000;

/// The fleet's key, and the numbers that were used.
pub(super) struct Key {
    key: hmac::Key,
    used: Mutex<Used>,
}

/// The numbers that were used, by the second in which their requests were signed.
#[derive(Default)]
struct Used(BTreeMap<u64, HashSet<u128>>);

/// What a request says of itself.
pub(super) struct Claim {
    time_ms: u64,
    number: u128,
    signature: Vec<u8>,
}

/// Why a request is refused.
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
    #[error("too many requests have come in the last half minute")]
    Full,
}

impl Refused {
    /// The reason for another node, which shows it to its operator.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Unsigned => "unsigned",
            Self::Wrong => "key",
            Self::OtherTime => "clock",
            Self::Replayed => "replayed",
            Self::Full => "busy",
        }
    }
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

    /// Signs a question to the node with this address. Returns the field, and the number of the question, which its answer has to prove.
    ///
    /// # Errors
    /// The system has no random number.
    pub(super) fn sign(&self, url: &str, question: &[u8], now: SystemTime) -> io::Result<(HeaderValue, u128)> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let (time_ms, number) = (milliseconds(now), u128::from_le_bytes(number));
        let signature = hmac::sign(&self.key, &signed(url, time_ms, number, question));
        let field = HeaderValue::try_from(format!("{time_ms} {number:032x} {}", digits(signature.as_ref())));
        Ok((field.map_err(io::Error::other)?, number))
    }

    /// Checks the signature of a question to this node. Returns the number of the question.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn check(&self, url: &str, claim: &Claim, question: &[u8], now: SystemTime) -> Result<u128, Refused> {
        let Claim { time_ms, number, signature } = claim;
        // The comparison takes the same time for each wrong signature.
        hmac::verify(&self.key, &signed(url, *time_ms, *number, question), signature).map_err(|_| Refused::Wrong)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.take(*number, *time_ms, milliseconds(now), REMEMBERED_MAX)?;
        Ok(*number)
    }

    /// The proof that these bytes answer the question with this number, by a node that knows the key. No bytes: it will answer.
    pub(super) fn prove(&self, number: u128, bytes: &[u8]) -> [u8; MAC_BYTES] {
        let mut mac = [0; MAC_BYTES];
        mac.copy_from_slice(hmac::sign(&self.key, &answered(number, bytes)).as_ref());
        mac
    }

    /// The field with the proof that the question will be answered.
    pub(super) fn promise(&self, number: u128) -> Option<HeaderValue> {
        HeaderValue::try_from(digits(&self.prove(number, b""))).ok()
    }

    /// Whether it is such a field.
    pub(super) fn promises(&self, number: u128, fields: &HeaderMap) -> bool {
        self.has_proof(number, b"", fields)
    }

    /// The same for an answer to this claim, whose signature was right: the node takes no more questions at present.
    pub(super) fn excuse(&self, claim: &Claim) -> Option<HeaderValue> {
        HeaderValue::try_from(digits(&self.prove(claim.number, BUSY))).ok()
    }

    /// Whether it has such a field.
    pub(super) fn excuses(&self, number: u128, fields: &HeaderMap) -> bool {
        self.has_proof(number, BUSY, fields)
    }

    fn has_proof(&self, number: u128, bytes: &[u8], fields: &HeaderMap) -> bool {
        let digits = fields.get(PROOF).and_then(|value| value.to_str().ok());
        digits.and_then(bytes_of).is_some_and(|mac| self.proves(number, bytes, &mac))
    }

    /// Whether it is the proof for these bytes.
    pub(super) fn proves(&self, number: u128, bytes: &[u8], mac: &[u8]) -> bool {
        hmac::verify(&self.key, &answered(number, bytes), mac).is_ok()
    }
}

impl Claim {
    /// What the fields of a request say. Its signature isn't checked yet.
    ///
    /// # Errors
    /// [`Refused`], if it has another form or another time.
    pub(super) fn of(fields: &HeaderMap, now: SystemTime) -> Result<Self, Refused> {
        let text = fields.get(SIGNATURE).and_then(|value| value.to_str().ok()).ok_or(Refused::Unsigned)?;
        let claim = Self::parse(text).ok_or(Refused::Wrong)?;
        let is_of_now = milliseconds(now).abs_diff(claim.time_ms) <= WINDOW.as_millis() as u64;
        is_of_now.then_some(claim).ok_or(Refused::OtherTime)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let (time_ms, number, signature) = (words.next()?, words.next()?, words.next()?);
        let signature = bytes_of(signature).filter(|signature| signature.len() == MAC_BYTES)?;
        Some(Self { time_ms: time_ms.parse().ok()?, number: u128::from_str_radix(number, 16).ok()?, signature })
    }
}

impl Used {
    /// Notes a number. Those of requests whose time is over are forgotten: [`Claim::of`] refuses them.
    fn take(&mut self, number: u128, time_ms: u64, now_ms: u64, most: usize) -> Result<(), Refused> {
        let oldest = now_ms.saturating_sub(WINDOW.as_millis() as u64) / 1000;
        while let Some(first) = self.0.first_entry()
            && *first.key() < oldest
        {
            first.remove();
        }
        let second = time_ms / 1000;
        if self.0.get(&second).is_some_and(|numbers| numbers.contains(&number)) {
            return Err(Refused::Replayed);
        }
        if self.0.values().map(HashSet::len).sum::<usize>() >= most {
            return Err(Refused::Full);
        }
        self.0.entry(second).or_default().insert(number);
        Ok(())
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

fn answered(number: u128, bytes: &[u8]) -> Vec<u8> {
    [b"eyewall answer 1\n", &number.to_le_bytes()[..], bytes].concat()
}

/// Hexadecimal digits.
fn digits(bytes: &[u8]) -> String {
    let digit = |four_bits: u8| char::from_digit(four_bits.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

/// The bytes of hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
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

    fn check(key: &Key, url: &str, fields: &HeaderMap, question: &[u8], now: SystemTime) -> Result<u128, Refused> {
        Claim::of(fields, now).and_then(|claim| key.check(url, &claim, question, now))
    }

    #[test]
    fn a_question_is_accepted_once() {
        let key = key(&"k".repeat(32));
        for seconds in [1000, 1029, 1100, 1200] {
            let (signature, number) = key.sign(URL, b"question", at(seconds)).unwrap();
            let signed = fields(signature);
            assert_eq!(check(&key, URL, &signed, b"question", at(seconds + 1)), Ok(number));
            for later in [1, 2, 29, 30] {
                let again = check(&key, URL, &signed, b"question", at(seconds + later));
                assert_eq!(again, Err(Refused::Replayed));
            }
        }
        assert_eq!(key.used.lock().unwrap().0.len(), 1, "the numbers of earlier times are forgotten");
    }

    #[test]
    fn too_many_questions_are_refused_until_their_time_is_over() {
        let mut used = Used::default();
        assert_eq!(
            (0..4).map(|number| used.take(number, 1000, 1000, 3)).collect::<Vec<_>>(),
            [Ok(()), Ok(()), Ok(()), Err(Refused::Full)]
        );
        assert_eq!(used.take(2, 1000, 1000, 3), Err(Refused::Replayed));
        assert_eq!(used.take(5, 30_000, 31_000, 3), Err(Refused::Full));
        assert_eq!(used.take(5, 32_000, 32_000, 3), Ok(()));
    }

    #[test]
    fn nothing_of_a_question_can_be_changed() {
        let (key, other) = (key(&"k".repeat(32)), key(&"o".repeat(32)));
        let (signature, number) = key.sign(URL, b"question", at(1000)).unwrap();
        let signed = fields(signature.clone());
        assert_eq!(check(&other, URL, &signed, b"question", at(1000)), Err(Refused::Wrong));
        assert_eq!(check(&key, "http://10.0.0.2:8443", &signed, b"question", at(1000)), Err(Refused::Wrong));
        assert_eq!(check(&key, URL, &signed, b"question2", at(1000)), Err(Refused::Wrong));
        assert_eq!(check(&key, URL, &HeaderMap::new(), b"question", at(1000)), Err(Refused::Unsigned));
        for late in [900, 960, 1040, 5000] {
            assert_eq!(check(&key, URL, &signed, b"question", at(late)), Err(Refused::OtherTime), "{late}");
        }
        let text = signature.to_str().unwrap();
        for wrong in ["", "1 2", "x y z", &text[..text.len() - 2], &text.replacen(' ', " 1", 1)] {
            let signed = fields(HeaderValue::from_str(wrong).unwrap());
            assert_eq!(check(&key, URL, &signed, b"question", at(1000)), Err(Refused::Wrong), "{wrong}");
        }
        assert_eq!(check(&key, URL, &signed, b"question", at(1000)), Ok(number), "no wrong one has used the number");
    }

    #[test]
    fn only_who_has_the_key_can_answer() {
        let (key, other) = (key(&"k".repeat(32)), key(&"o".repeat(32)));
        let promised = |key: &Key, number| HeaderMap::from_iter(key.promise(number).map(|value| (PROOF, value)));
        assert!(key.promises(7, &promised(&key, 7)));
        assert!(!key.promises(7, &promised(&key, 8)) && !key.promises(7, &promised(&other, 7)));
        assert!(!key.promises(7, &HeaderMap::new()));
        let claim = Claim { time_ms: 0, number: 7, signature: Vec::new() };
        let excused = HeaderMap::from_iter(key.excuse(&claim).map(|value| (PROOF, value)));
        assert!(key.excuses(7, &excused) && !key.excuses(8, &excused) && !other.excuses(7, &excused));
        assert!(!key.promises(7, &excused) && !key.excuses(7, &promised(&key, 7)));
        let proof = key.prove(7, b"head");
        assert!(key.proves(7, b"head", &proof) && !other.proves(7, b"head", &proof));
        assert!(!key.proves(8, b"head", &proof) && !key.proves(7, b"heat", &proof) && !key.proves(7, b"", &proof));
    }

    #[test]
    fn a_short_key_is_refused() {
        assert!(Key::new(b"short").is_none());
    }
}
