//! QUERY (RFC 10008): a GET with content, which is part of the key.
//!
//! [`eyewall_page_cache::query`] describes the keys. Here the further parts of a key come before the word `query`.

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_page_cache::digest::CONTENT_BYTES_MAX;
use eyewall_page_cache::query::{behind_address, digest};
use eyewall_page_cache::request_body::{RequestBody, collected};
use eyewall_page_cache::upstream::UpstreamBody;

use super::inner::{Answered, HttpService, Visit, answer};
use super::pass::forward;

/// Answers a QUERY. A request whose content is too long for a key bypasses the cache.
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
    visit.key.extend(behind_address(generation, &digest(&visit.parts.headers, &whole)).as_bytes());
    visit.content = Some(whole);
    answer(visit).await
}
