//! An answer of the origin that is on its way into the volume.

use std::sync::Arc;

use eyewall_http::selecting;
use eyewall_http::signpost::Variant;
use eyewall_http::terms::Terms;
use eyewall_page_cache::collapsing;
use http::{HeaderMap, StatusCode};

use super::fragments::Object;
use super::intake::Intake;

/// The requests to the origin that are under way.
pub(crate) type Flights = collapsing::Flights<Answer>;
/// What a request is to do about a miss.
pub(crate) type Joined = collapsing::Joined<Answer>;
/// The right, and the duty, to ask for a key.
pub(crate) type Ticket = collapsing::Ticket<Answer>;

/// What all get who wait for it.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// As they are stored.
    pub(crate) fields: HeaderMap,
    pub(crate) terms: Terms,
    pub(crate) variant: Option<Variant>,
    /// By which it can be purged together with others.
    pub(crate) tags: Vec<String>,
    /// That of them which all responses of its address carry.
    pub(crate) address_tag: Option<String>,
    pub(crate) content: Content,
}

/// Where the body of an answer comes by.
pub(crate) enum Content {
    /// It may become one entry; if its length is known it is short enough for that.
    Whole { intake: Arc<Intake>, length: Option<u64> },
    /// It comes in fragments.
    Fragments(Arc<Object>),
}

impl Answer {
    /// Whether it answers this request, too.
    pub(crate) fn suits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| selecting::suits(&variant.names, &variant.selecting_key, &self.fields, request))
    }
}
