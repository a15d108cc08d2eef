//! Stored responses and those on their way into the volume: the state that all front doors of a volume share.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall::{Epoch, Purge};
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
use crate::store::{PurgeTarget, Store, Times};

/// A stale response that can be validated is kept this long, so in effect until it is evicted.
const VALIDATED_FOR: Duration = Duration::from_hours(365 * 24);

/// No compressed form is asked for twice within this time, unless it was made meanwhile.
const FORM_ASKED_FOR: Duration = Duration::from_secs(10);

/// The stored responses of a volume, and those on their way there.
#[derive(Debug)]
pub struct Pages {
    /// The store.
    pub store: Arc<Store>,
    /// The requests that are under way.
    pub(crate) in_flight: Arc<InFlight>,
    /// The runs of large bodies that are under way.
    pub(crate) runs: Arc<Runs>,
    /// Addresses whose last answer could not be stored. Requests for them don't wait for one another, which would only slow them
    /// down.
    pub(crate) unstorable: RecentKeys,
    /// Recent purges by address.
    pub(crate) recent_purges: RecentPurges,
    /// The compressed forms that were asked for recently, by key and version.
    pub(crate) asked_forms: Arc<RecentKeys>,
    /// Told of responses that were made and stored.
    listener: Listener,
    /// In milliseconds since 1970. It only grows, and a reader may see it late: a soft purge of everything follows each change.
    softened_before_ms: AtomicU64,
    /// When the latest response arrived that was stored or renewed. A clock that is set back doesn't change it.
    received_ms: AtomicU64,
    distrusted: Mutex<Distrusted>,
}

/// Which requests to the upstream began before everything was made stale in the place of unknown purges.
#[derive(Debug, Clone, Copy)]
enum Distrusted {
    Nothing,
    /// All up to now.
    All,
    Before(Epoch),
}

/// A response that was stored.
#[derive(Debug, Clone, Copy)]
pub struct Kept<'a> {
    /// The key of the request.
    pub key: &'a [u8],
    /// The key of the entry. It is another one if the response varies.
    pub kept_key: &'a [u8],
    /// The fields of requests that select it, if it varies.
    pub variant: Option<&'a Variant>,
}

/// The function that is told of stored responses.
#[derive(Default)]
struct Listener(OnceLock<Box<Told>>);

type Told = dyn Fn(Kept<'_>) + Send + Sync;

impl fmt::Debug for Listener {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("Listener").field(&self.0.get().is_some()).finish()
    }
}

/// What decides how long a response is kept.
#[derive(Debug, Clone, Copy)]
pub struct Lasting {
    /// The present time.
    pub now: SystemTime,
    /// A stale response is kept at least this long, to be sent while the upstream is unreachable.
    pub when_unreachable: Duration,
}

impl Pages {
    /// Whether the last answer under this key could not be stored.
    pub fn is_unstorable(&self, key: &[u8]) -> bool {
        self.unstorable.contains(key)
    }

    /// The stored responses of a volume. It remembers for `unstorable_for` that an answer could not be stored; with None, until
    /// later keys take its place.
    pub fn new(store: Arc<Store>, unstorable_for: Option<Duration>) -> Self {
        let unstorable = RecentKeys::new(unstorable_for);
        Self {
            store,
            in_flight: Arc::default(),
            runs: Arc::default(),
            unstorable,
            recent_purges: RecentPurges::default(),
            asked_forms: Arc::new(RecentKeys::new(Some(FORM_ASKED_FOR))),
            listener: Listener::default(),
            softened_before_ms: AtomicU64::new(0),
            received_ms: AtomicU64::new(0),
            distrusted: Mutex::new(Distrusted::Nothing),
        }
    }

    /// Makes everything stale that is stored, or on its way into the volume, by a soft purge that stands for purges which may have been
    /// hard. So none of it is sent stale while it is revalidated.
    ///
    /// # Errors
    /// Errors of the engine.
    pub fn distrust(&self) -> eyewall::Result<()> {
        // Until the epoch after the purge is known, no response on its way is trusted.
        self.set_distrusted(Distrusted::All);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.soften_before((now.as_millis() as u64).max(self.received_ms.load(Ordering::SeqCst)));
        self.store.purge(PurgeTarget::Everything, Purge::Soft)?;
        if let Some(epoch) = self.store.epoch() {
            self.set_distrusted(Distrusted::Before(epoch));
        }
        Ok(())
    }

    fn set_distrusted(&self, distrusted: Distrusted) {
        *self.distrusted.lock().unwrap_or_else(PoisonError::into_inner) = distrusted;
    }

    /// The terms of a response whose upstream was asked at `mark`, before it is stored. In this order: a response that isn't distrusted here
    /// has arrived before the time that the next [`Pages::distrust`] sets.
    fn trusted(&self, mut terms: Terms, mark: Mark) -> Terms {
        self.received_ms.fetch_max(terms.received_ms, Ordering::SeqCst);
        let is_distrusted = match *self.distrusted.lock().unwrap_or_else(PoisonError::into_inner) {
            Distrusted::Nothing => false,
            Distrusted::All => true,
            Distrusted::Before(epoch) => mark.epoch.is_none_or(|begun| begun.is_before(epoch)),
        };
        if is_distrusted {
            terms.stale_while_revalidate_seconds = 0;
        }
        terms
    }

    /// From now on, `told` learns of each whole response that the upstream has made and that was stored. It is called on the thread that
    /// stores, and must not wait. Only the first call counts.
    pub fn tell_of_stored(&self, told: impl Fn(Kept<'_>) + Send + Sync + 'static) {
        // The first listener stays.
        let _ = self.listener.0.set(Box::new(told));
    }

    /// Tells of a response that was stored under `kept_key`.
    pub(crate) fn tell(&self, key: &[u8], kept_key: &[u8], answer: &Answer) {
        if let Some(told) = self.listener.0.get() {
            told(Kept { key, kept_key, variant: answer.variant.as_ref() });
        }
    }

    /// From now on, no response that arrived up to this time (in milliseconds since 1970) is sent stale while it is revalidated.
    pub fn soften_before(&self, time_ms: u64) {
        self.softened_before_ms.fetch_max(time_ms, Ordering::SeqCst);
    }

    /// The latest such time.
    pub fn softened_before(&self) -> u64 {
        self.softened_before_ms.load(Ordering::SeqCst)
    }

    /// The number of running requests that others wait for.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// The running request for a key, or a new one.
    pub(crate) fn join(&self, collapse_key: &[u8]) -> Joined {
        self.in_flight.join(collapse_key, self.store.epoch())
    }

    /// Makes a short write: on this thread if the volume takes it without waiting, otherwise on a blocking thread. None: it
    /// panicked there.
    pub async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        write: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        if self.store.allows_inline_writes() {
            return Some(self.store.write_inline(|| write(self)));
        }
        let pages = Arc::clone(self);
        // The thread has already logged a panic.
        tokio::task::spawn_blocking(move || write(&pages)).await.ok()
    }

    /// Removes a stored response, unless another one has taken its place.
    pub(crate) async fn remove(self: &Arc<Self>, stored: Box<Stored>) {
        self.write(move |pages| pages.store.remove_found(&stored.key, &stored.found)).await;
    }

    /// Stores an answer with this head and value; the upstream was asked at `mark`. Returns the key of the entry. None if it could
    /// not be stored, or has been purged hard since. After a soft purge it is stored as stale, for its validator.
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
        let head = &self.trusted_head(head, mark);
        let tags: Vec<&str> = answer.tags.iter().map(String::as_str).collect();
        let kept_key = match &answer.variant {
            None => key.to_vec(),
            Some(variant) => self.keep_vary_index(key, answer, variant)?,
        };
        let serial = self.store.keep(&kept_key, head, value, times(&answer.terms, lasting), &tags, mark.epoch)?;
        self.catch_up(&kept_key, serial, mark).then_some(kept_key)
    }

    fn trusted_head<'a>(&self, head: &'a Head, mark: Mark) -> Cow<'a, Head> {
        let kind = match head.kind {
            Kind::Response(terms) => Kind::Response(self.trusted(terms, mark)),
            Kind::Fragmented(terms, layout) => Kind::Fragmented(self.trusted(terms, mark), layout),
            other => other,
        };
        if kind == head.kind { Cow::Borrowed(head) } else { Cow::Owned(Head { kind, ..head.clone() }) }
    }

    /// Adds a variant to the list of the address's variants, and returns its key. No purge makes the list wrong, so its entry does
    /// not carry the epoch of the request.
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

    /// Gives a stored response other fields and terms; the upstream was asked at `mark`. The entry changes only if no other one has
    /// taken its place.
    pub fn renew(&self, stored: &mut Stored, fields: HeaderMap, storable: &Storable, mark: Mark, lasting: Lasting) {
        let (terms, status) = (self.trusted(storable.terms, mark), stored.found.head.status);
        stored.terms = terms;
        stored.found.is_stale = false;
        let kind = match stored.found.head.kind {
            Kind::Fragmented(_, layout) => Kind::Fragmented(terms, layout),
            _ => Kind::Response(terms),
        };
        let (trailers, compressible) = (stored.found.head.trailers.take(), stored.found.head.compressible);
        stored.found.head =
            Head { trailers, compressible, ..Head::new(kind, status, without(fields, &storable.withheld)) };
        let is_renewed = self.store.renew(&stored.key, &stored.found, times(&terms, lasting), mark.epoch);
        // If a hard purge of the address removes the entry, it isn't renewed, or is removed again. A soft purge leaves an entry
        // that is already stale as it is.
        if is_renewed && self.recent_purges.since(mark).is_some() {
            self.store.logged(self.soften(&stored.key));
        }
    }
}

/// Until when an entry is fresh, and how long it is kept after that.
fn times(terms: &Terms, lasting: Lasting) -> Times {
    let window = terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds);
    let may_be_stale = !terms.marks.contains(Marks::FORBIDS_STALE) && !terms.marks.contains(Marks::NO_CACHE);
    let unreachable = if may_be_stale { lasting.when_unreachable } else { Duration::ZERO };
    let is_validated = terms.marks.contains(Marks::HAS_VALIDATOR);
    let stale = if is_validated { VALIDATED_FOR } else { Duration::from_secs(window.into()).max(unreachable) };
    Times { fresh: Some(terms.fresh_for(lasting.now)), stale }
}

/// The fields of a response that are stored.
pub fn without(mut fields: HeaderMap, withheld: &[HeaderName]) -> HeaderMap {
    for name in withheld.iter().chain(&[CONTENT_LENGTH, AGE, CACHE_STATUS]) {
        fields.remove(name);
    }
    fields
}

/// The variant that a response is. None if it does not vary.
pub fn variant(storable: &Storable, request: &HeaderMap) -> Option<Variant> {
    match &storable.vary {
        Vary::Fields(names) => Some(Variant::of(names, request)),
        Vary::Nothing | Vary::Everything => None,
    }
}
