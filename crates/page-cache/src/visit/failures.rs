//! Remembered failures, as negative entries of a few bytes. They keep every request from waiting for the same failure.
//!
//! There are two kinds. One: the upstream gave no answer, and the front door says how long to remember that
//! ([`Upstream::failure_ttl`]). The other: an error (404, 410, 5xx) without a body, which is the same for all clients, and whose
//! time only the policy says. Any other error is stored as any response is.

use std::sync::Arc;
use std::time::Duration;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::field::vary::Vary;
use eyewall_http::freshness::Source;
use eyewall_http::storing::Storable;
use http::StatusCode;

use super::Visit;
use crate::recent_purges::Mark;
use crate::reply::{self, Reply};
use crate::upstream::Upstream;

impl<U: Upstream> Visit<U> {
    /// The response that a failure stands for.
    pub(super) fn remembered(&self, status: StatusCode, left: Duration) -> Reply<U::Body> {
        let mut response = reply::error(status, "this was so a short time ago, and is remembered");
        let told = CacheStatus::hit().ttl(left.as_secs() as i64).detail("negative");
        self.tell(response.headers_mut(), &told);
        response
    }

    /// How long a response is remembered by its status alone: an error without a body, for which the upstream gives no time.
    pub(super) fn ttl_of_bare(&self, status: StatusCode, length: Option<u64>, storable: &Storable) -> Option<Duration> {
        let is_error = matches!(status, StatusCode::NOT_FOUND | StatusCode::GONE) || status.is_server_error();
        let is_bare = is_error
            && self.settings.remembers_bare_errors
            && length == Some(0)
            && storable.source == Some(Source::Policy)
            && matches!(storable.vary, Vary::Nothing);
        is_bare.then(|| Duration::from_secs(storable.terms.lifetime_seconds.into()))
    }

    /// Remembers a failure under these tags. False: a stored response is worth more, or a purge has come since.
    pub(super) async fn remember(&self, (status, ttl): (StatusCode, Duration), tags: Vec<String>, mark: Mark) -> bool {
        let (pages, key) = (Arc::clone(&self.pages), self.key.clone());
        let remembering = move || {
            // Another request may have had an answer meanwhile.
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
        // The thread has already logged its panic.
        tokio::task::spawn_blocking(remembering).await.unwrap_or(false)
    }
}
