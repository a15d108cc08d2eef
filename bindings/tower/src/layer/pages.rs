//! What all services of a layer share: where responses are stored, and what is under way to there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall::{Cache, Purge};
use eyewall_http::field::cache_status::CACHE_STATUS;
use eyewall_http::field::vary::Vary;
use eyewall_http::selecting;
use eyewall_http::signpost::{Signpost, Variant};
use eyewall_http::storing::Storable;
use eyewall_http::terms::{Marks, Terms};
use eyewall_page_cache::recent_purges::{Mark, RecentPurges};
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, HeaderName};

use super::answer::Answer;
use super::answer::{Flights, Joined};
use super::moments::Moments;
use super::settings::Settings;
use eyewall_page_cache::generation::generation;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::store::{Found, Looked, Meant, Store, Times};

/// How long what can be validated is kept when it is stale: until it is evicted.
const VALIDATED_FOR: Duration = Duration::from_hours(365 * 24);
/// For how long it is remembered that an answer could not be stored: nobody waits for another's meanwhile.
const UNSTORABLE_FOR: Duration = Duration::from_mins(1);

/// The stored responses of a layer.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) store: Store,
    pub(crate) flights: Arc<Flights>,
    pub(crate) unstorable: Moments,
    pub(crate) recent_purges: RecentPurges,
}

/// How the volume is asked.
type Look = fn(&Store, &[u8]) -> Looked;

/// A stored response that a request selects.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Vec<u8>,
    pub(crate) terms: Terms,
    pub(crate) found: Found,
}

/// What there is for a request.
pub(crate) enum Selection {
    Stored(Box<Stored>),
    /// Responses that were chosen by these fields, and none that fits.
    OtherVariants(Vec<HeaderName>),
    Nothing,
}

impl Pages {
    pub(crate) fn new(cache: Cache) -> Self {
        Self {
            store: Store::new(cache),
            flights: Arc::default(),
            unstorable: Moments::new(UNSTORABLE_FOR),
            recent_purges: RecentPurges::default(),
        }
    }

    /// A flight for a key, or the one that there is.
    pub(crate) fn join(&self, flight_key: &[u8]) -> Joined {
        self.flights.join(flight_key, self.store.epoch())
    }

    /// What was purged up to now.
    pub(crate) fn mark(&self, address: &[u8]) -> Mark {
        self.recent_purges.mark(address, self.store.epoch())
    }

    /// Chooses among the stored responses of a key (RFC 9111, section 4.1).
    pub(crate) async fn select(self: &Arc<Self>, key: &[u8], request: &HeaderMap, now: SystemTime) -> Selection {
        self.select_by(Store::look, key, request, now).await
    }

    /// Whether there is a fresh response by now, for a request whose miss was counted: this leaves no trace.
    pub(crate) async fn has_fresh(self: &Arc<Self>, key: &[u8], request: &HeaderMap, now: SystemTime) -> bool {
        matches!(self.select_by(Store::peek, key, request, now).await, Selection::Stored(_))
    }

    async fn select_by(self: &Arc<Self>, look: Look, key: &[u8], request: &HeaderMap, now: SystemTime) -> Selection {
        let Some(found) = self.look(look, key).await else { return Selection::Nothing };
        if found.head.kind != Kind::Signpost {
            let stored = Stored::new(key.to_vec(), found, now);
            return stored.map_or(Selection::Nothing, |stored| Selection::Stored(Box::new(stored)));
        }
        let Some(signpost) = Signpost::decode(found.bytes()) else { return Selection::Nothing };
        for names in signpost.name_lists() {
            let variant = Variant::of(names, request);
            if let Some(stored) = self.stored(look, signpost.key_of(key, &variant), now).await {
                return Selection::Stored(Box::new(stored));
            }
        }
        for variant in signpost.variants() {
            if let Some(stored) = self.stored(look, signpost.key_of(key, variant), now).await
                && selecting::suits(&variant.names, &variant.selecting_key, &stored.found.head.fields, request)
            {
                return Selection::Stored(Box::new(stored));
            }
        }
        signpost.name_lists().next().map_or(Selection::Nothing, |names| Selection::OtherVariants(names.to_vec()))
    }

    /// What an answer takes the place of if it is stored as this variant of its key, or as the only response. One that varies by
    /// other fields may be chosen instead of all that are there.
    pub(super) async fn replaced_by(
        self: &Arc<Self>,
        key: &[u8],
        variant: Option<&Variant>,
        now: SystemTime,
    ) -> Vec<Stored> {
        let Some(found) = self.look(Store::glance, key).await else { return Vec::new() };
        if found.head.kind != Kind::Signpost {
            return Stored::new(key.to_vec(), found, now).into_iter().collect();
        }
        let Some(signpost) = Signpost::decode(found.bytes()) else { return Vec::new() };
        let mut replaced = Vec::new();
        for known in signpost.variants() {
            if variant.is_none_or(|variant| variant == known || variant.names != known.names) {
                replaced.extend(self.stored(Store::glance, signpost.key_of(key, known), now).await);
            }
        }
        replaced
    }

    async fn stored(self: &Arc<Self>, look: Look, key: Vec<u8>, now: SystemTime) -> Option<Stored> {
        let found = self.look(look, &key).await?;
        Stored::new(key, found, now)
    }

    /// What isn't in memory is read elsewhere: the threads of the event loop don't wait for storage.
    pub(crate) async fn look(self: &Arc<Self>, look: Look, key: &[u8]) -> Option<Found> {
        if self.store.is_at_hand(key) {
            return look(&self.store, key).found();
        }
        let (pages, key) = (Arc::clone(self), key.to_vec());
        // A panic in there was told already by its thread.
        tokio::task::spawn_blocking(move || look(&pages.store, &key).found()).await.ok().flatten()
    }

    /// Stores an answer that was asked for at `mark`, with its content and trailer fields. True: it is there, unless it couldn't be
    /// stored or was purged hard since. After a soft purge it is stored as stale, for its validator.
    pub(crate) fn keep(
        &self,
        key: &[u8],
        answer: &Answer,
        trailers: HeaderMap,
        value: &[Bytes],
        mark: Mark,
        settings: &Settings,
    ) -> bool {
        if self.recent_purges.since(mark) == Some(Purge::Hard) {
            return false;
        }
        let head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
        let head = Head { trailers: (!trailers.is_empty()).then(|| Box::new(trailers)), ..head };
        let tags: Vec<&str> = answer.tags.iter().map(String::as_str).collect();
        let kept_key = match &answer.variant {
            None => Some(key.to_vec()),
            Some(variant) => self.keep_signpost(key, answer, variant),
        };
        let Some(kept_key) = kept_key else { return false };
        let kept = self.store.keep(&kept_key, &head, value, times(&answer.terms, settings), &tags, mark.epoch);
        kept.is_some_and(|serial| self.catch_up(&kept_key, serial, mark))
    }

    /// Enters a variant in the list of those of its key; returns the variant's key. What the list says is right whatever is
    /// purged, so that it is of no earlier epoch.
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

    /// What a purge of the address that came while an entry of it was stored makes of it. False: it is gone.
    fn catch_up(&self, key: &[u8], serial: u64, mark: Mark) -> bool {
        match self.recent_purges.since(mark) {
            None => true,
            Some(Purge::Hard) => {
                self.store.remove_version(key, serial);
                false
            }
            Some(Purge::Soft) => {
                self.store.told(self.soften(key));
                true
            }
        }
    }

    /// Gives a stored response other fields, on these terms, as the inner service was asked about at `mark`; in the volume only
    /// while nothing else was stored in its place.
    pub(crate) fn renew(
        &self,
        stored: &mut Stored,
        fields: HeaderMap,
        storable: &Storable,
        mark: Mark,
        settings: &Settings,
    ) {
        stored.terms = storable.terms;
        stored.found.is_stale = false;
        stored.found.head.kind = Kind::Response(storable.terms);
        stored.found.head.fields = without(fields, &storable.withheld);
        let is_renewed = self.store.renew(&stored.key, &stored.found, times(&storable.terms, settings), mark.epoch);
        // What a hard purge of the address removes isn't renewed, or is removed behind it. What was stale already a soft one has
        // left as it was.
        if is_renewed && self.recent_purges.since(mark).is_some() {
            self.store.told(self.soften(&stored.key));
        }
    }

    /// Makes the response of a key stale, or all of its variants. False: there is none.
    ///
    /// # Errors
    /// Those of the engine.
    pub(crate) fn soften(&self, key: &[u8]) -> eyewall::Result<bool> {
        let Some(found) = self.store.try_look(key)?.found() else { return Ok(false) };
        if found.head.kind != Kind::Signpost {
            return self.store.soften(key, &found);
        }
        // It stays as it is: it leads to what is stale.
        let Some(signpost) = Signpost::decode(found.bytes()) else { return Ok(false) };
        let mut was_there = false;
        for variant in signpost.variants() {
            let key = signpost.key_of(key, variant);
            if let Some(found) = self.store.try_look(&key)?.found() {
                was_there |= self.store.soften(&key, &found)?;
            }
        }
        Ok(was_there)
    }

    /// Purges all responses of an address. `tag` is what they carry where an address has several keys.
    ///
    /// Answers to QUERY are gone in either case: nobody knows how many there are, but where they begin.
    ///
    /// True: something was there under the address itself.
    ///
    /// # Errors
    /// Those of the engine. What was under way is not stored as if it were new all the same.
    pub(crate) fn purge_address(&self, address: &str, tag: Option<&str>, kind: Purge) -> eyewall::Result<bool> {
        let key = address.as_bytes();
        self.recent_purges.note(key, kind);
        self.flights.leave(key);
        let was_there = match kind {
            Purge::Hard => self.store.try_remove(key)?,
            Purge::Soft => self.soften(key)?,
        };
        let had_queries = self.store.try_remove(&queries_of(key))?;
        tag.map_or(Ok(()), |tag| self.store.purge(Meant::Tag(tag), kind))?;
        Ok(was_there || had_queries)
    }
}

impl Stored {
    /// None for an entry that is no response.
    pub(crate) fn new(key: Vec<u8>, found: Found, now: SystemTime) -> Option<Self> {
        let Kind::Response(terms) = found.head.kind else { return None };
        // A soft purge: it is stale from now on.
        let terms = if found.is_stale { stale(terms, now) } else { terms };
        Some(Self { key, terms, found })
    }

    /// Whether a soft purge has made it stale.
    pub(crate) fn is_purged(&self, now: SystemTime) -> bool {
        let Kind::Response(terms) = self.found.head.kind else { return false };
        self.found.is_stale && !terms.fresh_for(now).is_zero()
    }

    pub(crate) fn trailers(&self) -> HeaderMap {
        self.found.head.trailers.as_deref().cloned().unwrap_or_default()
    }

    /// When the response came in, or was last found to be right.
    pub(crate) fn received(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.terms.received_ms)
    }
}

/// Where the answers to QUERY of an address begin.
pub(crate) fn queries_of(address: &[u8]) -> Vec<u8> {
    [address, b" query"].concat()
}

fn stale(terms: Terms, now: SystemTime) -> Terms {
    if terms.fresh_for(now).is_zero() {
        terms
    } else {
        Terms { lifetime_seconds: terms.age(now).as_secs() as u32, ..terms }
    }
}

/// The fields that are stored of a response.
pub(crate) fn without(mut fields: HeaderMap, withheld: &[HeaderName]) -> HeaderMap {
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

fn times(terms: &Terms, settings: &Settings) -> Times {
    let window = terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds);
    let window = Duration::from_secs(window.into()).max(settings.policy.stale_if_unreachable.unwrap_or_default());
    let stale = if terms.marks.contains(Marks::HAS_VALIDATOR) { VALIDATED_FOR } else { window };
    Times { fresh: Some(terms.fresh_for(settings.now())), stale }
}
