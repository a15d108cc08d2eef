//! Choosing among the stored responses of an address (RFC 9111, section 4.1).

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::policy::Policy;
use eyewall_http::reuse;
use eyewall_http::selecting;
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::{Variant, VaryIndex};
use http::{HeaderMap, HeaderName, StatusCode};

use crate::head::Kind;
use crate::layout::Layout;
use crate::pages::Pages;
use crate::store::{Found, LookupResult, Store};

/// How to look up a key in the volume: [`Store::look`], [`Store::peek`] or [`Store::glance`].
pub type Look = fn(&Store, &[u8]) -> LookupResult;

/// A stored response that a request selects.
#[derive(Debug)]
pub struct Stored {
    /// The key of its entry.
    pub key: Vec<u8>,
    /// The terms on which it may be used again now.
    pub terms: Terms,
    /// The response in the volume.
    pub found: Found,
    /// The fields of requests that it was selected by.
    pub vary: Vec<HeaderName>,
    /// The key of its address and the layout of its body, if the body is stored in fragments.
    fragments: Option<(Vec<u8>, Layout)>,
}

/// The stored responses for a request.
#[derive(Debug)]
pub enum Selection {
    /// A response that the request selects.
    Stored(Box<Stored>),
    /// Responses that were selected by these fields, and none for this request.
    OtherVariants(Vec<HeaderName>),
    /// The origin failed with this status. The failure is remembered for this much longer.
    Failure(StatusCode, Duration),
    /// Nothing is stored.
    Nothing,
}

impl Pages {
    /// Chooses among the stored responses of an address (RFC 9111, section 4.1).
    pub async fn select(&self, key: &[u8], request: &HeaderMap, now: SystemTime) -> Selection {
        self.select_by(Store::look, key, request, now).await
    }

    /// Whether there is a fresh response by now. The request's miss has been counted, so this look-up leaves no trace.
    pub async fn has_fresh(&self, key: &[u8], request: &HeaderMap, now: SystemTime) -> bool {
        matches!(self.select_by(Store::peek, key, request, now).await, Selection::Stored(_))
    }

    pub(crate) async fn select_by(&self, look: Look, key: &[u8], request: &HeaderMap, now: SystemTime) -> Selection {
        let found = match self.look(look, key).await {
            LookupResult::Found(found) => found,
            LookupResult::Failure(status, left) => return Selection::Failure(status, left),
            LookupResult::Nothing => return Selection::Nothing,
        };
        if found.head.kind != Kind::VaryIndex {
            let stored = Stored::new(key, key.to_vec(), found, now).map(|stored| self.softened(stored));
            return stored.map_or(Selection::Nothing, |stored| Selection::Stored(Box::new(stored)));
        }
        match VaryIndex::decode(found.bytes()) {
            Some(vary_index) => self.select_variant(look, key, request, vary_index, now).await,
            None => Selection::Nothing,
        }
    }

    async fn select_variant(
        &self,
        look: Look,
        key: &[u8],
        request: &HeaderMap,
        vary_index: VaryIndex,
        now: SystemTime,
    ) -> Selection {
        for names in vary_index.name_lists() {
            let variant = Variant::of(names, request);
            if let Some(stored) = self.stored(look, key, vary_index.key_of(key, &variant), now).await {
                return Selection::Stored(Box::new(Stored { vary: variant.names, ..stored }));
            }
        }
        for variant in vary_index.variants() {
            if let Some(stored) = self.stored(look, key, vary_index.key_of(key, variant), now).await
                && selecting::suits(&variant.names, &variant.selecting_key, &stored.found.head.fields, request)
            {
                return Selection::Stored(Box::new(Stored { vary: variant.names.clone(), ..stored }));
            }
        }
        vary_index.name_lists().next().map_or(Selection::Nothing, |names| Selection::OtherVariants(names.to_vec()))
    }

    /// The responses that an answer replaces if it is stored as this variant of its address, or as the only response. An answer
    /// that varies by other fields may be selected instead of any stored one.
    pub async fn replaced_by(&self, key: &[u8], variant: Option<&Variant>, now: SystemTime) -> Vec<Stored> {
        let Some(found) = self.look(Store::glance, key).await.found() else { return Vec::new() };
        if found.head.kind != Kind::VaryIndex {
            return Stored::new(key, key.to_vec(), found, now).into_iter().collect();
        }
        let Some(vary_index) = VaryIndex::decode(found.bytes()) else { return Vec::new() };
        let mut replaced = Vec::new();
        for known in vary_index.variants() {
            if variant.is_none_or(|variant| variant == known || variant.names != known.names) {
                replaced.extend(self.stored(Store::glance, key, vary_index.key_of(key, known), now).await);
            }
        }
        replaced
    }

    /// All stored variants of an address, the latest first; none if its response doesn't vary. The look-ups leave no trace.
    pub async fn variants(&self, key: &[u8], now: SystemTime) -> Vec<Stored> {
        let Some(found) = self.look(Store::glance, key).await.found() else { return Vec::new() };
        if found.head.kind != Kind::VaryIndex {
            return Vec::new();
        }
        let Some(vary_index) = VaryIndex::decode(found.bytes()) else { return Vec::new() };
        let mut all = Vec::new();
        for variant in vary_index.variants() {
            let stored = self.stored(Store::glance, key, vary_index.key_of(key, variant), now).await;
            all.extend(stored.map(|stored| Stored { vary: variant.names.clone(), ..stored }));
        }
        all
    }

    /// The response under a key, which belongs to this address or to a variant of it.
    pub async fn stored(&self, look: Look, address: &[u8], key: Vec<u8>, now: SystemTime) -> Option<Stored> {
        let found = self.look(look, &key).await.found()?;
        Stored::new(address, key, found, now).map(|stored| self.softened(stored))
    }

    /// After a soft purge that may stand for a hard one, a response isn't sent while it is revalidated.
    fn softened(&self, mut stored: Stored) -> Stored {
        if stored.found.is_stale && stored.terms.received_ms <= self.softened_before() {
            stored.terms.stale_while_revalidate_seconds = 0;
        }
        stored
    }

    /// Looks up a key. Another thread reads bytes that aren't in memory: the threads of an event loop don't wait for storage.
    pub async fn look(&self, look: Look, key: &[u8]) -> LookupResult {
        if self.store.is_likely_resident(key) {
            return look(&self.store, key);
        }
        let (store, key) = (Arc::clone(&self.store), key.to_vec());
        // The thread has already logged its panic.
        tokio::task::spawn_blocking(move || look(&store, &key)).await.unwrap_or(LookupResult::Nothing)
    }
}

impl Stored {
    /// A response of this address that was found under `key`. None for an entry that is no response.
    pub fn new(address: &[u8], key: Vec<u8>, found: Found, now: SystemTime) -> Option<Self> {
        let (terms, fragments) = match found.head.kind {
            Kind::Response(terms) => (terms, None),
            Kind::Fragmented(terms, layout) => (terms, Some((address.to_vec(), layout))),
            Kind::VaryIndex | Kind::Fragment | Kind::Form(_) => return None,
        };
        // After a soft purge it is stale.
        let terms = if found.is_stale { stale(terms, now) } else { terms };
        Some(Self { key, terms, found, vary: Vec::new(), fragments })
    }

    /// Whether it keeps its place against an answer of this status. A response that a soft purge has made stale does not.
    pub fn withstands(&self, answer: StatusCode, policy: &Policy, now: SystemTime) -> bool {
        !self.is_softly_purged(now) && reuse::withstands(&self.terms, self.found.head.status, answer, now, policy)
    }

    /// Whether it is stale only because of a soft purge.
    pub fn is_softly_purged(&self, now: SystemTime) -> bool {
        match self.found.head.kind {
            Kind::Response(terms) | Kind::Fragmented(terms, _) => {
                self.found.is_stale && !terms.fresh_for(now).is_zero()
            }
            Kind::VaryIndex | Kind::Fragment | Kind::Form(_) => false,
        }
    }

    /// Whether its body is stored in fragments.
    pub fn is_fragmented(&self) -> bool {
        self.fragments.is_some()
    }

    /// The key of its address and the layout of its body, if the body is stored in fragments.
    pub fn fragments(&self) -> Option<(&[u8], Layout)> {
        self.fragments.as_ref().map(|(address, layout)| (address.as_slice(), *layout))
    }

    /// The trailer fields.
    pub fn trailers(&self) -> HeaderMap {
        self.found.head.trailers.as_deref().cloned().unwrap_or_default()
    }

    /// The length of its body.
    pub fn length(&self) -> u64 {
        self.fragments.as_ref().map_or(self.found.bytes().len() as u64, |(_, layout)| layout.length)
    }

    /// When the response arrived, or was last validated.
    pub fn received(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.terms.received_ms)
    }
}

fn stale(terms: Terms, now: SystemTime) -> Terms {
    if terms.fresh_for(now).is_zero() {
        terms
    } else {
        Terms { lifetime_seconds: terms.age(now).as_secs() as u32, ..terms }
    }
}
