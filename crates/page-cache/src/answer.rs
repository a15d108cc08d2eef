//! An answer that is on its way into the volume, and who waits for it.

use std::sync::Arc;

use eyewall_http::selecting;
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::Variant;
use http::{HeaderMap, StatusCode};

use crate::body::BodyStream;
use crate::collapsing;
use crate::fragments::Object;

/// What is asked for just now.
pub(crate) type InFlight = collapsing::InFlight<Answer>;
/// What a request is to do about a miss.
pub(crate) type Joined = collapsing::Joined<Answer>;
/// The right, and the duty, to ask for a key.
pub(crate) type Leader = collapsing::Leader<Answer>;

/// What all get who wait for it.
#[derive(Debug)]
pub(crate) struct Answer {
    /// That of the response.
    pub(crate) status: StatusCode,
    /// As they are stored.
    pub(crate) fields: HeaderMap,
    /// On which it may be used again.
    pub(crate) terms: Terms,
    /// What it is chosen by, if it is one of several.
    pub(crate) variant: Option<Variant>,
    /// By which it can be purged together with others.
    pub(crate) tags: Vec<String>,
    /// That of them which all responses of its address carry.
    pub(crate) address_tag: Option<String>,
    /// Where its body comes by.
    pub(crate) content: Content,
}

/// Where the body of an answer comes by.
#[derive(Debug)]
pub(crate) enum Content {
    /// It may become one entry. If its length is known, it is short enough for that.
    Whole(Arc<BodyStream>),
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
