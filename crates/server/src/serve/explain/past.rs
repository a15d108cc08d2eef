//! The past of a key, as far as it is known: requests and purges.

use std::time::{SystemTime, UNIX_EPOCH};

use super::explanation::{Past, PurgeOf, RequestOf, StoredOf};
use crate::key::CacheKey;
use crate::serve::proxy::tags;
use crate::serve::shared::Shared;
use crate::sites::Site;

/// How many requests are told.
const REQUESTS_MAX: usize = 5;

/// The past of a key. `asked` are the host and the target of the request as a client writes them. The tags of the stored response say which purges
/// have covered it.
pub(super) fn of(
    shared: &Shared,
    site: &Site,
    key: &CacheKey,
    (host, target): (&[u8], &str),
    stored: Option<&StoredOf>,
) -> Past {
    let store = &shared.pages.store;
    let mut tags: Vec<String> = stored.map(|stored| stored.tags.clone()).unwrap_or_default();
    tags.extend(tags::address(site, key));
    let purge = shared.metrics.purges.last_of(key.address(), key.text(), &tags).map(|noted| {
        let (time, kind, of) = noted.told();
        PurgeOf { time, kind: kind.to_owned(), of }
    });
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
    let recent = shared.metrics.recent(&site.key, host, target, REQUESTS_MAX).into_iter().map(|recent| RequestOf {
        seconds_ago: now.saturating_sub(recent.at_ms) / 1000,
        verdict: recent.verdict.label().to_owned(),
        reason: Some(recent.reason).filter(|reason| !reason.is_empty()),
        first_byte_us: recent.micros.into(),
    });
    Past {
        is_unstorable: shared.pages.is_unstorable(key.as_bytes()),
        uses: store.uses(key.as_bytes()),
        remembered_requests: store.remembered_requests(key.as_bytes()),
        purge,
        requests: recent.collect(),
    }
}
