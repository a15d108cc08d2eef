//! Incomplete responses: which bytes of a representation are stored, which are missing, and how responses are
//! combined (RFC 9111, sections 3.3 and 3.4; RFC 9110, section 15.3.7.3).
//!
//! A 200 that broke off, or a 206, is stored as an incomplete 200. Until it is complete, it answers only requests
//! for ranges that are stored completely, by a 206. A 206 with several parts is not stored, since this crate
//! doesn't read bodies.

use std::iter;
use std::ops::Range;
use std::time::SystemTime;

use http::header::{CONTENT_LENGTH, CONTENT_RANGE};
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::field::range::{ByteRanges, ContentRange, RangeSpec, number};
use crate::ranges::{self, CONTENT_DIGEST, CONTENT_MD5, Served};
use crate::strong_validator;
use crate::update::updated;

/// A set of bytes of a representation: ascending, non-empty ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSet(Vec<Range<u64>>);

impl RangeSet {
    /// Adds a range. An empty range changes nothing.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // The ranges from `from` up to `to` overlap or touch the new one.
        let from = self.0.partition_point(|piece| piece.end < range.start);
        let to = self.0.partition_point(|piece| piece.start <= range.end);
        let touched = &self.0[from..to];
        let start = touched.first().map_or(range.start, |first| first.start.min(range.start));
        let end = touched.last().map_or(range.end, |last| last.end.max(range.end));
        self.0.splice(from..to, iter::once(start..end));
    }

    /// Whether all bytes of a range are in the set.
    pub fn has(&self, range: &Range<u64>) -> bool {
        range.is_empty() || self.0.iter().any(|piece| piece.start <= range.start && range.end <= piece.end)
    }

    /// The parts of a range that are missing.
    pub fn missing(&self, wanted: &Range<u64>) -> RangeSet {
        let mut missing = RangeSet::default();
        let mut at = wanted.start;
        for piece in self.0.iter().filter(|piece| piece.end > wanted.start && piece.start < wanted.end) {
            missing.insert(at..piece.start);
            at = piece.end;
        }
        missing.insert(at..wanted.end);
        missing
    }

    /// The ranges, ascending.
    pub fn ranges(&self) -> &[Range<u64>] {
        &self.0
    }
}

impl Extend<Range<u64>> for RangeSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl FromIterator<Range<u64>> for RangeSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut range_set = Self::default();
        range_set.extend(ranges);
        range_set
    }
}

/// The stored part of a representation, from one response or several combined ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialContent {
    fields: HeaderMap,
    range_set: RangeSet,
    complete_length: Option<u64>,
    received: SystemTime,
    is_of_200: bool,
}

impl PartialContent {
    /// The part in a response to GET: its first `bytes` bytes, received at `received`. `is_whole` says that
    /// the body came to its end, and didn't break off.
    ///
    /// `None` if it can't be stored as a part: the status is neither 200 nor 206, a 206 has no
    /// `Content-Range` in bytes, the body is longer than the fields say, or the part is empty.
    pub fn of(
        status: StatusCode,
        fields: &HeaderMap,
        bytes: u64,
        is_whole: bool,
        received: SystemTime,
    ) -> Option<Self> {
        let (range, complete_length) = match status {
            StatusCode::OK if is_whole => (0..bytes, Some(bytes)),
            StatusCode::OK => {
                let length = fields.get(CONTENT_LENGTH).and_then(|length| number(length.as_bytes().trim_ascii()));
                (0..bytes, length)
            }
            StatusCode::PARTIAL_CONTENT => match ContentRange::of(fields)? {
                ContentRange::Satisfied { range, complete_length } if bytes <= range.end - range.start => {
                    (range.start..range.start + bytes, complete_length)
                }
                _ => return None,
            },
            _ => return None,
        };
        let is_of_200 = status == StatusCode::OK;
        let is_empty = range.is_empty() && !(is_whole && is_of_200);
        if is_empty || complete_length.is_some_and(|length| length < range.end) {
            return None;
        }
        let mut fields = fields.clone();
        if !is_of_200 {
            // The fields describe the part.
            fields.remove(CONTENT_DIGEST);
            fields.remove(CONTENT_MD5);
        }
        Some(
            Self { fields, range_set: iter::once(range).collect(), complete_length, received, is_of_200 }.with_length(),
        )
    }

    /// Combines this with a newer response. `None` if they can't be combined: they share no strong validator,
    /// or differ in the complete length.
    ///
    /// The newer response's fields replace those with the same name, as in every update. Those of a newer 200
    /// replace all.
    pub fn combined(&self, newer: &Self) -> Option<Self> {
        if !strong_validator::is_shared(&self.fields, self.received, &newer.fields, newer.received) {
            return None;
        }
        let complete_length = match (self.complete_length, newer.complete_length) {
            (Some(ours), Some(theirs)) if ours != theirs => return None,
            (ours, theirs) => theirs.or(ours),
        };
        let mut range_set = self.range_set.clone();
        range_set.extend(newer.range_set.0.iter().cloned());
        let end = range_set.0.last().map_or(0, |last| last.end);
        if complete_length.is_some_and(|length| length < end) {
            return None;
        }
        let fields = if newer.is_of_200 { newer.fields.clone() } else { updated(&self.fields, &newer.fields) };
        let is_of_200 = self.is_of_200 || newer.is_of_200;
        Some(Self { fields, range_set, complete_length, received: newer.received, is_of_200 }.with_length())
    }

    /// Whether the representation is complete, so that it answers as a 200.
    pub fn is_complete(&self) -> bool {
        self.complete_length.is_some_and(|length| self.range_set.has(&(0..length)))
    }

    /// The header fields of a 200: without `Content-Range`, and with the complete length if it is known.
    pub fn fields(&self) -> &HeaderMap {
        &self.fields
    }

    /// The stored bytes.
    pub fn range_set(&self) -> &RangeSet {
        &self.range_set
    }

    /// The complete length in bytes, if any response named it.
    pub fn complete_length(&self) -> Option<u64> {
        self.complete_length
    }

    /// The answer to a request for ranges. `None` if bytes are missing, or if the answer depends on an
    /// unknown complete length.
    pub fn select(&self, asked: &ByteRanges) -> Option<Served> {
        let served = if let Some(length) = self.complete_length {
            ranges::select(asked, length)
        } else {
            let bounded = asked.specs().iter().map(|spec| match *spec {
                RangeSpec::FromTo(first, last) => last.checked_add(1).map(|end| first..end),
                RangeSpec::From(_) | RangeSpec::Suffix(_) => None,
            });
            ranges::arranged(&bounded.collect::<Option<Vec<_>>>()?)
        };
        let has_all = match &served {
            Served::Whole => self.is_complete(),
            Served::Part(range) => self.range_set.has(range),
            Served::Parts(ranges) => ranges.iter().all(|range| self.range_set.has(range)),
            Served::Unsatisfiable => true,
        };
        has_all.then_some(served)
    }

    /// Turns the fields into those of a complete 200.
    fn with_length(mut self) -> Self {
        self.fields.remove(CONTENT_RANGE);
        self.fields.remove(CONTENT_LENGTH);
        if let Some(length) = self.complete_length {
            self.fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        self
    }
}
