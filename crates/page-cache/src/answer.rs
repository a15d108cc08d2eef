//! An answer that is on its way into the volume, and who waits for it.

use eyewall_http::selecting;
use eyewall_http::terms::Terms;
use eyewall_http::vary_index::Variant;
use http::{HeaderMap, StatusCode};

use crate::collapsing;

/// What is asked for just now, whose bodies come by `C`.
pub type InFlight<C> = collapsing::InFlight<Answer<C>>;
/// What a request is to do about a miss.
pub type Joined<C> = collapsing::Joined<Answer<C>>;
/// The right, and the duty, to ask for a key.
pub type Leader<C> = collapsing::Leader<Answer<C>>;

/// What all get who wait for it.
#[derive(Debug)]
pub struct Answer<C> {
    /// That of the response.
    pub status: StatusCode,
    /// As they are stored.
    pub fields: HeaderMap,
    /// On which it may be used again.
    pub terms: Terms,
    /// What it is chosen by, if it is one of several.
    pub variant: Option<Variant>,
    /// By which it can be purged together with others.
    pub tags: Vec<String>,
    /// That of them which all responses of its address carry.
    pub address_tag: Option<String>,
    /// Where its body comes by.
    pub content: C,
}

impl<C> Answer<C> {
    /// Whether it answers this request, too.
    pub fn suits(&self, request: &HeaderMap) -> bool {
        self.variant
            .as_ref()
            .is_none_or(|variant| selecting::suits(&variant.names, &variant.selecting_key, &self.fields, request))
    }
}
