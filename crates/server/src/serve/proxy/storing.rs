//! Answers that may be stored: as one entry, in fragments, or in fragments of which the first that came are a part.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::vary::Vary;
use eyewall_http::message::{self, Exchange};
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::ranges;
use eyewall_http::storing::{self, NotStored, Storable};
use http::header::{AGE, CONTENT_LENGTH, RANGE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version, response};
use hyper::body::Incoming;

use super::answer::{Answer, Content};
use super::fetch::{Asked, arranged};
use super::fill::Fill;
use super::fragments::{Came, Object, Opening, Part, Slice, Told};
use super::inbound::Inbound;
use super::{Ask, Proxy, failed, finish, policy, strip, tags};
use crate::key::CLIENT_ADDRESSES;
use crate::rules::Applied;
use crate::serve::body::Body;
use crate::serve::origin::{ProxyError, framing};
use crate::serve::reply;
use eyewall_page_cache::body::{BodyReader, BodyStream};
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::pages;

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// A rule of the site says so.
    Rule,
    /// Its transfer coding is none that this server knows: what its bytes are is unknown.
    Coding,
    /// It is an error, and what is stored is worth more.
    KeepsStored,
    /// It, or one of its fields, is longer than may be.
    TooLarge,
    Http(NotStored),
}

impl Refused {
    /// A token for `Cache-Status`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Coding => "transfer-coding",
            Self::KeepsStored => "keeps-stored",
            Self::TooLarge => "too-large",
            Self::Http(why) => why.as_str(),
        }
    }

    /// Whether the answer to another request for the same might be stored: then this one is no reason to give up what is there.
    pub(super) fn is_of_request(self) -> bool {
        match self {
            Self::Rule | Self::KeepsStored => true,
            Self::Coding | Self::TooLarge => false,
            Self::Http(why) => why.is_of_request(),
        }
    }
}

/// As what an answer is stored.
pub(super) struct Entry {
    head: Head,
    pub(super) tags: Vec<String>,
    /// How long the body may be beside these.
    whole_bytes_max: u64,
}

/// An answer that may be stored, of which the head has come.
pub(super) struct Coming {
    pub(super) head: response::Parts,
    pub(super) incoming: Incoming,
    pub(super) storable: Storable,
    pub(super) entry: Entry,
    /// How long the whole body is, if that is known.
    pub(super) length: Option<u64>,
    /// What of it comes, if not all.
    pub(super) range: Option<Range<u64>>,
    /// How many bytes come before that.
    pub(super) skipped: u64,
    /// What the origin said.
    pub(super) forward_status: StatusCode,
}

impl Proxy {
    /// Whether a response may be stored, and as what; else a token that says why not.
    pub(super) fn judge(
        &self,
        inbound: Inbound<'_>,
        applied: &Applied<'_>,
        (status, fields): (StatusCode, &HeaderMap),
        exchange: Exchange,
    ) -> Result<Storable, Refused> {
        if applied.overrides.no_store == Some(true) {
            return Err(Refused::Rule);
        }
        // A HEAD renews what is stored for a GET, and a POST's answer is only asked about where it is that to a GET.
        let request = message::Request { method: &inbound.method(), fields: inbound.fields() };
        let policy = policy::with(&self.policy, &applied.overrides);
        let told = message::Response { status, fields };
        match storing::judge(request, told, exchange, &policy).map_err(Refused::Http)? {
            storable if self.varies_by_sender(&storable.vary) => Err(Refused::Http(NotStored::Vary)),
            storable => Ok(storable),
        }
    }

    /// Whether an answer varies by what the origin is told of the client, and no client says itself.
    fn varies_by_sender(&self, vary: &Vary) -> bool {
        let Vary::Fields(names) = vary else { return false };
        let told = ["forwarded", "x-forwarded-for", "x-real-ip"];
        let is_told = |name: &&HeaderName| told.contains(&name.as_str()) || CLIENT_ADDRESSES.contains(&name.as_str());
        names.iter().filter(is_told).any(|name| !self.site.key.has_header(name))
    }

    /// How long a body may be that is stored as one entry.
    pub(super) fn entry_bytes_max(&self) -> u64 {
        self.pages.store.entry_bytes_max().min(self.object_bytes_max())
    }

    /// How long a body may be that is stored.
    pub(super) fn object_bytes_max(&self) -> u64 {
        let most = self.site.settings.cache.object_bytes_max.map_or(u64::MAX, |size| size.0);
        self.pages.object_bytes_max().min(most)
    }

    /// As what an answer is stored; an error if its fields are longer than an entry can tell.
    pub(super) fn entry(
        &self,
        inbound: Inbound<'_>,
        head: &response::Parts,
        storable: &Storable,
        asked: Asked<'_>,
    ) -> Result<Entry, Refused> {
        let tags = tags::of_response(&self.site, inbound.key, &asked.applied, head);
        let fields = pages::without(head.headers.clone(), &storable.withheld);
        let entry_head = Head::new(Kind::Response(storable.terms), head.status, fields);
        let beside = self.pages.whole_bytes_max(inbound.key.as_bytes(), &entry_head, &tags).ok_or(Refused::TooLarge)?;
        let whole_bytes_max = match head.status {
            StatusCode::OK => beside.min(self.object_bytes_max()),
            _ => self.entry_bytes_max(),
        };
        Ok(Entry { head: entry_head, tags, whole_bytes_max })
    }

    /// Whether what is stored keeps its place against an answer: it is an error, and something that it would take the place of may
    /// still be sent to others, or was stored meanwhile.
    pub(super) async fn keeps_stored(
        &self,
        inbound: Inbound<'_>,
        status: StatusCode,
        judged: &Result<Storable, Refused>,
    ) -> bool {
        let Ok(storable) = judged else { return false };
        if !status.is_client_error() && !status.is_server_error() {
            return false;
        }
        let now = SystemTime::now();
        let variant = pages::variant(storable, inbound.fields());
        let replaced = self.pages.replaced_by(inbound.key.as_bytes(), variant.as_ref(), now).await;
        replaced.iter().any(|stored| stored.withstands(status, &self.policy, now))
    }

    /// A 206 to a request for whole fragments (RFC 9111, section 3.3).
    pub(super) async fn receive_part(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        mut ask: Ask,
        part: Part,
        response: Response<Incoming>,
        asked: Asked<'_>,
    ) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        let mut may_be_stored = false;
        let came = match self.came(part, &head.headers, asked.exchange.received) {
            Came::Whole(fields) => {
                let length = fields.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
                Some((fields, length, None, 0))
            }
            Came::Part { fields, range, skipped, length } => Some((fields, Some(length), Some(range), skipped)),
            Came::End => {
                may_be_stored = true;
                None
            }
            Came::Nothing => None,
        };
        if let Some((mut fields, length, range, skipped)) = came.filter(|_| !framing::is_coded(&head.extensions))
            // The rules mean the whole response, of which this is a part.
            && let applied = strip(inbound.decision, StatusCode::OK, &mut fields, &mut head.extensions)
            && let Ok(storable) = self.judge(inbound, &applied, (StatusCode::OK, &fields), asked.exchange)
            && let asked = (Asked { applied, ..asked })
            && let whole = head_of_whole(&head, fields)
            && let Ok(entry) = self.entry(inbound, &whole, &storable, asked)
        {
            self.pages.unstorable.remove(inbound.key.as_bytes());
            let forward_status = head.status;
            let coming = Coming { head: whole, incoming, storable, entry, length, range, skipped, forward_status };
            return self.store(inbound, ask, coming, asked).await;
        }
        if may_be_stored {
            // The requests that wait for this one can't use it; without this, they would go one after the other.
            if let Some(leader) = ask.leader.take() {
                leader.alone();
            }
        } else {
            // The next request for a range goes straight past the volume.
            self.pages.unstorable.insert(inbound.key.as_bytes());
        }
        let status = CacheStatus::forwarded(ask.why).detail("range");
        let slice = if framing::is_coded(&head.extensions) { Some(Slice::All) } else { part.slice(&head.headers) };
        let current =
            Representation { status: StatusCode::OK, fields: &head.headers, received: asked.exchange.received };
        let outcome = precondition::evaluate(Role::Cache, &inbound.parts.method, inbound.fields(), Some(&current));
        match (outcome, slice) {
            (Outcome::NotModified, _) => {
                finish(&mut head.headers, head.version, &status.forward_status(head.status));
                reply::not_modified(&head.headers)
            }
            (Outcome::Partial(_), Some(slice)) => self.answer_with_slice(slice, (head, incoming), status),
            // `If-Range` makes the client want all of it, or the origin has to refuse the range.
            (Outcome::Partial(_) | Outcome::Proceed | Outcome::Failed, _) => {
                drop(incoming);
                self.pass(inbound, status, None).await
            }
        }
    }

    /// What the client wanted of a 206 that isn't stored.
    fn answer_with_slice(
        &self,
        slice: Slice,
        (mut head, incoming): (response::Parts, Incoming),
        status: CacheStatus,
    ) -> Response<Body> {
        let timeout = self.origins.timeouts().piece;
        let body = match slice {
            Slice::All => Body::passed(incoming, timeout),
            Slice::Bytes { of_body, range, complete_length } => {
                if let Some(fields) = ranges::fields_of_part(&head.headers, &range, complete_length) {
                    head.headers = fields;
                }
                Body::cut(incoming, timeout, &of_body)
            }
        };
        finish(&mut head.headers, head.version, &status.forward_status(head.status));
        reply::response(head.status, head.headers, body)
    }

    /// Stores what comes, and answers with it.
    pub(super) async fn store(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        ask: Ask,
        coming: Coming,
        asked: Asked<'_>,
    ) -> Response<Body> {
        let key = inbound.key.as_bytes();
        let Entry { head: entry_head, tags, whole_bytes_max } = &coming.entry;
        let (code, whole_bytes_max) = (coming.head.status, *whole_bytes_max);
        let answer = |content| Answer {
            status: code,
            fields: entry_head.fields.clone(),
            terms: coming.storable.terms,
            variant: pages::variant(&coming.storable, inbound.fields()),
            tags: tags.clone(),
            address_tag: tags::address(&self.site, inbound.key),
            content,
        };
        let is_part = coming.range.is_some();
        let is_fragmented = |length: &u64| is_part || *length > whole_bytes_max && code == StatusCode::OK;
        let length = coming.length.filter(is_fragmented);
        let object = length.and_then(|length| {
            let layout = self.pages.new_layout(length);
            Object::new(key.to_vec(), layout, &entry_head.fields, asked.exchange.received, tags.clone())
        });
        if let Some(object) = object.filter(Object::may_be_asked_for) {
            let object = Arc::new(object);
            let answer = Arc::new(answer(Content::Fragments(Arc::clone(&object))));
            return self.store_in_fragments(inbound, ask, coming, (object, answer), asked);
        }
        // What comes for a part has a strong validator and a length.
        if is_part {
            return failed(&ProxyError::Broken, CacheStatus::forwarded(ask.why).forward_status(coming.forward_status));
        }
        let stream = Arc::new(BodyStream::new(coming.length.filter(|length| *length <= whole_bytes_max)));
        let answer = Arc::new(answer(Content::Whole(Arc::clone(&stream))));
        self.store_whole(inbound, ask, coming, (stream, answer, whole_bytes_max), asked).await
    }

    async fn store_whole(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        ask: Ask,
        coming: Coming,
        (stream, answer, whole_bytes_max): (Arc<BodyStream>, Arc<Answer>, u64),
        asked: Asked<'_>,
    ) -> Response<Body> {
        let Coming { mut head, incoming, storable, length, forward_status, .. } = coming;
        // Nothing has come yet: whoever asks can read from the start.
        let reader = stream.reader();
        if let Some(leader) = &ask.leader {
            leader.answered(&answer);
        }
        let fill = Fill {
            pages: Arc::clone(&self.pages),
            key: inbound.key.as_bytes().to_vec(),
            answer: Arc::clone(&answer),
            stream: Arc::clone(&stream),
            length,
            whole_bytes_max,
            object_bytes_max: (head.status == StatusCode::OK).then(|| self.object_bytes_max()),
            mark: asked.mark,
            _leader: ask.leader,
        };
        fill.start(incoming, self.origins.timeouts().piece).await;
        if stream.is_broken() {
            // Nothing was told yet of what can't be had.
            return failed(&ProxyError::Broken, CacheStatus::forwarded(ask.why).forward_status(forward_status));
        }
        let left = storable.terms.fresh_for(SystemTime::now()).as_secs() as i64;
        let status = CacheStatus::forwarded(ask.why).forward_status(forward_status).stored(true).ttl(left);
        finish(&mut head.headers, head.version, &status);
        shared(inbound, &answer, head.headers, reader, asked.exchange).await
    }

    fn store_in_fragments(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        ask: Ask,
        coming: Coming,
        (object, answer): (Arc<Object>, Arc<Answer>),
        asked: Asked<'_>,
    ) -> Response<Body> {
        let Coming { head, incoming, storable, range, skipped, forward_status, .. } = coming;
        let reach = range.unwrap_or(0..object.length());
        let status = CacheStatus::forwarded(ask.why).forward_status(forward_status).stored(true);
        let Some(lead) = Opening::lead(&self.pages, &object, reach) else {
            return failed(&ProxyError::Broken, status);
        };
        if let Some(leader) = &ask.leader {
            leader.answered(&answer);
        }
        let left = storable.terms.fresh_for(SystemTime::now()).as_secs() as i64;
        let (code, fields, version) = (head.status, head.headers, head.version);
        let told = Told { code, fields, received: asked.exchange.received, version, status, left };
        let response = self.answer_on_its_way(inbound, Arc::clone(&object), told, Some(&lead));
        let opening = Opening { answer, object, lead, skipped, mark: asked.mark, leader: ask.leader };
        opening.start(Arc::clone(&self.pages), incoming, self.origins.timeouts().piece);
        response
    }

    /// The answer to a request that waited for another one's. `None` if the start of the body is gone.
    pub(super) async fn follow(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        answer: &Arc<Answer>,
        why: Forward,
    ) -> Option<Response<Body>> {
        let now = SystemTime::now();
        let mut fields = answer.fields.clone();
        fields.insert(AGE, HeaderValue::from(answer.terms.age(now).as_secs()));
        let left = answer.terms.fresh_for(now).as_secs() as i64;
        let status = CacheStatus::forwarded(why).forward_status(answer.status).stored(true).collapsed(true);
        match &answer.content {
            Content::Whole(stream) => {
                let reader = stream.reader()?;
                if let Some(length) = stream.length() {
                    fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
                }
                finish(&mut fields, Version::HTTP_11, &status.ttl(left));
                let exchange = Exchange { requested: now, received: now };
                Some(shared(inbound, answer, fields, Some(reader), exchange).await)
            }
            Content::Fragments(object) => {
                let (code, version) = (answer.status, Version::HTTP_11);
                let told = Told { code, fields, received: now, version, status, left };
                Some(self.answer_on_its_way(inbound, Arc::clone(object), told, None))
            }
        }
    }
}

/// The head of the whole response, of which a part comes under this head.
fn head_of_whole(part: &response::Parts, fields: HeaderMap) -> response::Parts {
    let mut whole = part.clone();
    (whole.status, whole.headers) = (StatusCode::OK, fields);
    whole
}

/// A body that comes: as it comes, or when all of it is there, if only ranges of it are wanted.
async fn shared(
    inbound: Inbound<'_>,
    answer: &Answer,
    fields: HeaderMap,
    reader: Option<BodyReader>,
    exchange: Exchange,
) -> Response<Body> {
    let Some(reader) = reader else { return arranged(inbound, answer.status, fields, Body::empty(), exchange) };
    let is_short = matches!(&answer.content, Content::Whole(stream) if stream.length().is_some());
    if !is_short || !inbound.fields().contains_key(RANGE) {
        return arranged(inbound, answer.status, fields, Body::shared(reader), exchange);
    }
    match whole(reader).await {
        Ok(value) => {
            reply::representation(Role::Cache, inbound.parts, answer.status, fields, exchange.received, &value)
        }
        Err(_) => failed(&ProxyError::Broken, CacheStatus::forwarded(Forward::Miss)),
    }
}

/// All of a body that is known to be short.
async fn whole(mut reader: BodyReader) -> io::Result<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(piece) = std::future::poll_fn(|context| reader.poll_piece(context)).await {
        bytes.extend_from_slice(&piece?);
    }
    Ok(bytes.freeze())
}
