//! Stored responses, and what is under way to there: what all who answer from a volume share.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall::Purge;
use eyewall_http::field::cache_status::CACHE_STATUS;
use eyewall_http::field::vary::Vary;
use eyewall_http::storing::Storable;
use eyewall_http::terms::{Marks, Terms};
use eyewall_http::vary_index::{Variant, VaryIndex};
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName};

use crate::answer::{Answer, InFlight, Joined};
use crate::fragments::run::Runs;
use crate::generation::generation;
use crate::head::{Head, Kind};
use crate::recent_keys::RecentKeys;
use crate::recent_purges::{Mark, RecentPurges};
use crate::selection::Stored;
use crate::store::{Store, Times};

/// How long what can be validated is kept when it is stale: until it is evicted.
const VALIDATED_FOR: Duration = Duration::from_hours(365 * 24);

/// The stored responses of a volume, and those on their way there.
#[derive(Debug)]
pub struct Pages {
    /// Where they are stored.
    pub store: Arc<Store>,
    /// Who asks for what just now.
    pub(crate) in_flight: Arc<InFlight>,
    /// What comes of large bodies just now.
    pub(crate) runs: Arc<Runs>,
    /// Addresses whose last answer could not be stored: waiting for one another would only make their clients slow.
    pub(crate) unstorable: RecentKeys,
    /// What was purged by its address.
    pub(crate) recent_purges: RecentPurges,
}

/// By which for how long a response is kept.
#[derive(Debug, Clone, Copy)]
pub struct Lasting {
    /// What time it is.
    pub now: SystemTime,
    /// A stale response is kept for so long at least, to be sent where nobody can be asked for another one.
    pub when_unreachable: Duration,
}

impl Pages {
    /// Those of a volume. It is remembered for `unstorable_for`, or until others push it out, that an answer could not be stored.
    pub fn new(store: Arc<Store>, unstorable_for: Option<Duration>) -> Self {
        let unstorable = RecentKeys::new(unstorable_for);
        Self {
            store,
            in_flight: Arc::default(),
            runs: Arc::default(),
            unstorable,
            recent_purges: RecentPurges::default(),
        }
    }

    /// The number of running requests that others wait for.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// The running request for a key, or a new one.
    pub(crate) fn join(&self, collapse_key: &[u8]) -> Joined {
        self.in_flight.join(collapse_key, self.store.epoch())
    }

    /// Writes what is short: on this thread if the volume takes it without waiting, else on one that may wait. None: it panicked there.
    pub async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        write: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        if self.store.allows_inline_writes() {
            return Some(self.store.write_inline(|| write(self)));
        }
        let pages = Arc::clone(self);
        // A panic in there was told already by its thread.
        tokio::task::spawn_blocking(move || write(&pages)).await.ok()
    }

    /// Removes a stored response, and nothing that has taken its place.
    pub(crate) async fn remove(self: &Arc<Self>, stored: Box<Stored>) {
        self.write(move |pages| pages.store.remove_found(&stored.key, &stored.found)).await;
    }

    /// Stores an answer that was asked for at `mark`, as an entry of this head and value. The key under which it is stored, unless it
    /// couldn't be or was purged hard since. After a soft purge it is stored as stale, for its validator.
    pub(crate) fn keep(
        &self,
        key: &[u8],
        answer: &Answer,
        head: &Head,
        value: &[Bytes],
        mark: Mark,
        lasting: Lasting,
    ) -> Option<Vec<u8>> {
        if self.recent_purges.since(mark) == Some(Purge::Hard) {
            return None;
        }
        let tags: Vec<&str> = answer.tags.iter().map(String::as_str).collect();
        let kept_key = match &answer.variant {
            None => key.to_vec(),
            Some(variant) => self.keep_vary_index(key, answer, variant)?,
        };
        let serial = self.store.keep(&kept_key, head, value, times(&answer.terms, lasting), &tags, mark.epoch)?;
        self.catch_up(&kept_key, serial, mark).then_some(kept_key)
    }

    /// Enters a variant in the list of those of its address; returns its key. What the list says is right whatever is purged, so
    /// that it is of no earlier epoch.
    fn keep_vary_index(&self, key: &[u8], answer: &Answer, variant: &Variant) -> Option<Vec<u8>> {
        let mut variant_key = None;
        let is_stored = self.store.change(key, answer.address_tag.as_deref().as_slice(), |present| {
            let mut vary_index = present.and_then(VaryIndex::decode).unwrap_or_else(|| VaryIndex::new(generation()));
            variant_key = Some(vary_index.key_of(key, variant));
            vary_index.add(variant.clone());
            vary_index.encode()
        });
        variant_key.filter(|_| is_stored)
    }

    /// Gives a stored response other fields, on these terms, as was asked about at `mark`; in the volume only while
    /// nothing else was stored in its place.
    pub fn renew(&self, stored: &mut Stored, fields: HeaderMap, storable: &Storable, mark: Mark, lasting: Lasting) {
        let (terms, status) = (storable.terms, stored.found.head.status);
        stored.terms = terms;
        stored.found.is_stale = false;
        let kind = match stored.found.head.kind {
            Kind::Fragmented(_, layout) => Kind::Fragmented(terms, layout),
            _ => Kind::Response(terms),
        };
        let trailers = stored.found.head.trailers.take();
        stored.found.head = Head { trailers, ..Head::new(kind, status, without(fields, &storable.withheld)) };
        let is_renewed = self.store.renew(&stored.key, &stored.found, times(&terms, lasting), mark.epoch);
        // What a hard purge of the address removes isn't renewed, or is removed behind it. What was stale already a soft one has
        // left as it was.
        if is_renewed && self.recent_purges.since(mark).is_some() {
            self.store.logged(self.soften(&stored.key));
        }
    }
}

/// Until when an entry is fresh, and for how long it is kept when it is stale.
fn times(terms: &Terms, lasting: Lasting) -> Times {
    let window = terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds);
    let may_be_stale = !terms.marks.contains(Marks::FORBIDS_STALE) && !terms.marks.contains(Marks::NO_CACHE);
    let unreachable = if may_be_stale { lasting.when_unreachable } else { Duration::ZERO };
    let is_validated = terms.marks.contains(Marks::HAS_VALIDATOR);
    let stale = if is_validated { VALIDATED_FOR } else { Duration::from_secs(window.into()).max(unreachable) };
    Times { fresh: Some(terms.fresh_for(lasting.now)), stale }
}

/// The fields that are stored of a response.
pub fn without(mut fields: HeaderMap, withheld: &[HeaderName]) -> HeaderMap {
    for name in withheld.iter().chain(&[CONTENT_LENGTH, AGE, CACHE_STATUS]) {
        fields.remove(name);
    }
    fields
}

/// What a response varies by, as far as it is one of several.
pub fn variant(storable: &Storable, request: &HeaderMap) -> Option<Variant> {
    match &storable.vary {
        Vary::Fields(names) => Some(Variant::of(names, request)),
        Vary::Nothing | Vary::Everything => None,
    }
}
