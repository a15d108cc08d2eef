//! Unary calls of gRPC whose answers are stored, because the user of the layer says that their methods only read.
//!
//! ```text
//! ADDRESS grpc DIGEST      of the message, its coding and the codings that the client takes
//! ```
//! HTTP's own rules say nothing of these answers: each is a POST's, and tells by its trailers how it went.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::Exchange;
use eyewall_http::terms::{Marks, Terms};
use eyewall_page_cache::collapsing::Outcome;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, response};
use http_body::Body as _;
use ring::digest::{Context, SHA256};

use super::answer::Answer;
use super::answer::{Joined, Leader};
use super::ask::Asked;
use super::body::{CachedBody, RequestBody};
use super::fill::{Content, Fill, collected};
use super::inner::Inner;
use super::query::{CONTENT_BYTES_MAX, hexadecimal};
use super::visit::{Answered, Visit};
use super::{pass, reply, tags};
use eyewall_page_cache::body::BodyStream;
use eyewall_page_cache::pages;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::Store;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// What of a request's metadata its answer may differ by, for all methods.
const OF_THE_CODING: [HeaderName; 3] =
    [CONTENT_TYPE, HeaderName::from_static("grpc-encoding"), HeaderName::from_static("grpc-accept-encoding")];
/// Whether it is packed, and its length.
const MESSAGE_HEAD_BYTES: usize = 5;

impl<S, B> Visit<S, B> {
    /// For how long the answer to a call is fresh; None: it isn't one whose answers are stored.
    pub(super) fn cached_grpc(&self) -> Option<Duration> {
        let Self { parts, settings, .. } = self;
        let is_call = parts.method == Method::POST && pass::is_grpc(&parts.headers) && self.target.is_some();
        let is_for_all = is_call && !parts.headers.contains_key(AUTHORIZATION);
        settings.grpc.get(parts.uri.path()).copied().filter(|_| is_for_all && !self.pages.store.has_failed())
    }
}

impl<S: Inner<B>, B: Content> Visit<S, B> {
    pub(super) async fn answer_grpc(&mut self, body: B, ttl: Duration) -> Answered<S, B> {
        let passing = CacheStatus::forwarded(Forward::Method);
        let content = match collected(body, CONTENT_BYTES_MAX).await {
            Ok(content) => content,
            Err(body) => return self.forward(body, passing).await,
        };
        let Some(message) = content.whole().filter(|message| is_one_message(message)) else {
            return self.forward(content.rejoined(), passing).await;
        };
        let mut digest = Context::new(&SHA256);
        for name in OF_THE_CODING {
            // All of its lines: a server may take any of them.
            let lines: Vec<&[u8]> = self.parts.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
            digest.update(&lines.join(&b','));
            digest.update(b"\n");
        }
        digest.update(&message);
        self.key = format!("{} grpc {}", self.address, hexadecimal(&digest.finish())).into_bytes();
        self.content = Some(message);
        let leader = match self.found_or_coming().await {
            Ok(response) => return Ok(response),
            Err(leader) => leader,
        };
        self.call(leader, ttl).await
    }

    /// The answer that is stored, or comes; else the right to ask for it, or nothing, to ask for this call alone.
    async fn found_or_coming(&mut self) -> Result<Response<CachedBody<S::Content>>, Option<Leader>> {
        // One that waits, and then takes the place of who gave up.
        for _ in 0..2 {
            if let Some(stored) = self.stored_call().await {
                let (trailers, head) = (stored.trailers(), stored.found.head.clone());
                let body = CachedBody::pieces(VecDeque::from([stored.found.value()]), trailers);
                return Ok(reply::response(head.status, head.fields, body));
            }
            if self.pages.unstorable.contains(&self.key) {
                return Err(None);
            }
            let waiting = match self.pages.join(&self.key) {
                Joined::Lead(leader) => return Err(Some(leader)),
                Joined::Follow(waiting) => waiting,
            };
            match waiting.answer(self.settings.patience).await {
                Outcome::Answered(answer) => {
                    let Some(reader) = answer.content.reader() else { return Err(None) };
                    let body = CachedBody::shared(reader);
                    return Ok(reply::response(answer.status, answer.fields.clone(), body));
                }
                Outcome::Over => {}
                Outcome::Alone | Outcome::Late => return Err(None),
            }
        }
        Err(None)
    }

    async fn stored_call(&mut self) -> Option<Stored> {
        let found = self.pages.look(Store::look, &self.key).await.found()?;
        let stored = Stored::new(&self.key, self.key.clone(), found, self.now())?;
        (!stored.terms.fresh_for(self.now()).is_zero()).then_some(stored)
    }

    async fn call(&mut self, leader: Option<Leader>, ttl: Duration) -> Answered<S, B> {
        let (requested, mark) = (self.now(), self.pages.mark(self.address.as_bytes()));
        let body = self.content.clone().map_or_else(RequestBody::empty, RequestBody::whole);
        let request = Request::from_parts(self.parts.clone(), body);
        let response = self.inner.clone().ask(request).await?;
        let asked = Asked { exchange: Exchange { requested, received: self.now() }, mark };
        // One that has its status among its fields failed before it began.
        if response.status() != StatusCode::OK || response.headers().contains_key(STATUS) {
            if let Some(leader) = leader {
                leader.alone();
            }
            return Ok(response.map(CachedBody::passed));
        }
        let (head, body) = response.into_parts();
        let answer = self.answer_to_call(&head, ttl, asked);
        let length = body.size_hint().exact();
        let bytes_max = self.bytes_max(&answer).filter(|most| length.is_none_or(|length| length <= *most));
        let Some(bytes_max) = bytes_max else {
            if let Some(leader) = leader {
                leader.alone();
            }
            return Ok(Response::from_parts(head, CachedBody::passed(body)));
        };
        let answer = Arc::new(answer);
        let reader = answer.content.reader();
        if let Some(leader) = &leader {
            leader.answered(&answer);
        }
        let fill = Fill {
            pages: Arc::clone(&self.pages),
            settings: Arc::clone(&self.settings),
            key: self.key.clone(),
            answer,
            length,
            bytes_max,
            is_patient: false,
            takes: |trailers| trailers.get(STATUS).is_some_and(|status| status == "0"),
            mark: asked.mark,
            leader,
        };
        fill.start(body).await;
        Ok(Response::from_parts(head, reader.map_or_else(CachedBody::empty, CachedBody::shared)))
    }

    /// It carries its method as a tag.
    fn answer_to_call(&self, head: &response::Parts, ttl: Duration, asked: Asked) -> Answer {
        let method = tags::named(&self.settings, self.parts.uri.path());
        let tags = match &self.target {
            Some(target) => tags::of_response(&self.settings, target, Some(&method), head),
            None => vec![method],
        };
        let received = asked.exchange.received.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let terms = Terms {
            received_ms: received.as_millis() as u64,
            initial_age_ms: 0,
            lifetime_seconds: ttl.as_secs().min(u32::MAX.into()) as u32,
            overdue_seconds: 0,
            stale_while_revalidate_seconds: 0,
            stale_if_error_seconds: 0,
            marks: Marks::NONE,
        };
        Answer {
            status: head.status,
            fields: pages::without(head.headers.clone(), &[]),
            terms,
            variant: None,
            tags,
            address_tag: None,
            content: Arc::new(BodyStream::new(None)),
        }
    }
}

/// Whether the content of a request is a single message: else it is a stream of them, or broken.
fn is_one_message(content: &[u8]) -> bool {
    content.split_first_chunk::<MESSAGE_HEAD_BYTES>().is_some_and(|(head, message)| {
        let [_, length @ ..] = *head;
        u32::from_be_bytes(length) as usize == message.len()
    })
}
