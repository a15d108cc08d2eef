//! An answer of the origin that is on its way into the volume.

use std::sync::Arc;

use eyewall_page_cache::answer;
use eyewall_page_cache::body::BodyStream;

use super::fragments::Object;

/// What a request is to do about a miss.
pub(crate) type Joined = answer::Joined<Content>;
/// The right, and the duty, to ask for a key.
pub(crate) type Leader = answer::Leader<Content>;
/// What all get who wait for it.
pub(crate) type Answer = answer::Answer<Content>;

/// Where the body of an answer comes by.
pub(crate) enum Content {
    /// It may become one entry; if its length is known it is short enough for that.
    Whole(Arc<BodyStream>),
    /// It comes in fragments.
    Fragments(Arc<Object>),
}
