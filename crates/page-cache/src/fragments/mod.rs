//! Large bodies, stored in fragments.
//!
//! ```text
//! key of the address or variant       head: terms, fields, layout (length, generation, bytes of a fragment); no value
//! address, " ", generation, "/", n    fragment n
//! ```
//! Invariants:
//!
//! - Only a head leads to its fragments: its generation is part of their keys, and no other head has that generation. So to remove,
//!   purge or replace the head is to drop all its fragments. They have no times of their own, and eviction frees them later. A
//!   renewed head keeps its fragments.
//! - All bytes under one generation are of one representation. They come from one answer of the origin, or from several that share
//!   a strong validator and the complete length (RFC 9110, section 15.3.7.3; RFC 9111, section 3.4). Without a strong validator,
//!   nothing is added to the bytes of one answer.
//! - Any fragment may be evicted at any time. Then the cache asks for it again, or the answer ends as an incomplete one. The answer
//!   never goes on with other bytes.
//! - The bytes outside the volume are bounded, however long the body is: about a fragment for each run that arrives, and one pinned
//!   fragment for each client.
//!
//! If a body has a strong validator and a known length, its head is stored first, so that other requests can use the fragments so
//! far. The body is received as fast as it can be stored. Any other body is stored while clients read it, as fast as the slowest
//! takes it, and its head is stored last.
//!
//! ```text
//! answer    what a client gets           sequence  ── fragment by fragment, from the volume or from a run
//! part      a range that isn't stored: what the cache asks the upstream for
//! opening   head first, then the body    inflow    ── bytes that arrive, into fragments
//! keeping   body first, then the head    gather    ── asks for missing fragments
//!                                        run       ── which request asks for which bytes, and its readers
//! ```

mod answer;
mod gather;
mod inflow;
mod keeping;
mod opening;
mod part;
pub(crate) mod run;
mod sequence;

use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::SystemTime;

use bytes::Bytes;
use eyewall::Epoch;
use eyewall_http::partial::PartialContent;
use eyewall_http::ranges::Segment;
use eyewall_http::strong_validator;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::fill::kind;
use crate::generation::generation;
use crate::head::{Head, Kind};
use crate::layout::{Layout, fragment_bytes, key_of};
use crate::pages::Pages;
use crate::selection::Stored;
use crate::store::{Store, Times};
use crate::upstream::{BoxError, Failure};
pub(crate) use answer::{FRAGMENTS_LOOKED_AT, Told, Unusable};
pub(crate) use inflow::Inflow;
pub(crate) use keeping::Keeping;
pub(crate) use opening::Opening;
pub(crate) use part::{Came, Part, Slice};
pub(crate) use sequence::Sequence;

/// The longest body may take this part of a volume.
const OBJECT_DIVISOR: u64 = 4;

/// A body in fragments. Any of them may be missing.
#[derive(Debug)]
pub(crate) struct Object {
    /// The key of the address.
    address: Vec<u8>,
    /// The key of the head, once it is stored.
    head_key: OnceLock<Vec<u8>>,
    layout: Layout,
    /// The prefix of the keys of all its fragments.
    prefix: Vec<u8>,
    /// What further parts have to match.
    partial: PartialContent,
    /// The validator for requests for more of the body; none without a strong validator.
    pub(crate) if_range: Option<HeaderValue>,
    tags: Vec<String>,
}

/// Why bytes of a body are unavailable.
#[derive(Debug, Clone)]
pub(crate) enum Lack {
    /// The origin gave no answer.
    Failed(Failure),
    /// The origin has another body by now, or doesn't send parts.
    Changed,
    /// The body has no strong validator.
    Unaskable,
    /// The body was cut off, for this reason.
    Broken(io::ErrorKind, String),
}

impl Lack {
    /// A body was cut off by this error.
    pub(crate) fn of_error(error: &BoxError) -> Self {
        Self::Broken(kind(error), error.to_string())
    }
}

impl From<Lack> for io::Error {
    fn from(lack: Lack) -> Self {
        match lack {
            Lack::Failed(failure) => Self::other(failure.words),
            Lack::Changed => Self::other("the origin has another version by now"),
            Lack::Unaskable => Self::other("a part of the body was evicted, and can't be asked for"),
            Lack::Broken(kind, words) => Self::new(kind, words),
        }
    }
}

impl Object {
    /// `fields` are those of a 200 that has just arrived. None where they contradict the length.
    pub(crate) fn new(
        address: Vec<u8>,
        layout: Layout,
        fields: &HeaderMap,
        received: SystemTime,
        tags: Vec<String>,
    ) -> Option<Self> {
        let mut fields = fields.clone();
        fields.insert(CONTENT_LENGTH, HeaderValue::from(layout.length));
        let partial = PartialContent::of(StatusCode::OK, &fields, layout.length, true, received)?;
        let if_range = strong_validator::if_range(&fields, received);
        let prefix = layout.prefix(&address);
        Some(Self { address, head_key: OnceLock::new(), layout, prefix, partial, if_range, tags })
    }

    /// The body of a stored response, if it is stored in fragments.
    pub(crate) fn of_stored(stored: &Stored) -> Option<Self> {
        let (address, layout) = stored.fragments()?;
        let (found, received) = (&stored.found, stored.received());
        let object = Self::new(address.to_vec(), layout, &found.head.fields, received, found.tags())?;
        Some(object.of_head(stored.key.clone()))
    }

    /// The same body, with its head stored under this key.
    fn of_head(self, key: Vec<u8>) -> Self {
        Self { head_key: OnceLock::from(key), ..self }
    }

    /// Whether the cache can ask for more of the body.
    pub(crate) fn may_be_asked_for(&self) -> bool {
        self.if_range.is_some()
    }

    /// The length of the body.
    pub(crate) fn length(&self) -> u64 {
        self.layout.length
    }
}

impl Pages {
    /// The greatest length of a stored body.
    pub(crate) fn object_bytes_max(&self) -> u64 {
        self.store.size() / OBJECT_DIVISOR
    }

    /// A layout with a generation that no other body has.
    pub(crate) fn new_layout(&self, length: u64) -> Layout {
        let fragment_bytes = fragment_bytes(self.store.entry_bytes_max());
        Layout { length, generation: generation(), fragment_bytes }
    }

    /// Stores a fragment. False if that fails. It may wait for other writers.
    pub(crate) fn keep_fragment(&self, key: &[u8], pieces: &[Bytes], tags: &[String], begun: Option<Epoch>) -> bool {
        let head = Head::new(Kind::Fragment, StatusCode::OK, HeaderMap::new());
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        self.store.keep(key, &head, pieces, Times::FOR_GOOD, &tags, begun).is_some()
    }

    /// Reads a fragment from the volume. Another thread waits for bytes that aren't in memory.
    pub(crate) async fn fragment(&self, object: &Object, number: u64) -> Option<Bytes> {
        let key = key_of(&object.prefix, number);
        let length = object.layout.bytes_of(number);
        let found = self.look(Store::look, &key).await.found();
        let found = found.filter(|found| found.head.kind == Kind::Fragment)?;
        (found.bytes().len() as u64 == length.end - length.start).then(|| found.value())
    }

    /// Whether a fragment is stored. The look-up leaves no trace in the volume.
    pub(crate) fn has_fragment(&self, object: &Object, number: u64) -> bool {
        self.store.has(&key_of(&object.prefix, number), |head| head.kind == Kind::Fragment)
    }

    /// Whether bytes of the first fragments of these segments are neither stored nor about to arrive.
    pub(crate) fn lacks(&self, object: &Object, segments: &[Segment], fragments_max: usize) -> bool {
        let ranges = segments.iter().filter_map(|segment| match segment {
            Segment::Bytes(range) => Some(range),
            Segment::Head(_) => None,
        });
        let numbers = ranges.flat_map(|range| object.layout.fragments_of(range));
        numbers.take(fragments_max).any(|number| !self.is_there_or_coming(object, number))
    }

    fn is_there_or_coming(&self, object: &Object, number: u64) -> bool {
        // Bytes of a run are stored before the run drops them.
        let start = object.layout.bytes_of(number).start;
        self.runs.follow(&object.prefix, start).is_some() || self.has_fragment(object, number)
    }

    /// The bytes to ask for when the byte at `position` is missing: adjacent missing fragments, whole, as far as `wanted` goes, up
    /// to a bounded number.
    pub(crate) fn missing(&self, object: &Object, position: u64, wanted: &Range<u64>) -> Range<u64> {
        let Object { layout, .. } = object;
        let first = layout.fragment_of(position);
        let most = layout.fragments_of(&(position..wanted.end)).end.min(first + FRAGMENTS_AT_ONCE);
        let end = (first + 1..most).find(|number| self.is_there_or_coming(object, *number)).unwrap_or(most);
        layout.bytes_of(first).start..layout.bytes_of(end.max(first + 1) - 1).end
    }

    /// Removes a head whose body the origin no longer has, unless another head has taken its place.
    pub(crate) fn forget(&self, object: &Object) {
        let Some(key) = object.head_key.get() else { return };
        let is_head = |head: &Head| matches!(head.kind, Kind::Fragmented(_, layout) if layout == object.layout);
        if let Some(found) = self.store.find(key).filter(|found| is_head(&found.head)) {
            self.store.remove_found(key, &found);
        }
    }
}

/// One request asks the origin for at most this many missing fragments.
const FRAGMENTS_AT_ONCE: u64 = 16;
