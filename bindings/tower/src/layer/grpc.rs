//! Unary calls of gRPC whose answers are stored, because the user of the layer says that their methods only read.
//!
//! ```text
//! ADDRESS grpc DIGEST      of the message, its coding and the codings that the client takes
//! ```
//! HTTP's own rules say nothing of these answers: each is a POST's, and tells by its trailers how it went.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::terms::{Marks, Terms};
use eyewall_page_cache::answer::Content::{Fragments, Whole};
use eyewall_page_cache::answer::{Answer, Joined, Ticket};
use eyewall_page_cache::body::BodyStream;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::collapsing::Landing;
use eyewall_page_cache::fill::Fill;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::pages;
use eyewall_page_cache::reply::{self, Reply};
use eyewall_page_cache::request_body::{RequestBody, collected};
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::Store;
use eyewall_page_cache::upstream::{Upstream as _, UpstreamBody};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, response};
use http_body::Body as _;
use ring::digest::{Context, SHA256};

use super::inner::{HttpService, Visit};
use super::query::{CONTENT_BYTES_MAX, hexadecimal};
use super::service::Answered;
use super::{pass, tags};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// What of a request's metadata its answer may differ by, for all methods.
const OF_THE_CODING: [HeaderName; 3] =
    [CONTENT_TYPE, HeaderName::from_static("grpc-encoding"), HeaderName::from_static("grpc-accept-encoding")];
/// Whether it is packed, and its length.
const MESSAGE_HEAD_BYTES: usize = 5;

/// For how long the answer to a call is fresh; None: it isn't one whose answers are stored.
pub(super) fn ttl<S, B>(visit: &Visit<S, B>) -> Option<Duration> {
    let (parts, inner) = (&visit.parts, &visit.upstream);
    let is_call = parts.method == Method::POST && pass::is_grpc(&parts.headers) && inner.target.is_some();
    let is_for_all = is_call && !parts.headers.contains_key(AUTHORIZATION);
    inner.settings.grpc.get(parts.uri.path()).copied().filter(|_| is_for_all && !visit.pages.store.has_failed())
}

pub(super) async fn answer<S: HttpService<B>, B: UpstreamBody>(
    mut visit: Visit<S, B>,
    body: B,
    ttl: Duration,
) -> Answered<S, B> {
    let passing = CacheStatus::forwarded(Forward::Method);
    let content = match collected(body, CONTENT_BYTES_MAX).await {
        Ok(content) => content,
        Err(body) => return pass::forward(&visit, body, passing).await,
    };
    let Some(message) = content.whole().filter(|message| is_one_message(message)) else {
        return pass::forward(&visit, content.rejoined(), passing).await;
    };
    let mut digest = Context::new(&SHA256);
    for name in OF_THE_CODING {
        // All of its lines: a server may take any of them.
        let lines: Vec<&[u8]> = visit.parts.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        digest.update(&lines.join(&b','));
        digest.update(b"\n");
    }
    digest.update(&message);
    visit.key = format!("{} grpc {}", visit.address, hexadecimal(&digest.finish())).into_bytes();
    // It carries its method as a tag.
    visit.upstream.tag = Some(tags::named(&visit.upstream.settings, visit.parts.uri.path()));
    match found_or_coming(&visit).await {
        Ok(response) => Ok(response),
        Err(ticket) => call(&visit, message, ticket, ttl).await,
    }
}

/// The answer that is stored, or comes; else the right to ask for it, or nothing, to ask for this call alone.
async fn found_or_coming<S: HttpService<B>, B: UpstreamBody>(
    visit: &Visit<S, B>,
) -> Result<Reply<S::Content>, Option<Ticket>> {
    // One that waits, and then takes the place of who gave up.
    for _ in 0..2 {
        if let Some(stored) = stored_call(visit).await {
            let (trailers, head) = (stored.trailers(), stored.found.head.clone());
            let body = CachedBody::pieces(VecDeque::from([stored.found.value()]), trailers);
            return Ok(reply::response(head.status, head.fields, body));
        }
        if visit.pages.unstorable.contains(&visit.key) {
            return Err(None);
        }
        let waiting = match visit.pages.join(&visit.key) {
            Joined::Lead(ticket) => return Err(Some(ticket)),
            Joined::Follow(waiting) => waiting,
        };
        match waiting.landing(visit.settings.collapse_timeout).await {
            Landing::Answered(answer) => {
                let reader = match &answer.content {
                    Whole(stream) => stream.reader(),
                    Fragments(_) => None,
                };
                let body = CachedBody::shared(reader.ok_or(None)?);
                return Ok(reply::response(answer.status, answer.fields.clone(), body));
            }
            Landing::Over => {}
            Landing::Alone | Landing::Late => return Err(None),
        }
    }
    Err(None)
}

async fn stored_call<S, B>(visit: &Visit<S, B>) -> Option<Stored> {
    let found = visit.pages.look(Store::look, &visit.key).await.found()?;
    let now = visit.settings.now();
    let stored = Stored::new(&visit.key, visit.key.clone(), found, now)?;
    (!stored.terms.fresh_for(now).is_zero()).then_some(stored)
}

async fn call<S: HttpService<B>, B: UpstreamBody>(
    visit: &Visit<S, B>,
    message: Bytes,
    ticket: Option<Ticket>,
    ttl: Duration,
) -> Answered<S, B> {
    let mark = visit.pages.mark(visit.address.as_bytes());
    let request = Request::from_parts(visit.parts.clone(), RequestBody::whole(message));
    let response = visit.upstream.send(request).await?;
    let (mut head, body) = response.into_parts();
    // One that has its status among its fields failed before it began.
    let is_begun = head.status == StatusCode::OK && !head.headers.contains_key(STATUS);
    let stream = Arc::new(BodyStream::new(None));
    let answer = answer_to_call(visit, &mut head, &stream, ttl);
    let length = body.size_hint().exact();
    let bytes_max = bytes_max(visit, &answer).filter(|most| is_begun && length.is_none_or(|length| length <= *most));
    let Some(whole_bytes_max) = bytes_max else {
        if let Some(ticket) = ticket {
            ticket.alone();
        }
        return Ok(Response::from_parts(head, CachedBody::passed(body, None)));
    };
    let (answer, reader) = (Arc::new(answer), stream.reader());
    if let Some(ticket) = &ticket {
        ticket.answered(&answer);
    }
    let fill = Fill {
        pages: Arc::clone(&visit.pages),
        settings: Arc::clone(&visit.settings),
        key: visit.key.clone(),
        answer,
        stream,
        length,
        whole_bytes_max,
        object_bytes_max: None,
        is_patient: false,
        takes: |trailers| trailers.get(STATUS).is_some_and(|status| status == "0"),
        mark,
        ticket,
    };
    fill.start(body).await;
    Ok(Response::from_parts(head, reader.map_or_else(CachedBody::empty, CachedBody::shared)))
}

fn bytes_max<S, B>(visit: &Visit<S, B>, answer: &Answer) -> Option<u64> {
    let head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
    let most = visit.pages.store.value_bytes_max(&visit.key, &head, &answer.tags)?;
    Some(most.min(visit.settings.body_bytes_max))
}

fn answer_to_call<S: HttpService<B>, B: UpstreamBody>(
    visit: &Visit<S, B>,
    head: &mut response::Parts,
    stream: &Arc<BodyStream>,
    ttl: Duration,
) -> Answer {
    let rules = visit.upstream.rules(&visit.settings, head.status, &mut head.headers, &mut head.extensions);
    let received = visit.settings.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
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
        tags: rules.tags,
        address_tag: None,
        content: Whole(Arc::clone(stream)),
    }
}

/// Whether the content of a request is a single message: else it is a stream of them, or broken.
fn is_one_message(content: &[u8]) -> bool {
    content.split_first_chunk::<MESSAGE_HEAD_BYTES>().is_some_and(|(head, message)| {
        let [_, length @ ..] = *head;
        u32::from_be_bytes(length) as usize == message.len()
    })
}
