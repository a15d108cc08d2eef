//! Large bodies, stored in fragments.
//!
//! ```text
//! key of the address or variant       head: terms, fields, layout (length, generation, bytes of a fragment); no value
//! address, " ", generation, "/", n    fragment n
//! ```
//! What always holds:
//!
//! - A fragment is reached by its head only, whose generation is part of its key, and no other head has that generation. So who
//!   removes, purges or replaces the head is rid of all fragments: they have no times of their own, and are evicted in time.
//!   A renewed head has its fragments as before.
//! - All bytes under one generation are of one representation: those of one answer of the origin, or of several that share a
//!   strong validator and the length of the whole (RFC 9110, section 15.3.7.3; RFC 9111, section 3.4). Without a strong
//!   validator nothing is added to what one answer brought.
//! - Any fragment may be gone at any time. It is asked for again, or the answer that lacks it ends as an incomplete one. It never
//!   goes on with other bytes.
//! - What of a body is at hand outside the volume is bounded, however long it is: about a fragment for each run that comes
//!   in, and one pinned for each client.
//!
//! A body with a strong validator and a known length has its head stored first, so that others may use what has come; it comes as
//! fast as it can be stored, whatever its clients take. Another body is stored on its way to its clients, as fast as the slowest
//! takes it, and its head last.
//!
//! ```text
//! answer    what is sent of a body       sequence  ── fragment by fragment, from the volume or from a run
//! part      a range of what isn't stored: what the origin is asked for
//! opening   head first, then the body    gather    ── bytes that come, into fragments; what is missing, asked for
//! keeping   body first, then the head    run       ── who asks for which bytes, and its readers
//! ```

mod answer;
mod gather;
mod keeping;
mod opening;
mod part;
pub(crate) mod run;
mod sequence;

use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use bytes::Bytes;
use eyewall::Epoch;
use eyewall_http::partial::PartialContent;
use eyewall_http::ranges::Segment;
use eyewall_http::strong_validator;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::pages::Pages;
use crate::serve::origin::ProxyError;
pub(super) use answer::{Told, Unusable};
use eyewall_page_cache::generation::generation;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::layout::{FRAGMENT_BYTES_MAX, Layout, fragment_bytes, key_of};
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::{Store, Times};
pub(super) use keeping::Keeping;

pub(super) use opening::Opening;
pub(super) use part::{Came, Part, Slice};
pub(crate) use sequence::Sequence;

/// A volume's part that the longest body may take.
const OBJECT_DIVISOR: u64 = 4;

/// A body in fragments, whatever of it is stored.
pub(crate) struct Object {
    /// The key of its address.
    address: Vec<u8>,
    /// That of its head, as soon as it is stored.
    head_key: OnceLock<Vec<u8>>,
    layout: Layout,
    /// What all keys of its fragments begin with.
    prefix: Vec<u8>,
    /// What further parts have to fit.
    partial: PartialContent,
    /// By which more of it is asked for; none without a strong validator.
    if_range: Option<HeaderValue>,
    tags: Vec<String>,
}

/// Why bytes of a body can't be had.
#[derive(Debug, Clone)]
pub(crate) enum Lack {
    /// The origin gave no answer.
    ProxyError(ProxyError),
    /// The origin has something else by now, or doesn't give parts.
    Changed,
    /// Nothing shares a strong validator with it.
    Unaskable,
    /// It was cut off, for this reason.
    Broken(io::ErrorKind, String),
}

impl From<Lack> for io::Error {
    fn from(lack: Lack) -> Self {
        match lack {
            Lack::ProxyError(error) => Self::other(error.to_string()),
            Lack::Changed => Self::other("the origin has another version by now"),
            Lack::Unaskable => Self::other("a part of the body was evicted, and can't be asked for"),
            Lack::Broken(kind, words) => Self::new(kind, words),
        }
    }
}

impl Object {
    /// `fields` are those of a 200, which was received then. None where they contradict the length.
    pub(super) fn new(
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

    /// The body of a stored response, where that is stored in fragments.
    pub(super) fn of_stored(stored: &Stored) -> Option<Self> {
        let (address, layout) = stored.fragments()?;
        let (found, received) = (&stored.found, stored.received());
        let object = Self::new(address.to_vec(), layout, &found.head.fields, received, found.tags())?;
        Some(object.of_head(stored.key.clone()))
    }

    /// The same, whose head is stored under this key.
    fn of_head(self, key: Vec<u8>) -> Self {
        Self { head_key: OnceLock::from(key), ..self }
    }

    /// Whether more of it can be asked for.
    pub(super) fn may_be_asked_for(&self) -> bool {
        self.if_range.is_some()
    }

    pub(super) fn length(&self) -> u64 {
        self.layout.length
    }
}

impl Pages {
    /// How long a body may be that is one entry.
    pub(super) fn whole_bytes_max(&self, key: &[u8], head: &Head, tags: &[String]) -> Option<u64> {
        Some(self.store.value_bytes_max(key, head, tags)?.min(FRAGMENT_BYTES_MAX))
    }

    /// How long a body may be that is stored.
    pub(super) fn object_bytes_max(&self) -> u64 {
        self.store.size() / OBJECT_DIVISOR
    }

    /// A layout that no other body has.
    pub(super) fn new_layout(&self, length: u64) -> Layout {
        let fragment_bytes = fragment_bytes(self.store.entry_bytes_max());
        Layout { length, generation: generation(), fragment_bytes }
    }

    /// Stores a fragment; false if that can't be. It may wait for other writers.
    fn keep_fragment(&self, key: &[u8], pieces: &[Bytes], tags: &[String], begun: Option<Epoch>) -> bool {
        let head = Head::new(Kind::Fragment, StatusCode::OK, HeaderMap::new());
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        self.store.keep(key, &head, pieces, Times::FOR_GOOD, &tags, begun).is_some()
    }

    /// A fragment out of the volume. What isn't in memory is waited for elsewhere.
    async fn fragment(self: &Arc<Self>, object: &Object, number: u64) -> Option<Bytes> {
        let key = key_of(&object.prefix, number);
        let length = object.layout.bytes_of(number);
        let found = self.look(Store::look, &key).await.found();
        let found = found.filter(|found| found.head.kind == Kind::Fragment)?;
        (found.bytes().len() as u64 == length.end - length.start).then(|| found.value())
    }

    /// Whether a fragment is stored, without a trace in the volume.
    fn has_fragment(&self, object: &Object, number: u64) -> bool {
        self.store.has(&key_of(&object.prefix, number), |head| head.kind == Kind::Fragment)
    }

    /// Whether bytes of the first fragments of these segments are neither stored nor on their way.
    fn lacks(&self, object: &Object, segments: &[Segment], fragments_max: usize) -> bool {
        let ranges = segments.iter().filter_map(|segment| match segment {
            Segment::Bytes(range) => Some(range),
            Segment::Head(_) => None,
        });
        let numbers = ranges.flat_map(|range| object.layout.fragments_of(range));
        numbers.take(fragments_max).any(|number| !self.is_there_or_coming(object, number))
    }

    fn is_there_or_coming(&self, object: &Object, number: u64) -> bool {
        // What comes is stored before it goes.
        let start = object.layout.bytes_of(number).start;
        self.runs.follow(&object.prefix, start).is_some() || self.has_fragment(object, number)
    }

    /// The bytes to ask for where the byte at `position` is missing: whole fragments in a row that are missing, as far as
    /// `wanted` goes, and no more than a bounded number.
    fn missing(&self, object: &Object, position: u64, wanted: &Range<u64>) -> Range<u64> {
        let Object { layout, .. } = object;
        let first = layout.fragment_of(position);
        let most = layout.fragments_of(&(position..wanted.end)).end.min(first + FRAGMENTS_AT_ONCE);
        let end = (first + 1..most).find(|number| self.is_there_or_coming(object, *number)).unwrap_or(most);
        layout.bytes_of(first).start..layout.bytes_of(end.max(first + 1) - 1).end
    }

    /// Removes a head whose body the origin doesn't have any more, unless another has taken its place.
    fn forget(&self, object: &Object) {
        let Some(key) = object.head_key.get() else { return };
        let is_head = |head: &Head| matches!(head.kind, Kind::Fragmented(_, layout) if layout == object.layout);
        if let Some(found) = self.store.find(key).filter(|found| is_head(&found.head)) {
            self.store.remove_found(key, &found);
        }
    }
}

/// So many missing fragments the origin is asked for by one request.
const FRAGMENTS_AT_ONCE: u64 = 16;
