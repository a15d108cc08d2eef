//! `Range`, `Content-Range` and `Accept-Ranges` in bytes (RFC 9110, section 14).
//!
//! Ranges in here are half-open, `first..last + 1`; those in fields name their last byte.

use std::ops::Range;

use http::header::{ACCEPT_RANGES, CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderValue};

use super::list;

/// So many ranges a request may ask for; a `Range` of more is ignored (section 17.15).
pub const RANGES_MAX: usize = 100;

/// The value of an `Accept-Ranges` that offers ranges of bytes.
pub const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// One range of those that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-last`, with the last byte.
    FromTo(u64, u64),
    /// `first-`: from there to the end.
    From(u64),
    /// `-length`: so many bytes at the end.
    Suffix(u64),
}

/// The ranges of bytes that a request asks for: at least one, at most [`RANGES_MAX`], in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteRanges(Vec<RangeSpec>);

impl ByteRanges {
    /// Reads the `Range` of a request. None if it is absent or to be ignored: another unit than bytes, malformed, too many,
    /// several lines (section 14.2).
    ///
    /// A number that 64 bits don't hold stands for the largest: a position behind every end.
    pub fn of(fields: &HeaderMap) -> Option<Self> {
        let (unit, set) = split_at_byte(only_line(fields, RANGE)?, b'=')?;
        if !unit.eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        // One more than may be, so that the surplus is seen, and not read on.
        let specs: Option<Vec<_>> = list::split(set, b',').take(RANGES_MAX + 1).map(RangeSpec::parse).collect();
        specs.filter(|specs| (1..=RANGES_MAX).contains(&specs.len())).map(Self)
    }

    /// The ranges, in the order of the request.
    pub fn specs(&self) -> &[RangeSpec] {
        &self.0
    }
}

impl RangeSpec {
    fn parse(text: &[u8]) -> Option<Self> {
        let (first, last) = split_at_byte(text, b'-')?;
        match (first, last) {
            (b"", last) => Some(Self::Suffix(saturating_number(last)?)),
            (first, b"") => Some(Self::From(saturating_number(first)?)),
            (first, last) => {
                let (first, last) = (saturating_number(first)?, saturating_number(last)?);
                (first <= last).then_some(Self::FromTo(first, last))
            }
        }
    }

    /// The bytes that it names of a representation of this length. None if it can't be satisfied.
    ///
    /// A suffix of an empty representation is satisfied by no bytes at all, as section 14.1.2 has it.
    pub fn within(self, complete_length: u64) -> Option<Range<u64>> {
        match self {
            Self::FromTo(first, last) => {
                (first < complete_length).then(|| first..last.saturating_add(1).min(complete_length))
            }
            Self::From(first) => (first < complete_length).then_some(first..complete_length),
            Self::Suffix(length) => (length > 0).then(|| complete_length.saturating_sub(length)..complete_length),
        }
    }
}

/// The `Range` by which a cache asks an origin for these bytes. None if there are none.
pub fn request(ranges: &[Range<u64>]) -> Option<HeaderValue> {
    let specs: Vec<_> = ranges
        .iter()
        .filter(|range| range.start < range.end)
        .map(|range| format!("{}-{}", range.start, range.end - 1))
        .collect();
    if specs.is_empty() {
        return None;
    }
    HeaderValue::try_from(format!("bytes={}", specs.join(","))).ok()
}

/// A `Content-Range` (section 14.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes first-last/length` or `bytes first-last/*`: which bytes came, of how many in all.
    Satisfied {
        /// The bytes; never empty.
        range: Range<u64>,
        /// How long the whole representation is, if that is known; not less than the range's end.
        complete_length: Option<u64>,
    },
    /// `bytes */length`: none came, and so long is the whole.
    Unsatisfied {
        /// The length of the whole representation, in bytes.
        complete_length: u64,
    },
}

impl ContentRange {
    /// Reads the field of a response. None if it is absent, malformed, contradicts itself, or stands there twice.
    pub fn of(fields: &HeaderMap) -> Option<Self> {
        Self::parse(only_line(fields, CONTENT_RANGE)?)
    }

    /// Reads a field value; as [`of`](Self::of).
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (unit, rest) = split_at_byte(value.trim_ascii(), b' ')?;
        if !unit.eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        let (range, length) = split_at_byte(rest.trim_ascii_start(), b'/')?;
        if range == b"*" {
            return Some(Self::Unsatisfied { complete_length: number(length)? });
        }
        let (first, last) = split_at_byte(range, b'-')?;
        let (first, end) = (number(first)?, number(last)?.checked_add(1)?);
        let complete_length = if length == b"*" { None } else { Some(number(length)?) };
        let is_sound = first < end && complete_length.is_none_or(|length| end <= length);
        is_sound.then_some(Self::Satisfied { range: first..end, complete_length })
    }

    /// The field's value. None for an empty range, which the field can't express.
    pub fn value(&self) -> Option<HeaderValue> {
        let text = match self {
            Self::Unsatisfied { complete_length } => format!("bytes */{complete_length}"),
            Self::Satisfied { range, .. } if range.is_empty() => return None,
            Self::Satisfied { range: Range { start, end }, complete_length: None } => {
                format!("bytes {start}-{}/*", end - 1)
            }
            Self::Satisfied { range: Range { start, end }, complete_length: Some(length) } => {
                format!("bytes {start}-{}/{length}", end - 1)
            }
        };
        HeaderValue::try_from(text).ok()
    }
}

/// Whether a response offers ranges of bytes: `Accept-Ranges: bytes` says so, any other says no. None if it doesn't say.
pub fn accepts_bytes(fields: &HeaderMap) -> Option<bool> {
    fields.get(ACCEPT_RANGES)?;
    Some(list::members(fields, &ACCEPT_RANGES).any(|unit| unit.eq_ignore_ascii_case(b"bytes")))
}

fn only_line(fields: &HeaderMap, name: http::HeaderName) -> Option<&[u8]> {
    let mut lines = fields.get_all(name).iter();
    let line = lines.next()?;
    lines.next().is_none().then(|| line.as_bytes().trim_ascii())
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|found| *found == byte)?;
    Some((&text[..at], &text[at + 1..]))
}

/// One or more digits. None if there are none, other characters, or more than 64 bits hold.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    folded(digits, |number, digit| number.checked_mul(10)?.checked_add(digit))
}

fn saturating_number(digits: &[u8]) -> Option<u64> {
    folded(digits, |number, digit| Some(number.saturating_mul(10).saturating_add(digit)))
}

fn folded(digits: &[u8], step: fn(u64, u64) -> Option<u64>) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits
        .iter()
        .try_fold(0, |number, byte| byte.is_ascii_digit().then(|| step(number, u64::from(byte - b'0'))).flatten())
}
