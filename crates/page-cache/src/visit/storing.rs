//! Responses of the upstream on their way to the client and, if they may be stored, into the volume: as one entry, or in fragments.

use std::ops::Range;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use eyewall_http::answer;
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::message::{self, Exchange};
use eyewall_http::precondition::{Representation, Role};
use eyewall_http::reuse;
use eyewall_http::storing::{NotStored, Storable};
use http::header::{CONTENT_LENGTH, IF_NONE_MATCH, RANGE};
use http::{HeaderMap, StatusCode, response};
use http_body::Body;

use super::fetch::Asked;
use super::judging::{Entry, Refused};
use super::{Ask, Visit};
use crate::answer::{Answer, Content};
use crate::body::{BodyReader, BodyStream, CutOff};
use crate::cached_body::CachedBody;
use crate::carried::Giver;
use crate::fill::Fill;
use crate::fragments::{Object, Opening, Told};
use crate::pages;
use crate::reply::{self, Reply};
use crate::selection::Stored;
use crate::settings::Place;
use crate::upstream::{Failure, Rules, Upstream};
use crate::visit::Freshness;

/// A response that may be stored. Its head has arrived.
pub(super) struct Coming<B> {
    pub(super) head: response::Parts,
    pub(super) body: B,
    pub(super) storable: Storable,
    pub(super) entry: Entry,
    /// The length of the whole body, if it is known.
    pub(super) length: Option<u64>,
    /// The range that arrives, if not all.
    pub(super) range: Option<Range<u64>>,
    /// The number of bytes before that range.
    pub(super) skipped: u64,
    /// The status of the upstream's response.
    pub(super) forward_status: StatusCode,
    /// Whether it is stored.
    pub(super) is_kept: bool,
}

/// The reason why a response isn't stored that would displace much, and was asked for only once.
const ASKED_ONCE: &str = "asked-once";

impl<U: Upstream> Visit<U> {
    /// Receives the answer of the upstream.
    pub(super) async fn receive(
        self: &Arc<Self>,
        ask: Ask,
        (mut head, body): (response::Parts, U::Body),
        rules: Rules<'_>,
        asked: Asked,
    ) -> Reply<U::Body> {
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        let length = length(&head, &body);
        let why_not = match self.judge(&rules, (head.status, &head.headers), asked.exchange) {
            // No client wanted a part, or the client that did has it.
            Ok(_) if head.status == StatusCode::PARTIAL_CONTENT => Refused::Http(NotStored::Partial),
            Ok(storable) if self.keeps_stored(head.status, &storable).await => Refused::KeepsStored,
            Ok(_) if rules.is_opaque => Refused::Coding,
            Ok(storable) => {
                let codings = self.codings(rules.codings, (head.status, &mut head.headers), length);
                let (told, tagged) = ((head.status, &head.headers), (rules.tags, codings));
                let entry = self.entry(told, (&storable, length), tagged, asked.exchange);
                let is_of_other = rules.carried.is_some();
                match entry {
                    Ok(entry) => {
                        self.pages.unstorable.remove(&self.key);
                        if let Some(ttl) = self.ttl_of_bare(head.status, length, &storable) {
                            return self.receive_bare(ask, head, (ttl, entry.tags), asked).await;
                        }
                        let (range, skipped, forward_status) = (None, 0, head.status);
                        let is_kept =
                            is_of_other || !self.is_asked_once(&ask, &head, (&storable, length), asked.exchange);
                        let coming =
                            Coming { head, body, storable, entry, length, range, skipped, forward_status, is_kept };
                        return self.store(ask, coming, asked).await;
                    }
                    Err(why) => why,
                }
            }
            Err(why) => why,
        };
        self.refuse(ask, head.status, why_not).await;
        self.finish(&mut head.headers, head.version, &status.detail(why_not.as_str()));
        let body = CachedBody::passed(body, self.settings.piece_timeout);
        self.coming((head, body), asked.exchange)
    }

    /// Receives an error that is remembered by its status alone.
    async fn receive_bare(
        self: &Arc<Self>,
        ask: Ask,
        mut head: response::Parts,
        (ttl, tags): (std::time::Duration, Vec<String>),
        asked: Asked,
    ) -> Reply<U::Body> {
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        if let Some(stored) = ask.stored.filter(|_| !reuse::is_failure(head.status)) {
            self.pages.remove(stored).await;
        }
        let is_remembered = self.remember((head.status, ttl), tags, asked.mark).await;
        let status = if is_remembered {
            status.stored(true).ttl(ttl.as_secs() as i64)
        } else {
            status.detail(Refused::KeepsStored.as_str())
        };
        self.finish(&mut head.headers, head.version, &status);
        self.coming((head, CachedBody::empty()), asked.exchange)
    }

    /// Notes that an answer isn't stored.
    async fn refuse(&self, ask: Ask, status: StatusCode, why_not: Refused) {
        // In an origin, the answer may be due to a client's own range or condition, and says nothing of the whole.
        let is_whole = self.settings.place == Place::Gateway
            || !matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED);
        // An upstream in trouble is helped by requests that wait, and its later answers may be stored again.
        let withstands = |stored: &Stored| stored.withstands(status, &self.settings.policy, self.now());
        let is_replaced = !ask.stored.as_deref().is_some_and(withstands) && !why_not.is_of_request();
        if is_replaced && is_whole && !status.is_server_error() {
            self.pages.unstorable.insert(&self.key);
        }
        if let Some(stored) = ask.stored.filter(|_| is_replaced && !reuse::is_failure(status)) {
            self.pages.remove(stored).await;
        }
        if let Some(leader) = ask.leader.filter(|_| self.settings.place == Place::Origin) {
            leader.alone();
        }
    }

    /// Whether a response would displace much, and this is the first request for it (docs/decisions/0041). Notes the request. False if
    /// the cache or the client has an earlier one, or if the request is for a part or comes from another cache.
    fn is_asked_once(
        &self,
        ask: &Ask,
        head: &response::Parts,
        (storable, length): (&Storable, Option<u64>),
        exchange: Exchange,
    ) -> bool {
        let Some(bytes) = length.filter(|_| self.settings.place == Place::Gateway && !self.is_for_cache) else {
            return false;
        };
        if ask.stored.is_some()
            || ask.part.is_some()
            || self.without_content(head.status, &head.headers, exchange).is_some()
        {
            return false;
        }
        match pages::variant(storable, &self.parts.headers) {
            None => self.pages.store.is_asked_once(&self.key, bytes),
            // The key of a variant that isn't stored isn't known yet.
            Some(variant) => {
                self.pages.store.is_asked_once(&[&self.key, &b" "[..], &variant.selecting_key].concat(), bytes)
            }
        }
    }

    /// Stores a response while it arrives, if it is kept, and answers with it.
    pub(super) async fn store(self: &Arc<Self>, ask: Ask, coming: Coming<U::Body>, asked: Asked) -> Reply<U::Body> {
        let Entry { head: entry_head, tags, codings, whole_bytes_max, .. } = &coming.entry;
        let (code, whole_bytes_max) = (coming.head.status, *whole_bytes_max);
        let answer = |content| Answer {
            status: code,
            fields: entry_head.fields.clone(),
            terms: coming.storable.terms,
            variant: pages::variant(&coming.storable, &self.parts.headers),
            codings: *codings,
            tags: tags.clone(),
            address_tag: self.address_tag.clone(),
            as_of: self.as_of.clone(),
            is_kept: coming.is_kept,
            content,
        };
        let is_part = coming.range.is_some();
        let is_fragmented = |length: &u64| is_part || *length > whole_bytes_max && code == StatusCode::OK;
        let object = coming.length.filter(|_| coming.is_kept).filter(is_fragmented).and_then(|length| {
            let layout = self.pages.new_layout(length);
            Object::new(self.key.clone(), layout, &entry_head.fields, asked.exchange.received, tags.clone())
        });
        if let Some(object) = object.filter(Object::may_be_asked_for) {
            let object = Arc::new(object);
            let answer = Arc::new(answer(Content::Fragments(Arc::clone(&object))));
            return self.store_in_fragments(ask, coming, (object, answer), asked);
        }
        // A response to a request for a part has a strong validator and a length.
        if is_part {
            let status = CacheStatus::forwarded(ask.why).forward_status(coming.forward_status);
            return self.failed(&Failure::broken(), status);
        }
        let stream = Arc::new(BodyStream::new(coming.length.filter(|length| *length <= whole_bytes_max)));
        let answer = Arc::new(answer(Content::Whole(Arc::clone(&stream))));
        self.store_whole(ask, coming, (stream, answer), asked).await
    }

    async fn store_whole(
        self: &Arc<Self>,
        ask: Ask,
        coming: Coming<U::Body>,
        (stream, answer): (Arc<BodyStream>, Arc<Answer>),
        asked: Asked,
    ) -> Reply<U::Body> {
        let Coming { mut head, body, storable, entry, length, forward_status, .. } = coming;
        let is_unread = self.without_content(head.status, &head.headers, asked.exchange).is_some();
        // No byte has arrived yet, so any request can read from the start.
        let reader = stream.reader().filter(|_| !is_unread);
        if let Some(leader) = &ask.leader {
            leader.answered(&answer);
        }
        // A response that is made on demand, without a known length, may have no end.
        let is_patient = answer.is_kept
            && (self.settings.place == Place::Gateway || length.is_some() || is_unread || ask.is_in_background);
        let fill = Fill {
            pages: Arc::clone(&self.pages),
            settings: Arc::clone(&self.settings),
            key: self.key.clone(),
            answer: Arc::clone(&answer),
            stream: Arc::clone(&stream),
            length,
            whole_bytes_max: entry.whole_bytes_max,
            object_bytes_max: entry.object_bytes_max.filter(|_| answer.is_kept),
            is_patient,
            takes: |_| true,
            is_new: head.extensions.get::<Giver>().is_none(),
            mark: asked.mark,
            leader: ask.leader,
        };
        fill.start(body).await;
        let status = CacheStatus::forwarded(ask.why).forward_status(forward_status);
        let status = match head.extensions.get::<Giver>() {
            Some(Giver(cache)) => status.detail(cache),
            None => status,
        };
        if self.settings.place == Place::Gateway && stream.is_broken() {
            // No head has been sent, so the failure can be reported.
            return self.failed(&Failure::broken(), status);
        }
        let left = Freshness::of(&storable.terms, self.now()).left;
        self.finish(&mut head.headers, head.version, &told(status, &answer, left));
        let extensions = std::mem::take(&mut head.extensions);
        let mut response = self.shared(&answer, head.headers, reader, asked.exchange).await;
        self.carry(&mut response, || answer.carried(length));
        if self.settings.place == Place::Origin {
            *response.extensions_mut() = extensions;
        }
        response
    }

    fn store_in_fragments(
        self: &Arc<Self>,
        ask: Ask,
        coming: Coming<U::Body>,
        (object, answer): (Arc<Object>, Arc<Answer>),
        asked: Asked,
    ) -> Reply<U::Body> {
        let Coming { head, body, storable, range, skipped, forward_status, .. } = coming;
        let reach = range.unwrap_or(0..object.length());
        let status = CacheStatus::forwarded(ask.why).forward_status(forward_status).stored(true);
        let Some(lead) = Opening::lead(&self.pages, &object, reach) else {
            return self.failed(&Failure::broken(), status);
        };
        if let Some(leader) = &ask.leader {
            leader.answered(&answer);
        }
        let left = Freshness::of(&storable.terms, self.now()).left;
        let (code, fields, version, extensions) = (head.status, head.headers, head.version, head.extensions);
        let role = if self.settings.place == Place::Origin { Role::Origin } else { Role::Cache };
        let told = Told { role, code, fields, received: asked.exchange.received, version, status, left };
        let mut response = self.answer_on_its_way(Arc::clone(&object), told, Some(&lead));
        self.carry(&mut response, || answer.carried(Some(object.length())));
        if self.settings.place == Place::Origin {
            *response.extensions_mut() = extensions;
        }
        let opening = Opening { answer, object, lead, skipped, mark: asked.mark, leader: ask.leader };
        opening.start(Arc::clone(&self.pages), Arc::clone(&self.settings), body);
        response
    }

    /// Answers with a body that arrives: at once, or after all of it has arrived, if the client wants ranges of it.
    pub(super) async fn shared(
        &self,
        answer: &Answer,
        fields: HeaderMap,
        reader: Option<BodyReader>,
        exchange: Exchange,
    ) -> Reply<U::Body> {
        let is_short = matches!(&answer.content, Content::Whole(stream) if stream.length().is_some());
        let is_cut = is_short && self.settings.place == Place::Gateway && self.parts.headers.contains_key(RANGE);
        let reader = match reader {
            Some(reader) if is_cut => reader,
            reader => {
                let body = reader.map_or_else(CachedBody::empty, CachedBody::shared);
                return self.coming_as(answer.status, fields, body, exchange);
            }
        };
        match whole(reader).await {
            Ok(value) => {
                let (head, received) = ((answer.status, fields), exchange.received);
                reply::representation(Role::Cache, &self.parts, head, received, value, HeaderMap::new())
            }
            Err(_) => self.failed(&Failure::broken(), CacheStatus::forwarded(super::Forward::Miss)),
        }
    }

    /// The response to this request: 304 if the client already has it; in an origin, 412 if a precondition fails.
    fn coming(&self, (mut head, body): (response::Parts, CachedBody<U::Body>), exchange: Exchange) -> Reply<U::Body> {
        if let Some(answer) = self.without_content(head.status, &head.headers, exchange) {
            return reply::without_content(answer);
        }
        self.set_tag_of_not_modified(head.status, &mut head.headers);
        self.response_of(head, body)
    }

    fn coming_as(
        &self,
        status: StatusCode,
        fields: HeaderMap,
        body: CachedBody<U::Body>,
        exchange: Exchange,
    ) -> Reply<U::Body> {
        match self.without_content(status, &fields, exchange) {
            Some(answer) => reply::without_content(answer),
            None => reply::response(status, fields, body),
        }
    }

    /// 304 or 412, if that is the answer to this request whatever the content is.
    fn without_content(&self, status: StatusCode, fields: &HeaderMap, exchange: Exchange) -> Option<answer::Answer> {
        let mut tagged;
        let mut fields = fields;
        if self.settings.compression.is_some() && self.parts.headers.contains_key(IF_NONE_MATCH) {
            tagged = fields.clone();
            self.set_tag_that_client_has(status, &mut tagged);
            fields = &tagged;
        }
        let current = Representation { status, fields, received: exchange.received };
        let asked = message::Request { method: &self.parts.method, fields: &self.parts.headers };
        match self.settings.place {
            Place::Origin => answer::without_content(Role::Origin, asked, current),
            Place::Gateway => answer::without_content(Role::Cache, asked, current)
                .filter(|answer| matches!(answer, answer::Answer::NotModified(..))),
        }
    }
}

/// The status of a request whose answer arrives.
pub(super) fn told(status: CacheStatus, answer: &Answer, left: i64) -> CacheStatus {
    if answer.is_kept { status.stored(true).ttl(left) } else { status.detail(ASKED_ONCE) }
}

/// The length of a body, if it is known. A response without content has length zero, even if it gives none.
fn length(head: &response::Parts, body: &impl Body) -> Option<u64> {
    let told = || head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    if answer::has_length(head.status) { body.size_hint().exact().or_else(told) } else { Some(0) }
}

/// All of a body that is known to be short.
async fn whole(mut reader: BodyReader) -> Result<Bytes, CutOff> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = std::future::poll_fn(|context| reader.poll_piece(context)).await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes.freeze())
}
