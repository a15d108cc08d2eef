//! What the cache asks the origin for when a client wants ranges that aren't stored, and what the answer means.

use std::ops::Range;
use std::time::SystemTime;

use eyewall_http::field::range::{ByteRanges, ContentRange, RangeSpec};
use eyewall_http::partial::PartialContent;
use eyewall_http::strong_validator;
use http::header::RANGE;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::layout::{FRAGMENT_BYTES_MAX, fragment_bytes, widened};
use crate::pages::Pages;
use crate::upstream::Upstream;
use crate::visit::Visit;

/// What the cache asks the origin for when a client wants ranges of a response that isn't stored: the fragments of the first range.
/// The answer tells the length, and the cache then asks for the other ranges when the client gets there.
///
/// A range that counts from the end is asked for as it is, because the cache doesn't know yet where its fragments begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// The first range that the client wants.
    wanted: RangeSpec,
    place: Place,
    fragment_bytes: u32,
    /// Whether the client wants further ranges.
    has_more: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// From the start of a fragment to the end of one, or to the end of the body.
    From(u64, Option<u64>),
    /// This many bytes at the end.
    End(u64),
}

/// A request with more ranges bypasses the volume, because each range may cost the origin a request.
const RANGES_MAX: usize = 8;

/// The meaning of a 206 that arrived for a [`Part`].
pub(crate) enum Came {
    /// The whole of a small representation, as if the origin had answered 200 with these fields.
    Whole(HeaderMap),
    /// A part of a large representation: whole fragments after `skipped` bytes. They have what the client wants, unless that lies
    /// beyond the end. The fields and the length are those of the 200.
    Part { fields: HeaderMap, range: Range<u64>, skipped: u64, length: u64 },
    /// Bytes at the end, as the client asked for them: too few for whole fragments. The next request's response may be stored.
    End,
    /// Nothing that can be stored.
    Nothing,
}

/// What a client gets of a 206 when the answer doesn't come from the volume.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// The whole 206.
    All,
    /// The bytes `of_body` of its body, which are `range` of the representation.
    Bytes { of_body: Range<u64>, range: Range<u64>, complete_length: Option<u64> },
}

impl Part {
    /// None if the request has no range, too many ranges, or a suffix range of zero bytes. Such a request bypasses the volume.
    pub(crate) fn of(request: &HeaderMap, pages: &Pages) -> Option<Self> {
        let ranges = ByteRanges::of(request)?;
        let (first, others) = ranges.specs().split_first()?;
        let fragment_bytes = fragment_bytes(pages.store.entry_bytes_max());
        let place = match *first {
            RangeSpec::Suffix(0) => return None,
            RangeSpec::Suffix(length) => Place::End(length),
            RangeSpec::From(_) | RangeSpec::FromTo(..) => {
                let (start, end) = widened(*first, fragment_bytes)?;
                Place::From(start, end)
            }
        };
        let has_more = !others.is_empty();
        (others.len() < RANGES_MAX).then_some(Self { wanted: *first, place, fragment_bytes, has_more })
    }

    /// Whether the client wants nothing else.
    pub(crate) fn is_all(self) -> bool {
        !self.has_more
    }

    /// Whether what comes has probably no whole fragments, so that nothing can be stored.
    pub(crate) fn is_of_end(self) -> bool {
        matches!(self.place, Place::End(_))
    }

    /// Sets the `Range` that asks for it.
    pub(crate) fn ask(self, request: &mut HeaderMap) {
        let range = match self.place {
            Place::From(start, None) => format!("bytes={start}-"),
            Place::From(start, Some(end)) => format!("bytes={start}-{}", end - 1),
            Place::End(length) => format!("bytes=-{length}"),
        };
        if let Ok(value) = HeaderValue::try_from(range) {
            request.insert(RANGE, value);
        }
    }

    /// What a 206 brings of the 200, whether or not it is what the cache asked for.
    fn partial(fields: &HeaderMap, received: SystemTime) -> Option<PartialContent> {
        let ContentRange::Satisfied { range, complete_length: Some(_) } = ContentRange::of(fields)? else {
            return None;
        };
        PartialContent::of(StatusCode::PARTIAL_CONTENT, fields, range.end - range.start, true, received)
    }

    /// The whole fragments among these bytes of a body of this length.
    fn fragments_in(self, range: &Range<u64>, length: u64) -> Range<u64> {
        let bytes = u64::from(self.fragment_bytes);
        let end = if range.end == length { length } else { range.end - range.end % bytes };
        range.start.next_multiple_of(bytes)..end
    }

    /// What the client gets of a 206 with these fields: the bytes that it wants, as far as the 206 has them. An origin may send
    /// other bytes than it was asked for (RFC 9110, section 15.3.7).
    ///
    /// None: the client wants a range beyond the end, and only the fragment around it has bytes.
    pub(crate) fn slice(self, fields: &HeaderMap) -> Option<Slice> {
        let Some(ContentRange::Satisfied { range, complete_length }) = ContentRange::of(fields) else {
            return Some(Slice::All);
        };
        // If the length is unknown, the bytes count as the end of the body.
        let Some(wanted) = self.wanted.within(complete_length.unwrap_or(range.end)) else {
            return complete_length.is_none().then_some(Slice::All);
        };
        let (start, end) = (wanted.start.max(range.start), wanted.end.min(range.end));
        if start >= end || (start..end) == range {
            return Some(Slice::All);
        }
        let of_body = start - range.start..end - range.start;
        Some(Slice::Bytes { of_body, range: start..end, complete_length })
    }
}

impl<U: Upstream> Visit<U> {
    /// What arrived for a part.
    pub(crate) fn came(&self, part: Part, fields: &HeaderMap, received: SystemTime) -> Came {
        let Some(partial) = Part::partial(fields, received) else { return Came::Nothing };
        let Some(length) = partial.complete_length() else { return Came::Nothing };
        let fields = partial.fields().clone();
        let is_small =
            length <= self.pages.store.entry_bytes_max().min(self.object_bytes_max()).min(FRAGMENT_BYTES_MAX);
        match partial.range_set().ranges() {
            [range] if *range == (0..length) && is_small => Came::Whole(fields),
            [range] if length <= self.object_bytes_max() && strong_validator::if_range(&fields, received).is_some() => {
                let kept = part.fragments_in(range, length);
                // A range that begins beyond the end gets a 416, which needs only the length.
                let suffices = part
                    .wanted
                    .within(length)
                    .map_or(kept.start < kept.end, |wanted| kept.start <= wanted.start && wanted.end <= kept.end);
                if suffices {
                    Came::Part { fields, skipped: kept.start - range.start, range: kept, length }
                } else if part.is_of_end() {
                    Came::End
                } else {
                    Came::Nothing
                }
            }
            _ if part.is_of_end() => Came::End,
            _ => Came::Nothing,
        }
    }
}
