//! Failures that are remembered, so that not everybody waits for the same one: negative entries, of a few bytes.
//!
//! The operator says for how long, by `negative_ttl` for the status. Remembered so is that the origin gave no answer (502, 504),
//! and an error (404, 410, 5xx) without a body. An error with a body is stored as any response is.

use std::sync::Arc;
use std::time::Duration;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::freshness::Source;
use eyewall_http::storing::Storable;
use http::{HeaderMap, Response, StatusCode};

use super::inbound::Inbound;
use super::purged::Mark;
use super::{Proxy, tags};
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
        inbound.decision.of_response(status, &HeaderMap::new()).overrides.negative_ttl
    }

    /// How long an answer is remembered by its status alone: an error without a body, of which the origin says no time.
    pub(super) fn ttl_of_bare(status: StatusCode, length: Option<u64>, storable: &Storable) -> Option<Duration> {
        let is_error = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) || status.is_server_error();
        let is_bare = is_error && length == Some(0) && storable.source == Some(Source::Policy);
        is_bare.then(|| Duration::from_secs(storable.terms.lifetime_seconds.into()))
    }

    /// Remembers a failure, unless it was purged since.
    pub(super) async fn remember(&self, inbound: Inbound<'_>, status: StatusCode, ttl: Duration, mark: Mark) {
        let (pages, key) = (Arc::clone(&self.pages), inbound.key.as_bytes().to_vec());
        let tag = tags::address(&self.site, inbound.key);
        let remembering = move || {
            // Somebody else may have had an answer meanwhile.
            if pages.purged.since(mark).is_some() || pages.store.has(&key, |_| true) {
                return;
            }
            let kept = pages.store.keep_failure(&key, status, ttl, tag.as_deref().as_slice(), mark.epoch);
            if let Some(serial) = kept.filter(|_| pages.purged.since(mark).is_some()) {
                pages.store.remove_version(&key, serial);
            }
        };
        // A panic in there was told already by its thread.
        let _ = tokio::task::spawn_blocking(remembering).await;
    }
}
