//! What the workers share of the responses of origins: where they are stored, and what is under way to there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall::Purge;
use eyewall_http::field::cache_status::CACHE_STATUS;
use eyewall_http::field::vary::Vary;
use eyewall_http::policy::Policy;
use eyewall_http::reuse;
use eyewall_http::selecting;
use eyewall_http::signpost::{Signpost, Variant};
use eyewall_http::storing::Storable;
use eyewall_http::terms::{Marks, Terms};
use eyewall_page_cache::recent_purges::{Mark, RecentPurges};
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, StatusCode};

use super::answer::Answer;
use super::answer::{Flights, Joined};
use super::fragments::Object;
use super::fragments::run::Runs;
use super::unstorable::Unstorable;
use eyewall_page_cache::generation::generation;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::layout::Layout;
use eyewall_page_cache::store::{Found, Looked, Store, Times};

/// How long what can be validated is kept when it is stale: until it is evicted.
const VALIDATED_FOR: Duration = Duration::from_hours(365 * 24);

/// The stored responses of all sites.
pub(crate) struct Pages {
    pub(crate) store: Arc<Store>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) unstorable: Unstorable,
    pub(crate) recent_purges: RecentPurges,
    /// The longest `stale_when_unreachable` of a site: a stale response is kept for so long at least.
    stale_when_unreachable: Duration,
}

/// How the volume is asked.
type Look = fn(&Store, &[u8]) -> Looked;

/// A stored response that a request selects.
pub(crate) struct Stored {
    pub(crate) key: Vec<u8>,
    pub(crate) terms: Terms,
    pub(crate) found: Found,
    /// The key of its address, and how its body lies, where it is stored in fragments.
    fragments: Option<(Vec<u8>, Layout)>,
}

/// What there is for a request.
pub(crate) enum Selection {
    Stored(Box<Stored>),
    /// Responses that were chosen by these fields, and none that fits.
    OtherVariants(Vec<http::HeaderName>),
    /// The origin failed in this way, which is to be remembered for so long yet.
    Failure(StatusCode, Duration),
    Nothing,
}

impl Pages {
    /// `stale_when_unreachable` is the longest that a site has.
    pub(crate) fn new(store: Arc<Store>, stale_when_unreachable: Duration) -> Self {
        let (flights, runs) = (Arc::default(), Arc::default());
        let (unstorable, recent_purges) = (Unstorable::new(), RecentPurges::default());
        Self { store, flights, runs, unstorable, recent_purges, stale_when_unreachable }
    }

    /// Until when an entry is fresh, and for how long it is kept when it is stale.
    fn times(&self, terms: &Terms) -> Times {
        let window = terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds);
        let may_be_stale = !terms.marks.contains(Marks::FORBIDS_STALE) && !terms.marks.contains(Marks::NO_CACHE);
        let unreachable = if may_be_stale { self.stale_when_unreachable } else { Duration::ZERO };
        let is_validated = terms.marks.contains(Marks::HAS_VALIDATOR);
        let stale = if is_validated { VALIDATED_FOR } else { Duration::from_secs(window.into()).max(unreachable) };
        Times { fresh: Some(terms.fresh_for(SystemTime::now())), stale }
    }

    /// A flight for a key, or the one that there is.
    pub(crate) fn join(&self, flight_key: &[u8]) -> Joined {
        self.flights.join(flight_key, self.store.epoch())
    }

    /// Chooses among the stored responses of an address (RFC 9111, section 4.1).
    pub(crate) async fn select(self: &Arc<Self>, key: &[u8], request: &HeaderMap) -> Selection {
        self.select_by(Store::look, key, request).await
    }

    /// Whether there is a fresh response by now, for a request whose miss was counted: this leaves no trace.
    pub(crate) async fn has_fresh(self: &Arc<Self>, key: &[u8], request: &HeaderMap) -> bool {
        matches!(self.select_by(Store::peek, key, request).await, Selection::Stored(_))
    }

    async fn select_by(self: &Arc<Self>, look: Look, key: &[u8], request: &HeaderMap) -> Selection {
        let found = match self.look(look, key).await {
            Looked::Found(found) => found,
            Looked::Failure(status, left) => return Selection::Failure(status, left),
            Looked::Nothing => return Selection::Nothing,
        };
        if found.head.kind != Kind::Signpost {
            let stored = Stored::new(key, key.to_vec(), found);
            return stored.map_or(Selection::Nothing, |stored| Selection::Stored(Box::new(stored)));
        }
        match Signpost::decode(found.bytes()) {
            Some(signpost) => self.select_variant(look, key, request, signpost).await,
            None => Selection::Nothing,
        }
    }

    async fn select_variant(
        self: &Arc<Self>,
        look: Look,
        key: &[u8],
        request: &HeaderMap,
        signpost: Signpost,
    ) -> Selection {
        for names in signpost.name_lists() {
            let variant = Variant::of(names, request);
            if let Some(stored) = self.stored(look, key, signpost.key_of(key, &variant)).await {
                return Selection::Stored(Box::new(stored));
            }
        }
        for variant in signpost.variants() {
            if let Some(stored) = self.stored(look, key, signpost.key_of(key, variant)).await
                && selecting::suits(&variant.names, &variant.selecting_key, &stored.found.head.fields, request)
            {
                return Selection::Stored(Box::new(stored));
            }
        }
        signpost.name_lists().next().map_or(Selection::Nothing, |names| Selection::OtherVariants(names.to_vec()))
    }

    /// What an answer takes the place of if it is stored as this variant of its address, or as the only response. One that varies
    /// by other fields may be chosen instead of all that are there.
    pub(super) async fn replaced_by(self: &Arc<Self>, key: &[u8], variant: Option<&Variant>) -> Vec<Stored> {
        let Some(found) = self.look(Store::glance, key).await.found() else { return Vec::new() };
        if found.head.kind != Kind::Signpost {
            return Stored::new(key, key.to_vec(), found).into_iter().collect();
        }
        let Some(signpost) = Signpost::decode(found.bytes()) else { return Vec::new() };
        let mut replaced = Vec::new();
        for known in signpost.variants() {
            if variant.is_none_or(|variant| variant == known || variant.names != known.names) {
                replaced.extend(self.stored(Store::glance, key, signpost.key_of(key, known)).await);
            }
        }
        replaced
    }

    /// The response under a key, which is of this address or of a variant of it.
    pub(super) async fn stored(self: &Arc<Self>, look: Look, address: &[u8], key: Vec<u8>) -> Option<Stored> {
        let found = self.look(look, &key).await.found()?;
        Stored::new(address, key, found)
    }

    /// What isn't in memory is read elsewhere: the threads that serve clients don't wait for storage.
    pub(crate) async fn look(self: &Arc<Self>, look: Look, key: &[u8]) -> Looked {
        if self.store.is_at_hand(key) {
            return look(&self.store, key);
        }
        let (pages, key) = (Arc::clone(self), key.to_vec());
        // A panic in there was told already by its thread.
        tokio::task::spawn_blocking(move || look(&pages.store, &key)).await.unwrap_or(Looked::Nothing)
    }

    /// Stores an answer that was asked for at `mark`, whose entry is of this kind and has this value. The key under which it is
    /// stored, unless it couldn't be or was purged hard since. After a soft purge it is stored as stale, for its validator.
    pub(crate) fn keep_as(
        &self,
        key: &[u8],
        answer: &Answer,
        kind: Kind,
        value: &[Bytes],
        mark: Mark,
    ) -> Option<Vec<u8>> {
        if self.recent_purges.since(mark) == Some(Purge::Hard) {
            return None;
        }
        let head = Head::new(kind, answer.status, answer.fields.clone());
        let times = self.times(&answer.terms);
        let tags: Vec<&str> = answer.tags.iter().map(String::as_str).collect();
        let kept_key = match &answer.variant {
            None => key.to_vec(),
            Some(variant) => self.keep_signpost(key, answer, variant)?,
        };
        let serial = self.store.keep(&kept_key, &head, value, times, &tags, mark.epoch)?;
        self.catch_up(&kept_key, serial, mark).then_some(kept_key)
    }

    /// Enters a variant in the list of those of its address; returns its key. What the list says is right whatever is purged, so
    /// that it is of no earlier epoch.
    fn keep_signpost(&self, key: &[u8], answer: &Answer, variant: &Variant) -> Option<Vec<u8>> {
        let mut variant_key = None;
        let is_stored = self.store.change(key, answer.address_tag.as_deref().as_slice(), |present| {
            let mut signpost = present.and_then(Signpost::decode).unwrap_or_else(|| Signpost::new(generation()));
            variant_key = Some(signpost.key_of(key, variant));
            signpost.add(variant.clone());
            signpost.encode()
        });
        variant_key.filter(|_| is_stored)
    }

    /// Gives a stored response other fields, on these terms, as the origin was asked about at `mark`; in the volume only while
    /// nothing else was stored in its place.
    pub(crate) fn renew(&self, stored: &mut Stored, fields: HeaderMap, storable: &Storable, mark: Mark) {
        let (terms, status) = (storable.terms, stored.found.head.status);
        stored.terms = terms;
        stored.found.is_stale = false;
        let kind = match stored.found.head.kind {
            Kind::Fragmented(_, layout) => Kind::Fragmented(terms, layout),
            _ => Kind::Response(terms),
        };
        stored.found.head = Head::new(kind, status, without(fields, &storable.withheld));
        let is_renewed = self.store.renew(&stored.key, &stored.found, self.times(&terms), mark.epoch);
        // What a hard purge of the address removes isn't renewed, or is removed behind it. What was stale already a soft one has
        // left as it was.
        if is_renewed && self.recent_purges.since(mark).is_some() {
            self.store.told(self.soften(&stored.key));
        }
    }
}

impl Stored {
    /// None for an entry that is no response.
    fn new(address: &[u8], key: Vec<u8>, found: Found) -> Option<Self> {
        let (terms, fragments) = match found.head.kind {
            Kind::Response(terms) => (terms, None),
            Kind::Fragmented(terms, layout) => (terms, Some((address.to_vec(), layout))),
            Kind::Signpost | Kind::Fragment => return None,
        };
        // A soft purge: it is stale from now on.
        let terms = if found.is_stale { stale(terms) } else { terms };
        Some(Self { key, terms, found, fragments })
    }

    /// Whether it keeps its place against an answer of this status. What a soft purge has made stale doesn't.
    pub(crate) fn withstands(&self, answer: StatusCode, policy: &Policy) -> bool {
        let now = SystemTime::now();
        let is_purged = match self.found.head.kind {
            Kind::Response(terms) | Kind::Fragmented(terms, _) => {
                self.found.is_stale && !terms.fresh_for(now).is_zero()
            }
            Kind::Signpost | Kind::Fragment => false,
        };
        !is_purged && reuse::withstands(&self.terms, self.found.head.status, answer, now, policy)
    }

    pub(crate) fn is_fragmented(&self) -> bool {
        self.fragments.is_some()
    }

    /// Its body, where that is stored in fragments.
    pub(crate) fn object(&self) -> Option<Object> {
        let (address, layout) = self.fragments.clone()?;
        let object = Object::new(address, layout, &self.found.head.fields, self.received(), self.found.tags())?;
        Some(object.of_head(self.key.clone()))
    }

    /// Bytes of its body.
    pub(crate) fn length(&self) -> u64 {
        self.fragments.as_ref().map_or(self.found.bytes().len() as u64, |(_, layout)| layout.length)
    }

    /// When the response came in, or was last found to be right.
    pub(crate) fn received(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.terms.received_ms)
    }
}

fn stale(terms: Terms) -> Terms {
    let now = SystemTime::now();
    if terms.fresh_for(now).is_zero() {
        terms
    } else {
        Terms { lifetime_seconds: terms.age(now).as_secs() as u32, ..terms }
    }
}

/// The fields that are stored of a response.
pub(crate) fn without(mut fields: HeaderMap, withheld: &[http::HeaderName]) -> HeaderMap {
    for name in withheld.iter().chain(&[CONTENT_LENGTH, AGE, CACHE_STATUS]) {
        fields.remove(name);
    }
    fields
}

/// What a response varies by, as far as it is one of several.
pub(crate) fn variant(storable: &Storable, request: &HeaderMap) -> Option<Variant> {
    match &storable.vary {
        Vary::Fields(names) => Some(Variant::of(names, request)),
        Vary::Nothing | Vary::Everything => None,
    }
}
