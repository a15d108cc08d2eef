//! Whether a response is stored, in which form, and in place of which others.

use eyewall_http::coding::Codings;
use eyewall_http::field::vary::Vary;
use eyewall_http::message::{self, Exchange};
use eyewall_http::storing::{self, NotStored, Storable};
use eyewall_http::strong_validator;
use http::header::TRAILER;
use http::{HeaderMap, StatusCode};

use super::Visit;
use crate::compression;
use crate::head::{Compressible, Head, Kind, Version};
use crate::layout::FRAGMENT_BYTES_MAX;
use crate::pages;
use crate::settings::Place;
use crate::upstream::{Rules, Upstream};

/// Why a response is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The front door refuses it.
    Rule,
    /// Another cache has it for this one.
    NotHome,
    /// Its transfer coding is unknown, so the cache can't know its content.
    Coding,
    /// It is an error, and the stored response is worth more.
    KeepsStored,
    /// The response, or one of its fields, is too long.
    TooLarge,
    Http(NotStored),
}

impl Refused {
    /// A token for `Cache-Status`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::NotHome => "peer",
            Self::Coding => "transfer-coding",
            Self::KeepsStored => "keeps-stored",
            Self::TooLarge => "too-large",
            Self::Http(why) => why.as_str(),
        }
    }

    /// Whether the refusal concerns this request only. Then the answer to another request for the same key may be stored, and the
    /// stored response stays.
    pub(super) fn is_of_request(self) -> bool {
        match self {
            Self::Rule | Self::NotHome | Self::KeepsStored => true,
            Self::Coding | Self::TooLarge => false,
            Self::Http(why) => why.is_of_request(),
        }
    }
}

/// The entry that a response becomes.
pub(super) struct Entry {
    pub(super) head: Head,
    pub(super) tags: Vec<String>,
    /// The codings of its compressed forms.
    pub(super) codings: Codings,
    /// The greatest length of the body as one entry, with this head and these tags.
    pub(super) whole_bytes_max: u64,
    /// The greatest length of the body in fragments, if it may be stored so.
    pub(super) object_bytes_max: Option<u64>,
}

impl<U: Upstream> Visit<U> {
    /// Whether a response may be stored, and on which terms; otherwise why not.
    pub(super) fn judge(
        &self,
        rules: &Rules<'_>,
        (status, fields): (StatusCode, &HeaderMap),
        exchange: Exchange,
    ) -> Result<Storable, Refused> {
        if rules.is_refused {
            return Err(Refused::Rule);
        }
        if let Some(carried) = &rules.carried {
            return if carried.is_kept { Ok(carried.storable()) } else { Err(Refused::NotHome) };
        }
        // A HEAD renews the response to a GET. The answer to a POST is judged only if it is one to a GET.
        let request = message::Request { method: &self.method(), fields: &self.parts.headers };
        let told = message::Response { status, fields };
        match storing::judge(request, told, exchange, &rules.policy).map_err(Refused::Http)? {
            storable if self.varies_by_hidden(&storable.vary) => Err(Refused::Http(NotStored::Vary)),
            storable => Ok(storable),
        }
    }

    /// The codings of the compressed forms that a response may have. If it may have any, it varies by them.
    pub(super) fn codings(
        &self,
        allowed: Codings,
        (status, fields): (StatusCode, &mut HeaderMap),
        length: Option<u64>,
    ) -> Codings {
        let Some(compression) = &self.settings.compression else { return Codings::NONE };
        let codings = compression.codings_of(allowed, status, fields, length);
        if !codings.is_empty() {
            compression::vary(fields);
        }
        codings
    }

    fn varies_by_hidden(&self, vary: &Vary) -> bool {
        matches!(vary, Vary::Fields(names) if names.iter().any(|name| self.upstream.is_hidden(name)))
    }

    /// The greatest length of a stored body, in one entry or in fragments.
    pub(crate) fn object_bytes_max(&self) -> u64 {
        self.pages.object_bytes_max().min(self.settings.body_bytes_max)
    }

    /// The entry for a response whose body has this length, if it is known.
    ///
    /// # Errors
    /// The fields are too long for an entry, or the body is too long.
    pub(super) fn entry(
        &self,
        (status, fields): (StatusCode, &HeaderMap),
        (storable, length): (&Storable, Option<u64>),
        (tags, codings): (Vec<String>, Codings),
        exchange: Exchange,
    ) -> Result<Entry, Refused> {
        let has_trailers = fields.contains_key(TRAILER);
        let fields = pages::without(fields.clone(), &storable.withheld);
        let may_be_asked_for = strong_validator::if_range(&fields, exchange.received).is_some();
        // The version comes with the last byte.
        let compressible = (!codings.is_empty()).then_some(Compressible { version: Version::MIN, codings });
        let head = Head { compressible, ..Head::new(Kind::Response(storable.terms), status, fields) };
        let selecting = pages::variant(storable, &self.parts.headers).map_or(0, |variant| variant.selecting_key.len());
        let beside = self.pages.store.value_bytes_max(&self.key, &head, &tags);
        let entry_bytes_max = beside.and_then(|most| most.checked_sub(selecting as u64)).ok_or(Refused::TooLarge)?;
        // An upstream that makes its responses on demand, and sends no parts, would have to make the response again for each
        // missing fragment.
        let may_be_fragmented = match self.settings.place {
            Place::Gateway => true,
            // Fragments have no trailers.
            Place::Origin => may_be_asked_for && length.is_some() && !has_trailers,
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
        Ok(Entry { head, tags, codings, whole_bytes_max, object_bytes_max })
    }

    /// Whether a stored response keeps its place against an answer. That is so if the answer is an error, and the response that it
    /// would replace may still be sent to other clients. It is also so if another response was stored meanwhile.
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
