//! Answers to range requests: 206 with one part or several, 416 (RFC 9110, sections 14, 15.3.7 and 15.5.17).
//!
//! An answer names the bytes of the body and their number; it doesn't contain them.

use std::ops::Range;

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::field::push_line;
use crate::field::range::{ByteRanges, ContentRange};

/// The maximum number of overlapping ranges in a request; with more, the `Range` is ignored (section 14.2).
pub const OVERLAPS_MAX: usize = 2;

/// `Content-Digest` (RFC 9530) describes the content of one message, so it is wrong for another range.
pub(crate) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// The predecessor of `Content-Digest`, which some servers still send.
pub(crate) const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");

/// The answer to a request for ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Served {
    /// 200 with everything: the ranges overlap too much, or the request wants the end of an empty
    /// representation.
    Whole,
    /// 206 with these bytes, by [`fields_of_part`].
    Part(Range<u64>),
    /// 206 with these parts, at least two, by [`Multipart`].
    Parts(Vec<Range<u64>>),
    /// 416, by [`fields_of_unsatisfiable`].
    Unsatisfiable,
}

/// The answer to a request for ranges of a representation of `complete_length` bytes.
///
/// Ranges end at its end. Ranges that overlap or touch are merged. Parts have the order of the request; a merged
/// part has the place of its first range (section 15.3.7.2).
pub fn select(ranges: &ByteRanges, complete_length: u64) -> Served {
    let wanted: Vec<_> = ranges.specs().iter().filter_map(|spec| spec.within(complete_length)).collect();
    match wanted[..] {
        [] => Served::Unsatisfiable,
        // A 206 can't express an empty part of an empty representation.
        _ if complete_length == 0 => Served::Whole,
        _ => arranged(&wanted),
    }
}

/// The answer for these ranges, of which there is at least one, and none is empty.
pub(crate) fn arranged(wanted: &[Range<u64>]) -> Served {
    let mut sorted: Vec<_> = wanted.iter().cloned().enumerate().collect();
    sorted.sort_by_key(|(_, range)| range.start);
    // With the place of its first range in the request.
    let mut merged: Vec<(usize, Range<u64>)> = Vec::with_capacity(sorted.len());
    let mut overlaps = 0;
    for (place, range) in sorted {
        match merged.last_mut() {
            Some((first_place, last)) if range.start <= last.end => {
                overlaps += usize::from(range.start < last.end);
                *first_place = place.min(*first_place);
                last.end = range.end.max(last.end);
            }
            _ => merged.push((place, range)),
        }
    }
    if overlaps > OVERLAPS_MAX {
        return Served::Whole;
    }
    merged.sort_by_key(|(place, _)| *place);
    let mut parts: Vec<_> = merged.into_iter().map(|(_, range)| range).collect();
    match parts.len() {
        1 => Served::Part(parts.remove(0)),
        _ => Served::Parts(parts),
    }
}

/// The header fields of a 206 with one part, from those of the 200. `None` for an empty range.
///
/// `complete_length` is `None` if it isn't known.
pub fn fields_of_part(whole: &HeaderMap, range: &Range<u64>, complete_length: Option<u64>) -> Option<HeaderMap> {
    let content_range = ContentRange::Satisfied { range: range.clone(), complete_length }.value()?;
    let mut fields = without_digests(whole);
    fields.insert(CONTENT_RANGE, content_range);
    fields.insert(CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    Some(fields)
}

/// The header field of a 416: `Content-Range: bytes */n`. None of the 200's fields belong to it.
pub fn fields_of_unsatisfiable(complete_length: u64) -> HeaderMap {
    let content_range = ContentRange::Unsatisfied { complete_length }.value();
    content_range.map(|value| (CONTENT_RANGE, value)).into_iter().collect()
}

/// The boundary between the parts of a multipart body.
///
/// It must not occur in the body. A boundary of some 128 random bits needs no check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boundary(String);

/// An invalid boundary.
#[derive(Debug, thiserror::Error)]
#[error("a boundary has 1 to 70 letters, digits, '-' or '_'; choose another one")]
pub struct InvalidBoundary;

impl Boundary {
    /// Accepts 1 to 70 letters, digits, `-` and `_`. RFC 2046 permits more; this needs no quotation marks,
    /// and can't inject anything into a head.
    pub fn new(text: impl Into<String>) -> Result<Self, InvalidBoundary> {
        let text = text.into();
        let is_sound = (1..=70).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if is_sound { Ok(Self(text)) } else { Err(InvalidBoundary) }
    }

    /// Makes one from random bits.
    pub fn of_bits(bits: u128) -> Self {
        Self(format!("{bits:032x}"))
    }
}

/// A body of type `multipart/byteranges` (section 14.6), without the bytes of the representation.
#[derive(Debug, Clone)]
pub struct Multipart {
    boundary: Boundary,
    media_type: Option<HeaderValue>,
    ranges: Vec<Range<u64>>,
    complete_length: Option<u64>,
    content_length: u64,
}

/// A segment of a multipart body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A boundary and the head of the next part, or the last boundary.
    Head(Vec<u8>),
    /// Bytes of the representation.
    Bytes(Range<u64>),
}

impl Segment {
    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Head(text) => text.len() as u64,
            Self::Bytes(range) => range.end - range.start,
        }
    }
}

impl Multipart {
    /// A body of these parts, in this order. `whole` has the fields of the 200, whose content type each part
    /// gets.
    ///
    /// `None` if there is no part, if one is empty, or if the length exceeds 64 bits.
    pub fn new(
        whole: &HeaderMap,
        ranges: Vec<Range<u64>>,
        complete_length: Option<u64>,
        boundary: Boundary,
    ) -> Option<Self> {
        if ranges.is_empty() || ranges.iter().any(Range::is_empty) {
            return None;
        }
        let media_type = whole.get(CONTENT_TYPE).cloned();
        let mut body = Self { boundary, media_type, ranges, complete_length, content_length: 0 };
        let content_length = body.segments().try_fold(0_u64, |sum, segment| sum.checked_add(segment.length()))?;
        body.content_length = content_length;
        Some(body)
    }

    /// The length of the body in bytes.
    pub fn content_length(&self) -> u64 {
        self.content_length
    }

    /// The header fields of the 206, from those of the 200. Only the body names the ranges.
    pub fn fields(&self, whole: &HeaderMap) -> HeaderMap {
        let mut fields = without_digests(whole);
        fields.remove(CONTENT_RANGE);
        let content_type = format!("multipart/byteranges; boundary={}", self.boundary.0);
        // Letters, digits and the like: always a valid value.
        if let Ok(content_type) = HeaderValue::try_from(content_type) {
            fields.insert(CONTENT_TYPE, content_type);
        }
        fields.insert(CONTENT_LENGTH, HeaderValue::from(self.content_length));
        fields
    }

    /// The segments of the body.
    pub fn segments(&self) -> impl Iterator<Item = Segment> {
        let parts =
            self.ranges.iter().enumerate().flat_map(|(number, range)| {
                [Segment::Head(self.head(number == 0, range)), Segment::Bytes(range.clone())]
            });
        let close = format!("\r\n--{}--\r\n", self.boundary.0);
        parts.chain([Segment::Head(close.into_bytes())])
    }

    fn head(&self, is_first: bool, range: &Range<u64>) -> Vec<u8> {
        let mut head = if is_first { Vec::new() } else { b"\r\n".to_vec() };
        head.extend_from_slice(format!("--{}\r\n", self.boundary.0).as_bytes());
        let content_range = ContentRange::Satisfied { range: range.clone(), complete_length: self.complete_length };
        let lines = [("Content-Type", self.media_type.clone()), ("Content-Range", content_range.value())];
        for (name, value) in lines {
            // A header value has no line breaks.
            if let Some(value) = value {
                push_line(&mut head, name.as_bytes(), value.as_bytes());
            }
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

fn without_digests(whole: &HeaderMap) -> HeaderMap {
    let mut fields = whole.clone();
    fields.remove(CONTENT_DIGEST);
    fields.remove(CONTENT_MD5);
    fields
}
