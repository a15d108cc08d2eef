//! What the origin is asked for where a client wants ranges of something that isn't stored, and what comes of that.

use std::ops::Range;
use std::time::SystemTime;

use eyewall_http::field::range::{ByteRanges, ContentRange, RangeSpec};
use eyewall_http::partial::Gathered;
use eyewall_http::ranges::{self, Served};
use eyewall_http::strong;
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::layout::{FRAGMENT_BYTES_MAX, fragment_bytes, widened};
use crate::serve::proxy::Proxy;
use crate::serve::proxy::pages::Pages;

/// What the origin is asked for where a client wants ranges of something that isn't stored: the fragments of the first of them.
/// Those of the others are asked for when they are wanted, as the length is known then.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve::proxy) struct Part {
    place: Place,
    fragment_bytes: u32,
    /// Whether the client wants more than this.
    has_more: bool,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    /// From the start of a fragment to the end of one, or to the end of all.
    From(u64, Option<u64>),
    /// So many bytes at the end, nearly a fragment more than are wanted: one begins among these.
    End(u64),
}

/// A request for more ranges goes past the volume: each may cost the origin a request.
const RANGES_MAX: usize = 8;

/// What a 206 means that came for a [`Part`].
pub(in crate::serve::proxy) enum Came {
    /// All of a small representation: it is as if the origin had answered by 200 with these fields.
    Whole(HeaderMap),
    /// A part of a large one, from the start of a fragment on, behind bytes that are skipped. With the fields and the length of
    /// its 200.
    Part { fields: HeaderMap, range: Range<u64>, skipped: u64, length: u64 },
    /// Nothing that could be stored.
    Nothing,
}

impl Part {
    /// None where the request has no range, or too many, or asks for the last no bytes: such a request goes past the volume.
    pub(in crate::serve::proxy) fn of(request: &HeaderMap, pages: &Pages) -> Option<Self> {
        let ranges = ByteRanges::of(request)?;
        let (first, others) = ranges.specs().split_first()?;
        let fragment_bytes = fragment_bytes(pages.store.entry_bytes_max());
        let place = match *first {
            RangeSpec::Suffix(0) => return None,
            RangeSpec::Suffix(length) => Place::End(length.saturating_add(u64::from(fragment_bytes) - 1)),
            RangeSpec::From(_) | RangeSpec::FromTo(..) => {
                let (start, end) = widened(*first, fragment_bytes)?;
                Place::From(start, end)
            }
        };
        (others.len() < RANGES_MAX).then_some(Self { place, fragment_bytes, has_more: !others.is_empty() })
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

    /// What a 206 brings of the 200, if it is just this.
    fn gathered(self, fields: &HeaderMap, received: SystemTime) -> Option<Gathered> {
        let ContentRange::Satisfied { range, complete_length: Some(length) } = ContentRange::of(fields)? else {
            return None;
        };
        let expected = match self.place {
            Place::From(start, end) => start..end.map_or(length, |end| end.min(length)),
            Place::End(wanted) => length.saturating_sub(wanted)..length,
        };
        if range != expected {
            return None;
        }
        Gathered::of(StatusCode::PARTIAL_CONTENT, fields, range.end - range.start, true, received)
    }
}

/// Whether a 206 is what the client itself asked for.
pub(in crate::serve::proxy) fn is_asked_for(request: &HeaderMap, answer: &HeaderMap) -> bool {
    let (Some(asked), Some(ContentRange::Satisfied { range, complete_length: Some(length) })) =
        (ByteRanges::of(request), ContentRange::of(answer))
    else {
        return false;
    };
    !request.contains_key(IF_RANGE) && ranges::select(&asked, length) == Served::Part(range)
}

impl Proxy {
    /// What came for a part.
    pub(in crate::serve::proxy) fn came(&self, part: Part, fields: &HeaderMap, received: SystemTime) -> Came {
        let Some(gathered) = part.gathered(fields, received) else { return Came::Nothing };
        let Some(length) = gathered.complete_length() else { return Came::Nothing };
        let fields = gathered.fields().clone();
        let is_small = length <= self.entry_bytes_max().min(FRAGMENT_BYTES_MAX);
        match gathered.pieces().ranges() {
            [range] if *range == (0..length) && is_small => Came::Whole(fields),
            [range] if length <= self.object_bytes_max() && strong::if_range(&fields, received).is_some() => {
                let start = range.start.next_multiple_of(part.fragment_bytes.into());
                Came::Part { fields, range: start..range.end, skipped: start - range.start, length }
            }
            _ => Came::Nothing,
        }
    }
}
