//! What the workers share of the responses of origins: where they are stored, and what is under way to there.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall_http::storing::Storable;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::pages::{self, Lasting};
use eyewall_page_cache::recent_purges::Mark;
use eyewall_page_cache::selection::Stored;
use eyewall_page_cache::store::Store;
use http::HeaderMap;

use super::answer::{Answer, Content};
use super::fragments::run::Runs;

/// The page cache of all sites, and what of large bodies is on its way.
pub(crate) struct Pages {
    cached: pages::Pages<Content>,
    pub(crate) runs: Arc<Runs>,
    /// The longest `stale_when_unreachable` of a site: a stale response is kept for so long at least.
    stale_when_unreachable: Duration,
}

impl Deref for Pages {
    type Target = pages::Pages<Content>;

    fn deref(&self) -> &pages::Pages<Content> {
        &self.cached
    }
}

impl Pages {
    /// `stale_when_unreachable` is the longest that a site has.
    pub(crate) fn new(store: Arc<Store>, stale_when_unreachable: Duration) -> Self {
        Self { cached: pages::Pages::new(store, None), runs: Arc::default(), stale_when_unreachable }
    }

    fn lasting(&self) -> Lasting {
        Lasting { now: SystemTime::now(), when_unreachable: self.stale_when_unreachable }
    }

    /// Stores an answer that was asked for at `mark`, whose entry is of this kind and has this value
    /// ([`pages::Pages::keep`]).
    pub(crate) fn keep_as(
        &self,
        key: &[u8],
        answer: &Answer,
        kind: Kind,
        value: &[Bytes],
        mark: Mark,
    ) -> Option<Vec<u8>> {
        let head = Head::new(kind, answer.status, answer.fields.clone());
        self.keep(key, answer, &head, value, mark, self.lasting())
    }

    /// Gives a stored response other fields ([`pages::Pages::renew`]).
    pub(crate) fn renew(&self, stored: &mut Stored, fields: HeaderMap, storable: &Storable, mark: Mark) {
        self.cached.renew(stored, fields, storable, mark, self.lasting());
    }
}
