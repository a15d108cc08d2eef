//! What becomes of a request, before anything is done about it. A front door also asks this of requests that nobody has sent, to
//! explain them.

use std::time::{Duration, SystemTime};

use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::policy::Policy;
use eyewall_http::precondition::Role;
use eyewall_http::reuse::{self, Reuse};
use http::header::RANGE;
use http::request::Parts;
use http::{HeaderName, Method, StatusCode};

use super::Freshness;
use crate::fragments::{FRAGMENTS_LOOKED_AT, Object, Part};
use crate::pages::Pages;
use crate::reply::{self, Arranged};
use crate::selection::{Selection, Stored};
use crate::settings::{Place, Settings};
use crate::store::Store;

/// What the stored responses of an address mean for a request.
#[derive(Debug)]
pub enum Verdict {
    /// The request selects a stored response.
    Stored {
        /// The response.
        stored: Box<Stored>,
        /// What to do with it.
        reuse: Reuse,
        /// Why the upstream is asked, if `reuse` says to ask.
        why: Forward,
    },
    /// The upstream failed with this status, and the failure is remembered for this much longer.
    Failure(StatusCode, Duration),
    /// Only a stored response was wanted, and there is none.
    Timeout,
    /// Responses are stored that were selected by these fields, and none for this request.
    OtherVariants(Vec<HeaderName>),
    /// Nothing is stored.
    Nothing,
}

impl Verdict {
    /// The verdict at `now` on a request with these directives.
    pub(super) fn of(selection: Selection, directives: &RequestDirectives, now: SystemTime, policy: &Policy) -> Self {
        match selection {
            Selection::Stored(stored) => {
                let why = if stored.terms.fresh_for(now).is_zero() { Forward::Stale } else { Forward::Request };
                let reuse = reuse::decide(&stored.terms, directives, now, policy);
                Self::Stored { stored, reuse, why }
            }
            Selection::Failure(status, left) if !directives.no_cache && directives.max_age != Some(0) => {
                Self::Failure(status, left)
            }
            Selection::Nothing | Selection::Failure(..) | Selection::OtherVariants(_)
                if reuse::is_timeout_without_stored(directives) =>
            {
                Self::Timeout
            }
            Selection::Nothing | Selection::Failure(..) => Self::Nothing,
            Selection::OtherVariants(names) => Self::OtherVariants(names),
        }
    }
}

/// What to ask the upstream for if nothing stored answers the request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asking {
    /// The head, which passes through.
    Head,
    /// The ranges as they are. They pass through: they are too many, or the response can't be stored.
    Range,
    /// The fragments of a range.
    Part(Part),
    /// All of it, or whether the stored response is still right.
    Whole,
}

impl Asking {
    /// `validates`: there is a stored response, which is to be validated.
    pub(super) fn of(pages: &Pages, key: &[u8], request: &Parts, validates: bool) -> Self {
        if request.method == Method::HEAD {
            return Self::Head;
        }
        if validates || !request.headers.contains_key(RANGE) {
            return Self::Whole;
        }
        let may_be_part = request.method == Method::GET && !pages.is_unstorable(key);
        Part::of(&request.headers, pages).filter(|_| may_be_part).map_or(Self::Range, Self::Part)
    }

    /// Why the upstream's response only passes through.
    fn passed_as(self) -> Option<&'static str> {
        match self {
            Self::Head => Some("head"),
            Self::Range => Some("range"),
            Self::Part(_) | Self::Whole => None,
        }
    }
}

/// Whether bytes of a stored body that the request wants were evicted.
fn lacks_parts(pages: &Pages, stored: &Stored, request: &Parts) -> bool {
    let Some(object) = Object::of_stored(stored).filter(|_| stored.is_fragmented()) else { return false };
    let head = &stored.found.head;
    let (fields, received) = (head.fields.clone(), stored.received());
    match reply::arrange::<()>(Role::Cache, request, head.status, fields, received, object.length()) {
        Arranged::Complete(_) => false,
        Arranged::Content(_, _, segments) => {
            // Without a strong validator, later parts can't be asked for alone.
            let most = if object.if_range.is_some() { FRAGMENTS_LOOKED_AT } else { usize::MAX };
            pages.lacks(&object, &segments, most)
        }
    }
}

/// A GET or HEAD that might come, for a cache in front of an origin ([`Place::Gateway`]).
#[derive(Debug)]
pub struct Prospect<'a> {
    /// The key of its response.
    key: &'a [u8],
    /// Its head, after the front door's changes.
    parts: Parts,
    /// The client's demands on the cache, as far as the front door allows them.
    pub directives: RequestDirectives,
}

impl<'a> Prospect<'a> {
    /// A request with this head, after the front door's changes, for the response of this key.
    pub fn new(settings: &Settings, key: &'a [u8], mut parts: Parts) -> Self {
        let directives = super::directives(settings, &mut parts);
        Self { key, parts, directives }
    }
}

/// What would become of a request.
#[derive(Debug)]
pub struct Outlook {
    /// What the stored responses mean. `None`: the volume has failed.
    pub verdict: Option<Verdict>,
    /// What the response would say of it, as far as the cache knows before it asks. Other requests may be faster, and an entry may go.
    pub status: CacheStatus,
    /// Whether the last response under this key could not be stored.
    pub is_unstorable: bool,
    /// Whether parts of the body that the request wants are missing in the volume.
    pub is_partial: bool,
    /// Why the upstream's response, if it is asked, only passes through: `head` or `range`, as in `status`.
    pub passed_as: Option<&'static str>,
}

impl Outlook {
    /// Looks without a trace.
    pub async fn of(pages: &Pages, settings: &Settings, prospect: &Prospect<'_>) -> Self {
        debug_assert_eq!(settings.place, Place::Gateway, "the other place has its own ways for ranges");
        let Prospect { key, parts, directives } = prospect;
        let is_unstorable = pages.is_unstorable(key);
        if pages.store.has_failed() {
            let status = CacheStatus::forwarded(Forward::UriMiss).detail("volume-failed");
            return Self { verdict: None, status, is_unstorable, is_partial: false, passed_as: None };
        }
        let now = settings.now();
        let selection = pages.select_by(Store::glance, key, &parts.headers, now).await;
        let verdict = Verdict::of(selection, directives, now, &settings.policy);
        let is_partial = match &verdict {
            Verdict::Stored { stored, .. } => lacks_parts(pages, stored, parts),
            _ => false,
        };
        let validates = matches!(&verdict, Verdict::Stored { reuse: Reuse::Validate { .. }, .. });
        let passed_as = Asking::of(pages, key, parts, validates).passed_as();
        let asks = |why| {
            let status = CacheStatus::forwarded(why);
            if let Some(detail) = passed_as { status.detail(detail) } else { status }
        };
        let status = match &verdict {
            Verdict::Stored { stored, reuse, why } => match reuse {
                Reuse::Fresh | Reuse::StaleAllowed | Reuse::StaleWhileRevalidate if is_partial => {
                    CacheStatus::forwarded(Forward::Partial)
                }
                Reuse::Fresh | Reuse::StaleAllowed | Reuse::StaleWhileRevalidate => {
                    CacheStatus::hit().ttl(Freshness::of(&stored.terms, now).left)
                }
                Reuse::GatewayTimeout => CacheStatus::hit().detail("only-if-cached"),
                Reuse::Validate { .. } | Reuse::MustNotUse => asks(*why),
            },
            Verdict::Failure(_, left) => CacheStatus::hit().ttl(left.as_secs() as i64).detail("negative"),
            Verdict::Timeout => CacheStatus::hit().detail("only-if-cached"),
            Verdict::OtherVariants(_) => asks(Forward::VaryMiss),
            Verdict::Nothing => asks(Forward::UriMiss),
        };
        Self { verdict: Some(verdict), status, is_unstorable, is_partial, passed_as }
    }
}
