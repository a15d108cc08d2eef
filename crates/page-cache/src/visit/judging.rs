//! Whether an answer is stored, as what, and in whose place.

use eyewall_http::field::vary::Vary;
use eyewall_http::message::{self, Exchange};
use eyewall_http::storing::{self, NotStored, Storable};
use eyewall_http::strong_validator;
use http::{HeaderMap, StatusCode};

use super::Visit;
use crate::head::{Head, Kind};
use crate::layout::FRAGMENT_BYTES_MAX;
use crate::pages;
use crate::settings::Place;
use crate::upstream::{Rules, Upstream};

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The front door says so.
    Rule,
    /// Its transfer coding is none that is known: what its bytes are is unknown.
    Coding,
    /// It is an error, and what is stored is worth more.
    KeepsStored,
    /// It, or one of its fields, is longer than may be.
    TooLarge,
    Http(NotStored),
}

impl Refused {
    /// A token for `Cache-Status`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Coding => "transfer-coding",
            Self::KeepsStored => "keeps-stored",
            Self::TooLarge => "too-large",
            Self::Http(why) => why.as_str(),
        }
    }

    /// Whether the answer to another request for the same might be stored: then this one is no reason to give up what is there.
    pub(super) fn is_of_request(self) -> bool {
        match self {
            Self::Rule | Self::KeepsStored => true,
            Self::Coding | Self::TooLarge => false,
            Self::Http(why) => why.is_of_request(),
        }
    }
}

/// As what an answer is stored.
pub(super) struct Entry {
    pub(super) head: Head,
    pub(super) tags: Vec<String>,
    /// How long the body may be beside these, as one entry.
    pub(super) whole_bytes_max: u64,
    /// How long it may be in fragments, if it may be stored so.
    pub(super) object_bytes_max: Option<u64>,
}

impl<U: Upstream> Visit<U> {
    /// Whether a response may be stored, and on which terms; else why not.
    pub(super) fn judge(
        &self,
        rules: &Rules<'_>,
        (status, fields): (StatusCode, &HeaderMap),
        exchange: Exchange,
    ) -> Result<Storable, Refused> {
        if rules.is_refused {
            return Err(Refused::Rule);
        }
        // A HEAD renews what is stored for a GET, and a POST's answer is only asked about where it is that to a GET.
        let request = message::Request { method: &self.method(), fields: &self.parts.headers };
        let told = message::Response { status, fields };
        match storing::judge(request, told, exchange, &rules.policy).map_err(Refused::Http)? {
            storable if self.varies_by_hidden(&storable.vary) => Err(Refused::Http(NotStored::Vary)),
            storable => Ok(storable),
        }
    }

    fn varies_by_hidden(&self, vary: &Vary) -> bool {
        matches!(vary, Vary::Fields(names) if names.iter().any(|name| self.upstream.is_hidden(name)))
    }

    /// How long a body may be that is stored, however it is.
    pub(crate) fn object_bytes_max(&self) -> u64 {
        self.pages.object_bytes_max().min(self.settings.body_bytes_max)
    }

    /// As what an answer is stored whose body has this length, if that is known.
    ///
    /// # Errors
    /// Its fields are longer than an entry can tell, or its body is longer than may be.
    pub(super) fn entry(
        &self,
        (status, fields): (StatusCode, &HeaderMap),
        (storable, length): (&Storable, Option<u64>),
        tags: Vec<String>,
        exchange: Exchange,
    ) -> Result<Entry, Refused> {
        let fields = pages::without(fields.clone(), &storable.withheld);
        let may_be_asked_for = strong_validator::if_range(&fields, exchange.received).is_some();
        let head = Head::new(Kind::Response(storable.terms), status, fields);
        let selecting = pages::variant(storable, &self.parts.headers).map_or(0, |variant| variant.selecting_key.len());
        let beside = self.pages.store.value_bytes_max(&self.key, &head, &tags);
        let entry_bytes_max = beside.and_then(|most| most.checked_sub(selecting as u64)).ok_or(Refused::TooLarge)?;
        // What is made on demand, and can't be asked for in parts, would have to be made anew for each fragment that is gone.
        let may_be_fragmented = match self.settings.place {
            Place::Gateway => true,
            Place::Origin => may_be_asked_for && length.is_some(),
        };
        let object_bytes_max = self.object_bytes_max();
        let (whole_bytes_max, object_bytes_max) = if status == StatusCode::OK && may_be_fragmented {
            (entry_bytes_max.min(FRAGMENT_BYTES_MAX).min(object_bytes_max), Some(object_bytes_max))
        } else {
            (entry_bytes_max.min(self.settings.body_bytes_max), None)
        };
        if length.is_some_and(|length| length > object_bytes_max.unwrap_or(whole_bytes_max)) {
            return Err(Refused::TooLarge);
        }
        Ok(Entry { head, tags, whole_bytes_max, object_bytes_max })
    }

    /// Whether what is stored keeps its place against an answer: it is an error, and something that it would take the place of may
    /// still be sent to others, or was stored meanwhile.
    pub(super) async fn keeps_stored(&self, status: StatusCode, storable: &Storable) -> bool {
        if !status.is_client_error() && !status.is_server_error() {
            return false;
        }
        let now = self.now();
        let variant = pages::variant(storable, &self.parts.headers);
        let replaced = self.pages.replaced_by(&self.key, variant.as_ref(), now).await;
        replaced.iter().any(|stored| stored.withstands(status, &self.settings.policy, now))
    }
}
