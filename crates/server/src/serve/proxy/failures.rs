//! Failures that are remembered, so that not everybody waits for the same one: negative entries, of a few bytes.
//!
//! Remembered so is that the origin gave no answer (502, 504), where the operator says for how long (`negative_ttl`); and an error
//! (404, 410, 5xx) without a body, which is the same for all, and for which the operator sets the time. Any other error is stored
//! as any response is.

use std::sync::Arc;
use std::time::Duration;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::vary::Vary;
use eyewall_http::freshness::Source;
use eyewall_http::storing::Storable;
use eyewall_page_cache::recent_purges::Mark;
use http::{HeaderMap, Response, StatusCode};

use super::Proxy;
use super::inbound::Inbound;
use crate::serve::body::Body;
use crate::serve::{NAME, reply};

/// The answer that a failure stands for.
pub(super) fn remembered(status: StatusCode, left: Duration) -> Response<Body> {
    let mut response = reply::error(status, "this was so a short time ago, and is remembered");
    let told = CacheStatus::hit().ttl(left.as_secs() as i64).detail("negative");
    told.append_to(response.headers_mut(), NAME);
    response
}

impl Proxy {
    /// How long it is remembered that the origin gives no answer, but this status stands for it.
    pub(super) fn ttl_of_failure(inbound: Inbound<'_>, status: StatusCode) -> Option<Duration> {
        let overrides = inbound.decision.of_response(status, &HeaderMap::new()).overrides;
        overrides.negative_ttl.filter(|_| overrides.no_store != Some(true))
    }

    /// How long an answer is remembered by its status alone: an error without a body, of which the origin says no time.
    pub(super) fn ttl_of_bare(status: StatusCode, length: Option<u64>, storable: &Storable) -> Option<Duration> {
        let is_error = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) || status.is_server_error();
        let is_bare = is_error
            && length == Some(0)
            && storable.source == Some(Source::Policy)
            && matches!(storable.vary, Vary::Nothing);
        is_bare.then(|| Duration::from_secs(storable.terms.lifetime_seconds.into()))
    }

    /// Remembers a failure under these tags. False: something is stored, which is worth more, or it was purged since.
    pub(super) async fn remember(
        &self,
        inbound: Inbound<'_>,
        (status, ttl): (StatusCode, Duration),
        tags: Vec<String>,
        mark: Mark,
    ) -> bool {
        let (pages, key) = (Arc::clone(&self.pages), inbound.key.as_bytes().to_vec());
        let remembering = move || {
            // Somebody else may have had an answer meanwhile.
            if pages.recent_purges.since(mark).is_some() || pages.store.has(&key, |_| true) {
                return false;
            }
            let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
            let kept = pages.store.keep_failure(&key, status, ttl, &tags, mark.epoch);
            if let Some(serial) = kept.filter(|_| pages.recent_purges.since(mark).is_some()) {
                pages.store.remove_version(&key, serial);
                return false;
            }
            kept.is_some()
        };
        // Its thread has logged a panic already.
        tokio::task::spawn_blocking(remembering).await.unwrap_or(false)
    }
}
