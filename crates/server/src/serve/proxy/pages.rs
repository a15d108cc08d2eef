//! What the workers share of the responses of origins: where they are stored, and what is under way to there.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_status::CACHE_STATUS;
use eyewall_http::field::vary::Vary;
use eyewall_http::selecting;
use eyewall_http::storing::Storable;
use eyewall_http::terms::{Marks, Terms};
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, StatusCode};

use super::answer::{Answer, Variant};
use super::flight::Flights;
use super::passes::Passes;
use super::purged::Purged;
use super::signpost::Signpost;
use crate::serve::head::{Head, Kind};
use crate::serve::store::{Found, Store, Times};

/// How long what can be validated is kept when it is stale: until it is evicted.
const VALIDATED_FOR: Duration = Duration::from_hours(365 * 24);

/// The stored responses of all sites.
pub(crate) struct Pages {
    pub(crate) store: Arc<Store>,
    pub(crate) flights: Arc<Flights>,
    pub(crate) passes: Passes,
    pub(crate) purged: Purged,
}

/// How the volume is asked.
type Look = fn(&Store, &[u8]) -> Option<Found>;

/// A stored response that a request selects.
pub(crate) struct Stored {
    pub(crate) key: Vec<u8>,
    pub(crate) terms: Terms,
    pub(crate) found: Found,
}

/// What there is for a request.
pub(crate) enum Selection {
    Stored(Box<Stored>),
    /// Responses that were chosen by these fields, and none that fits.
    OtherVariants(Vec<http::HeaderName>),
    Nothing,
}

impl Pages {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store, flights: Arc::default(), passes: Passes::new(), purged: Purged::new() }
    }

    /// Chooses among the stored responses of an address (RFC 9111, section 4.1).
    pub(crate) fn select(&self, key: &[u8], request: &HeaderMap) -> Selection {
        self.select_by(Store::find, key, request)
    }

    /// Whether there is a fresh response by now, for a request whose miss was counted: this leaves no trace.
    pub(crate) fn has_fresh(&self, key: &[u8], request: &HeaderMap) -> bool {
        matches!(self.select_by(Store::peek, key, request), Selection::Stored(_))
    }

    fn select_by(&self, look: Look, key: &[u8], request: &HeaderMap) -> Selection {
        let Some(found) = look(&self.store, key) else { return Selection::Nothing };
        match found.head.kind {
            Kind::Response(terms) => Selection::Stored(Box::new(Stored::new(key.to_vec(), terms, found))),
            Kind::Signpost => self.select_variant(look, key, request, &found),
            Kind::File(_) => Selection::Nothing,
        }
    }

    fn select_variant(&self, look: Look, key: &[u8], request: &HeaderMap, found: &Found) -> Selection {
        let Some(signpost) = Signpost::decode(found.bytes()) else { return Selection::Nothing };
        for names in signpost.name_lists() {
            let variant = Variant::of(names, request);
            if let Some(stored) = self.stored(look, signpost.key_of(key, &variant)) {
                return Selection::Stored(Box::new(stored));
            }
        }
        for variant in signpost.variants() {
            if let Some(stored) = self.stored(look, signpost.key_of(key, variant))
                && selecting::suits(&variant.names, &variant.selecting_key, &stored.found.head.fields, request)
            {
                return Selection::Stored(Box::new(stored));
            }
        }
        signpost.name_lists().next().map_or(Selection::Nothing, |names| Selection::OtherVariants(names.to_vec()))
    }

    fn stored(&self, look: Look, key: Vec<u8>) -> Option<Stored> {
        let found = look(&self.store, &key)?;
        let Kind::Response(terms) = found.head.kind else { return None };
        Some(Stored::new(key, terms, found))
    }

    /// Stores an answer whose body is complete.
    pub(crate) fn keep(&self, key: &[u8], answer: &Answer, generation: impl FnOnce() -> u64) {
        let Some(pieces) = answer.intake.pieces() else { return };
        let head = Head { kind: Kind::Response(answer.terms), status: answer.status, fields: answer.fields.clone() };
        let times = times(&answer.terms);
        let tags: Vec<&str> = answer.tags.iter().map(String::as_str).collect();
        let address_tags = answer.address_tag.as_deref();
        let Some(variant) = &answer.variant else { return self.store.keep(key, &head, &pieces, times, &tags) };
        let signpost_head = Head { kind: Kind::Signpost, status: StatusCode::OK, fields: HeaderMap::new() };
        let mut variant_key = Vec::new();
        self.store.change(key, &signpost_head, address_tags.as_slice(), |present| {
            let present = present.filter(|(head, _)| head.kind == Kind::Signpost);
            let mut signpost =
                present.and_then(|(_, value)| Signpost::decode(value)).unwrap_or_else(|| Signpost::new(generation()));
            variant_key = signpost.key_of(key, variant);
            signpost.add(variant.clone());
            signpost.encode()
        });
        if !variant_key.is_empty() {
            self.store.keep(&variant_key, &head, &pieces, times, &tags);
        }
    }

    /// Gives a stored response other fields, on these terms.
    pub(crate) fn renew(&self, stored: &mut Stored, fields: HeaderMap, storable: &Storable) {
        let (terms, status) = (storable.terms, stored.found.head.status);
        stored.terms = terms;
        stored.found.is_stale = false;
        stored.found.head = Head { kind: Kind::Response(terms), status, fields: without(fields, &storable.withheld) };
        self.store.renew(&stored.key, &stored.found.head, times(&terms));
    }
}

impl Stored {
    fn new(key: Vec<u8>, terms: Terms, found: Found) -> Self {
        // A soft purge: it is stale from now on.
        let terms = if found.is_stale { stale(terms) } else { terms };
        Self { key, terms, found }
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

fn times(terms: &Terms) -> Times {
    let now = SystemTime::now();
    let window = terms.stale_while_revalidate_seconds.max(terms.stale_if_error_seconds);
    let is_validated = terms.marks.contains(Marks::HAS_VALIDATOR);
    let stale = if is_validated { VALIDATED_FOR } else { Duration::from_secs(window.into()) };
    Times { fresh: Some(terms.fresh_for(now)), stale }
}
