//! What the origin is asked for where a client wants ranges of something that isn't stored, and what comes of that.

use std::ops::Range;
use std::time::SystemTime;

use eyewall_http::field::range::{ByteRanges, ContentRange, RangeSpec};
use eyewall_http::partial::PartialContent;
use eyewall_http::strong_validator;
use http::header::RANGE;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::serve::proxy::Proxy;
use crate::serve::proxy::pages::Pages;
use eyewall_page_cache::layout::{FRAGMENT_BYTES_MAX, fragment_bytes, widened};

/// What the origin is asked for where a client wants ranges of something that isn't stored: the fragments of the first of them.
/// Those of the others are asked for when they are wanted, as the length is known then.
///
/// So many bytes at the end are asked for as they are: nobody knows yet where a fragment begins among them.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve::proxy) struct Part {
    /// The first range that the client wants.
    wanted: RangeSpec,
    place: Place,
    fragment_bytes: u32,
    /// Whether the client wants more than this.
    has_more: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// From the start of a fragment to the end of one, or to the end of all.
    From(u64, Option<u64>),
    /// So many bytes at the end.
    End(u64),
}

/// A request for more ranges goes past the volume: each may cost the origin a request.
const RANGES_MAX: usize = 8;

/// What a 206 means that came for a [`Part`].
pub(in crate::serve::proxy) enum Came {
    /// All of a small representation: it is as if the origin had answered by 200 with these fields.
    Whole(HeaderMap),
    /// A part of a large one: whole fragments that have what the client wants, if that is before the end, behind bytes that are skipped.
    /// With the fields and the length of its 200.
    Part { fields: HeaderMap, range: Range<u64>, skipped: u64, length: u64 },
    /// Bytes at the end, as the client asked for them: too few for whole fragments. What is asked for next may be stored.
    End,
    /// Nothing that could be stored.
    Nothing,
}

/// What of a 206 a client gets that is not answered from the volume.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::serve::proxy) enum Slice {
    /// All of it.
    All,
    /// `of_body` of its bytes, which are `range` of the representation.
    Bytes { of_body: Range<u64>, range: Range<u64>, complete_length: Option<u64> },
}

impl Part {
    /// None where the request has no range, or too many, or asks for the last no bytes: such a request goes past the volume.
    pub(in crate::serve::proxy) fn of(request: &HeaderMap, pages: &Pages) -> Option<Self> {
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
    pub(in crate::serve::proxy) fn is_all(self) -> bool {
        !self.has_more
    }

    /// The `Range` that asks for it.
    pub(in crate::serve::proxy) fn ask(self, request: &mut HeaderMap) {
        let range = match self.place {
            Place::From(start, None) => format!("bytes={start}-"),
            Place::From(start, Some(end)) => format!("bytes={start}-{}", end - 1),
            Place::End(length) => format!("bytes=-{length}"),
        };
        if let Ok(value) = HeaderValue::try_from(range) {
            request.insert(RANGE, value);
        }
    }

    /// What a 206 brings of the 200, be it what was asked for or not.
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

    /// What the client gets of a 206 that has these fields: what it wants, as far as that is there. An origin may send other bytes
    /// than it was asked for (RFC 9110, section 15.3.7).
    ///
    /// None: the client wants a range behind the end, and its fragment alone has bytes.
    pub(in crate::serve::proxy) fn slice(self, fields: &HeaderMap) -> Option<Slice> {
        let Some(ContentRange::Satisfied { range, complete_length }) = ContentRange::of(fields) else {
            return Some(Slice::All);
        };
        // Of an unknown length, what came is taken to go up to the end.
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

impl Proxy {
    /// What came for a part.
    pub(in crate::serve::proxy) fn came(&self, part: Part, fields: &HeaderMap, received: SystemTime) -> Came {
        let Some(partial) = Part::partial(fields, received) else { return Came::Nothing };
        let Some(length) = partial.complete_length() else { return Came::Nothing };
        let fields = partial.fields().clone();
        let is_small = length <= self.entry_bytes_max().min(FRAGMENT_BYTES_MAX);
        match partial.range_set().ranges() {
            [range] if *range == (0..length) && is_small => Came::Whole(fields),
            [range] if length <= self.object_bytes_max() && strong_validator::if_range(&fields, received).is_some() => {
                let kept = part.fragments_in(range, length);
                // A range that begins behind the end gets 416, for which the length is enough.
                let suffices = part
                    .wanted
                    .within(length)
                    .map_or(kept.start < kept.end, |wanted| kept.start <= wanted.start && wanted.end <= kept.end);
                if suffices {
                    Came::Part { fields, skipped: kept.start - range.start, range: kept, length }
                } else if matches!(part.place, Place::End(_)) {
                    Came::End
                } else {
                    Came::Nothing
                }
            }
            _ if matches!(part.place, Place::End(_)) => Came::End,
            _ => Came::Nothing,
        }
    }
}
