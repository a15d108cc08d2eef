//! An answer on its way to clients and, if it is kept, into the volume; and the requests that wait for it.

use std::sync::Arc;

use eyewall_fleet::AsOf;
use eyewall_http::coding::Codings;
use eyewall_http::selecting;
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::Variant;
use http::{HeaderMap, StatusCode};

use crate::body::BodyStream;
use crate::carried::Carried;
use crate::collapsing;
use crate::fragments::Object;

/// The requests that are under way.
pub(crate) type InFlight = collapsing::InFlight<Answer>;
/// What a request has to do on a miss: ask, or wait.
pub(crate) type Joined = collapsing::Joined<Answer>;
/// The right, and the duty, to ask for a key.
pub(crate) type Leader = collapsing::Leader<Answer>;

/// What every request that waits for this answer gets.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status of the response.
    pub(crate) status: StatusCode,
    /// The fields, as they are stored.
    pub(crate) fields: HeaderMap,
    /// The terms on which the response may be used again.
    pub(crate) terms: Terms,
    /// The fields of requests that select this response, if the address has several variants.
    pub(crate) variant: Option<Variant>,
    /// The codings of its compressed forms.
    pub(crate) codings: Codings,
    /// The tags by which this response is purged together with others.
    pub(crate) tags: Vec<String>,
    /// The one of these tags that all responses of the address carry.
    pub(crate) address_tag: Option<String>,
    /// Up to which line of the purge log it is right: that of the request that asked for it.
    pub(crate) as_of: Option<AsOf>,
    /// Whether it is stored. Otherwise, only the requests that wait for it share it.
    pub(crate) is_kept: bool,
    /// Where the body comes from.
    pub(crate) content: Content,
}

/// Where the body of an answer comes from.
#[derive(Debug)]
pub(crate) enum Content {
    /// The body may become one entry. If its length is known, it is short enough for that.
    Whole(Arc<BodyStream>),
    /// The body comes in fragments.
    Fragments(Arc<Object>),
}

impl Answer {
    /// What another cache needs to take it over. `length` is that of its body.
    pub(crate) fn carried(&self, length: Option<u64>) -> Option<Carried> {
        Some(Carried {
            status: self.status,
            terms: self.terms,
            as_of: self.as_of.clone()?,
            vary: self.variant.as_ref().map(|variant| variant.names.clone()).unwrap_or_default(),
            tags: self.tags.clone(),
            fields: self.fields.clone(),
            length,
            is_kept: true,
        })
    }

    /// Whether the answer is right for this request, too.
    pub(crate) fn suits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| selecting::suits(&variant.names, &variant.selecting_key, &self.fields, request))
    }
}
