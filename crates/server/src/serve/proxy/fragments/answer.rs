//! Answers that go out in fragments.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::range::{ByteRanges, ContentRange, RangeSpec};
use eyewall_http::partial::Gathered;
use eyewall_http::precondition::Role;
use eyewall_http::ranges::Served;
use eyewall_http::strong;
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Response, StatusCode, Version};
use hyper::body::Incoming;

use super::gather::Inflow;
use super::layout::{fragment_bytes, widened};
use super::run::{Joined, Lead};
use super::{Lack, Object, Sequence};
use crate::serve::body::Body;
use crate::serve::head::Kind;
use crate::serve::proxy::answer::Answer;
use crate::serve::proxy::fill::Pieces;
use crate::serve::proxy::flight::Ticket;
use crate::serve::proxy::inbound::Inbound;
use crate::serve::proxy::pages::Pages;
use crate::serve::proxy::purge_counts::Mark;
use crate::serve::proxy::{Proxy, failed, finish};
use crate::serve::reply::{self, Arranged};

/// A stored body whose first bytes can't be had in parts: the origin is to be asked for all of it.
pub(in crate::serve::proxy) struct Unusable;

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

/// A stored response in fragments, as a request gets it.
pub(in crate::serve::proxy) struct Told {
    pub(in crate::serve::proxy) code: StatusCode,
    pub(in crate::serve::proxy) fields: HeaderMap,
    pub(in crate::serve::proxy) received: SystemTime,
    pub(in crate::serve::proxy) version: Version,
    pub(in crate::serve::proxy) status: CacheStatus,
    /// For how many seconds it is fresh yet.
    pub(in crate::serve::proxy) left: i64,
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
    !request.contains_key(IF_RANGE) && eyewall_http::ranges::select(&asked, length) == Served::Part(range)
}

/// How many fragments are looked for before an answer begins, to say in its head whether some are missing.
const FRAGMENTS_LOOKED_AT: usize = 16;

/// What a 206 means that came for a [`Part`].
pub(in crate::serve::proxy) enum Came {
    /// All of a small representation: it is as if the origin had answered by 200 with these fields.
    Whole(HeaderMap),
    /// A part of a large one, from the start of a fragment on, behind bytes that are skipped. With the fields and the length of
    /// its 200.
    Part { fields: HeaderMap, range: std::ops::Range<u64>, skipped: u64, length: u64 },
    /// Nothing that could be stored.
    Nothing,
}

impl Proxy {
    /// What came for a part.
    pub(in crate::serve::proxy) fn came(&self, part: Part, fields: &HeaderMap, received: SystemTime) -> Came {
        let Some(gathered) = part.gathered(fields, received) else { return Came::Nothing };
        let Some(length) = gathered.complete_length() else { return Came::Nothing };
        let fields = gathered.fields().clone();
        let is_small = length <= self.entry_bytes_max().min(super::layout::FRAGMENT_BYTES_MAX);
        match gathered.pieces().ranges() {
            [range] if *range == (0..length) && is_small => Came::Whole(fields),
            [range] if length <= self.object_bytes_max() && strong::if_range(&fields, received).is_some() => {
                let start = range.start.next_multiple_of(part.fragment_bytes.into());
                Came::Part { fields, range: start..range.end, skipped: start - range.start, length }
            }
            _ => Came::Nothing,
        }
    }

    /// A stored body: what of it is stored, and what isn't out of the origin.
    pub(in crate::serve::proxy) async fn answer_in_fragments(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: Arc<Object>,
        told: Told,
    ) -> Result<Response<Body>, Unusable> {
        let Told { code, fields, received, version, status, left } = told;
        let (code, mut fields, stretches) =
            match reply::arrange(Role::Cache, inbound.parts, code, fields, received, object.length()) {
                Arranged::Complete(mut response) => {
                    finish(response.headers_mut(), version, &status.ttl(left));
                    return Ok(response);
                }
                Arranged::Content(code, fields, stretches) => (code, fields, stretches),
            };
        let lacks = if object.if_range.is_some() {
            // What is missing further on is asked for when it is wanted.
            self.pages.lacks(&object, &stretches, FRAGMENTS_LOOKED_AT)
        } else {
            let (pages, object, stretches) = (Arc::clone(&self.pages), Arc::clone(&object), stretches.clone());
            let looking = move || pages.lacks(&object, &stretches, usize::MAX);
            tokio::task::spawn_blocking(looking).await.unwrap_or(true)
        };
        if lacks && object.if_range.is_none() {
            return Err(Unusable);
        }
        let status = if lacks { CacheStatus::forwarded(Forward::Partial) } else { status };
        let body = match Sequence::new(self, inbound, object, stretches).begin().await {
            Ok(body) => body,
            Err(Lack::Fault(fault)) => return Ok(failed(&fault, CacheStatus::forwarded(Forward::Partial))),
            Err(_) => return Err(Unusable),
        };
        finish(&mut fields, version, &status.ttl(left));
        Ok(reply::response(code, fields, Body::drawn(body)))
    }

    /// The answer to one who reads along what somebody else has asked for.
    pub(in crate::serve::proxy) fn answer_on_its_way(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: Arc<Object>,
        told: Told,
        lead: Option<&Lead>,
    ) -> Response<Body> {
        let Told { code, fields, received, version, status, left } = told;
        match reply::arrange(Role::Cache, inbound.parts, code, fields, received, object.length()) {
            Arranged::Complete(mut response) => {
                finish(response.headers_mut(), version, &status.ttl(left));
                response
            }
            Arranged::Content(code, mut fields, stretches) => {
                let body = Sequence::new(self, inbound, object, stretches);
                let body = if let Some(lead) = lead { body.following(lead) } else { body };
                finish(&mut fields, version, &status.ttl(left));
                reply::response(code, fields, Body::drawn(body))
            }
        }
    }
}

/// A body that comes in and has a strong validator: its head is stored first.
pub(in crate::serve::proxy) struct Opening {
    pub(in crate::serve::proxy) answer: Arc<Answer>,
    pub(in crate::serve::proxy) object: Arc<Object>,
    pub(in crate::serve::proxy) lead: Lead,
    /// How many bytes come before its reach.
    pub(in crate::serve::proxy) skipped: u64,
    pub(in crate::serve::proxy) mark: Mark,
    pub(in crate::serve::proxy) ticket: Option<Ticket>,
}

impl Opening {
    /// The lead for a new body, none if its generation is not new.
    pub(in crate::serve::proxy) fn lead(pages: &Pages, object: &Object, reach: std::ops::Range<u64>) -> Option<Lead> {
        match pages.runs.join(&object.prefix, reach.start, reach) {
            Joined::Lead(lead) => Some(lead),
            Joined::Follow(_) => None,
        }
    }

    /// Stores the head, then what comes.
    pub(in crate::serve::proxy) fn start(self, pages: Arc<Pages>, incoming: Incoming, timeout: std::time::Duration) {
        tokio::spawn(async move {
            let Self { answer, object, lead, skipped, mark, ticket } = self;
            let (head_pages, head_object) = (Arc::clone(&pages), Arc::clone(&object));
            let kept = tokio::task::spawn_blocking(move || head_pages.open(&head_object, &answer, mark));
            let is_kept = kept.await.unwrap_or(false);
            // Who asks from now on finds the head.
            drop(ticket);
            Inflow { pages, object, lead, mark, is_kept }.run(Pieces::new(incoming, timeout), skipped).await;
        });
    }
}

impl Pages {
    /// Stores the head of a body, unless a hard purge has come since it was asked for.
    fn open(&self, object: &Object, answer: &Answer, mark: Mark) -> bool {
        let kind = Kind::Fragmented(answer.terms, object.layout);
        let kept = self.keep_as(&object.address, answer, kind, &[bytes::Bytes::new()], mark);
        let is_kept = kept.is_some();
        if let Some(key) = kept {
            // It is stored once.
            let _ = object.head_key.set(key);
        }
        is_kept
    }
}
