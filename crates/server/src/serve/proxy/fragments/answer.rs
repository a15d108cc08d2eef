//! Answers that go out in fragments.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::range::{ByteRanges, ContentRange};
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
use crate::serve::proxy::purged::Mark;
use crate::serve::proxy::{Proxy, failed, finish};
use crate::serve::reply::{self, Arranged};

/// A stored body whose first bytes can't be had in parts: the origin is to be asked for all of it.
pub(in crate::serve::proxy) struct Unusable;

/// What the origin is asked for where a client wants a range of something that isn't stored: whole fragments.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve::proxy) struct Part {
    start: u64,
    end: Option<u64>,
}

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
    /// None where the request has no range, or several, or one that counts from the end: such a request goes past the volume.
    pub(in crate::serve::proxy) fn of(request: &HeaderMap, pages: &Pages) -> Option<Self> {
        let ranges = ByteRanges::of(request)?;
        let [range] = ranges.specs() else { return None };
        let (start, end) = widened(*range, fragment_bytes(pages.store.entry_bytes_max()))?;
        Some(Self { start, end })
    }

    /// The `Range` that asks for it.
    pub(in crate::serve::proxy) fn ask(self, request: &mut HeaderMap) {
        let end = self.end.map_or_else(String::new, |end| (end - 1).to_string());
        if let Ok(value) = HeaderValue::try_from(format!("bytes={}-{end}", self.start)) {
            request.insert(RANGE, value);
        }
    }

    /// What a 206 brings of the 200, if it is just this.
    fn gathered(self, fields: &HeaderMap, received: SystemTime) -> Option<Gathered> {
        let ContentRange::Satisfied { range, complete_length: Some(length) } = ContentRange::of(fields)? else {
            return None;
        };
        let end = self.end.map_or(length, |end| end.min(length));
        if range != (self.start..end) {
            return None;
        }
        Gathered::of(StatusCode::PARTIAL_CONTENT, fields, end - self.start, true, received)
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
    /// A part of a large one, with the fields of its 200.
    Part(HeaderMap, std::ops::Range<u64>, u64),
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
                Came::Part(fields, range.clone(), length)
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
            let Self { answer, object, lead, mark, ticket } = self;
            let (head_pages, head_object) = (Arc::clone(&pages), Arc::clone(&object));
            let kept = tokio::task::spawn_blocking(move || head_pages.open(&head_object, &answer, mark));
            let is_kept = kept.await.unwrap_or(false);
            // Who asks from now on finds the head.
            drop(ticket);
            Inflow { pages, object, lead, mark, is_kept }.run(Pieces::new(incoming, timeout), 0).await;
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
