//! `Range`, `Content-Range` and `Accept-Ranges` in bytes (RFC 9110, section 14).
//!
//! Ranges in this crate are half-open, `first..last + 1`; ranges in fields name their last byte.

use std::ops::Range;

use http::header::{ACCEPT_RANGES, CONTENT_RANGE, RANGE};
use http::{HeaderMap, HeaderValue};

use super::list;

/// The maximum number of ranges in a request; a `Range` with more is ignored (section 17.15).
pub const RANGES_MAX: usize = 100;

/// The value of `Accept-Ranges` that offers ranges of bytes.
pub const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// One requested range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSpec {
    /// `first-last`, with the last byte.
    FromTo(u64, u64),
    /// `first-`: from there to the end.
    From(u64),
    /// `-length`: the last so many bytes.
    Suffix(u64),
}

/// The requested ranges of bytes: at least one, at most [`RANGES_MAX`], in the request's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteRanges(Vec<RangeSpec>);

impl ByteRanges {
    /// Reads the `Range` of a request. `None` if it is absent or must be ignored: another unit than bytes,
    /// malformed, too many ranges, or several lines (section 14.2).
    ///
    /// A number beyond 64 bits counts as the largest: a position after every end.
    pub fn of(fields: &HeaderMap) -> Option<Self> {
        let (unit, set) = split_at_byte(only_line(fields, RANGE)?, b'=')?;
        if !unit.eq_ignore_ascii_case(b"bytes") {
            return None;
        }
        // Read one more than allowed, to notice the excess without reading on.
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

    /// The bytes that it names in a representation of this length. `None` if it can't be satisfied.
    ///
    /// A suffix of an empty representation is satisfied by no bytes (section 14.1.2).
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

/// The `Range` with which a cache requests these bytes from an origin. `None` if there are none.
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
    /// `bytes first-last/length` or `bytes first-last/*`: which bytes the response has, and the complete
    /// length.
    Satisfied {
        /// The bytes; never empty.
        range: Range<u64>,
        /// The complete length, if known; not less than the range's end.
        complete_length: Option<u64>,
    },
    /// `bytes */length`: no bytes, and the complete length.
    Unsatisfied {
        /// The complete length in bytes.
        complete_length: u64,
    },
}

impl ContentRange {
    /// Reads the field of a response. `None` if it is absent, malformed, contradictory or repeated.
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

    /// The field's value. `None` for an empty range, which the field can't express.
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

/// Whether a response offers ranges of bytes: yes if `Accept-Ranges` is `bytes`, no for any other value, `None`
/// without the field.
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

/// One or more digits. `None` if there are none, other characters, or a number beyond 64 bits.
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
