//! Unary gRPC calls whose answers are stored because the user of the layer declares that their methods only read.
//!
//! ```text
//! ADDRESS grpc DIGEST      of the message, its coding and the codings that the client takes
//! ```
//! HTTP's own rules don't cover these answers: each call is a POST, and its trailers report its outcome.

use std::time::Duration;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_page_cache::digest::{CONTENT_BYTES_MAX, ContentDigest};
use eyewall_page_cache::request_body::collected;
use eyewall_page_cache::upstream::UpstreamBody;
use eyewall_page_cache::visit::Prescribed;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::inner::{Answered, HttpService, Visit};
use super::{pass, tags};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The request metadata by which the answer of any method may differ.
const OF_THE_CODING: [HeaderName; 3] =
    [CONTENT_TYPE, HeaderName::from_static("grpc-encoding"), HeaderName::from_static("grpc-accept-encoding")];
/// A byte that says whether the message is compressed, and its length.
const MESSAGE_HEAD_BYTES: usize = 5;

/// How long the answer to a call is fresh. None: the answer is not to be stored.
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
    let mut digest = ContentDigest::new();
    for name in OF_THE_CODING {
        // All lines of the field, because a server may take any of them.
        let lines: Vec<&[u8]> = visit.parts.headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
        digest.update(&lines.join(&b','));
        digest.update(b"\n");
    }
    digest.update(&message);
    visit.key = format!("{} grpc {}", visit.address, digest.finish()).into_bytes();
    // The answer carries its method as a tag.
    visit.upstream.tag = Some(tags::named(&visit.upstream.settings, visit.parts.uri.path()));
    visit.content = Some(message);
    let how = Prescribed {
        ttl,
        // If the status is among the fields of the head, the call failed before it began.
        takes_head: |head| head.status == StatusCode::OK && !head.headers.contains_key(STATUS),
        takes_trailers: |trailers| trailers.get(STATUS).is_some_and(|status| status == "0"),
    };
    visit.answer_prescribed(how).await
}

/// Whether the content of a request is a single message. Otherwise it is a stream of messages, or broken.
fn is_one_message(content: &[u8]) -> bool {
    content.split_first_chunk::<MESSAGE_HEAD_BYTES>().is_some_and(|(head, message)| {
        let [_, length @ ..] = *head;
        u32::from_be_bytes(length) as usize == message.len()
    })
}
