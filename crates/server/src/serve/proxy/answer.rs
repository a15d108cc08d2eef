//! An answer of the origin that is on its way into the volume.

use std::sync::Arc;

use eyewall_http::selecting;
use eyewall_http::terms::Terms;
use http::{HeaderMap, HeaderName, StatusCode};

use super::fragments::Object;
use super::intake::Intake;

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

/// By what a response was chosen among others of its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variant {
    /// The fields of requests that the response varies by.
    pub(crate) names: Vec<HeaderName>,
    /// What they were, in one spelling ([`selecting::key`]).
    pub(crate) selecting_key: Vec<u8>,
}

impl Variant {
    /// The one that a request chooses, where responses vary by these fields.
    pub(crate) fn of(names: &[HeaderName], request: &HeaderMap) -> Self {
        Self { names: names.to_vec(), selecting_key: selecting::key(names, request) }
    }
}

impl Answer {
    /// Whether it answers this request, too.
    pub(crate) fn suits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| selecting::suits(&variant.names, &variant.selecting_key, &self.fields, request))
    }
}
