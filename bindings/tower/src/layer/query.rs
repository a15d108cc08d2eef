//! QUERY (RFC 10008): a GET with content, which is part of the key.
//!
//! ```text
//! ADDRESS query                                  the generation of the answers to QUERY of this address
//! KEY query GENERATION DIGEST                    an answer; variants of it as of any other
//! ```
//! So to remove the generation is to remove all of them: a new generation leads to none of the old answers.

use std::fmt::Write as _;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::query;
use eyewall_page_cache::request_body::{RequestBody, collected};
use eyewall_page_cache::upstream::UpstreamBody;
use ring::digest::{Context, Digest, SHA256};

use super::inner::{HttpService, Visit};
use super::pass::forward;
use super::service::{Answered, answer};

/// The greatest length of content that becomes part of a key. It is held in memory while its request is answered; requests with
/// longer content bypass the cache.
pub(super) const CONTENT_BYTES_MAX: usize = 64 << 10;

pub(super) async fn answer_query<S: HttpService<B>, B: UpstreamBody>(
    mut visit: Visit<S, B>,
    body: B,
) -> Answered<S, B> {
    let passing = CacheStatus::forwarded(Forward::Method).detail("content");
    let content = match collected(body, CONTENT_BYTES_MAX).await {
        Ok(collected) => collected,
        // The inner service gets the bytes that arrived, and the error.
        Err(body) => return forward(&visit, body, passing).await,
    };
    let Some(whole) = content.whole() else { return forward(&visit, content.rejoined(), passing).await };
    let Some(generation) = visit.pages.query_generation(visit.address.as_bytes()).await else {
        return forward(&visit, RequestBody::whole(whole), passing).await;
    };
    let mut digest = Context::new(&SHA256);
    query::identify(&visit.parts.headers, &whole, |piece| digest.update(piece));
    let text = format!(" query {generation:016x} {}", hexadecimal(&digest.finish()));
    visit.key.extend(text.as_bytes());
    visit.content = Some(whole);
    answer(visit).await
}

pub(super) fn hexadecimal(digest: &Digest) -> String {
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
