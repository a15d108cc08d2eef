//! An answer of the inner service that is on its way into the volume.

use std::sync::Arc;

use eyewall_page_cache::answer;
use eyewall_page_cache::body::BodyStream;

pub(crate) type Flights = answer::Flights<Arc<BodyStream>>;
pub(crate) type Joined = answer::Joined<Arc<BodyStream>>;
pub(crate) type Ticket = answer::Ticket<Arc<BodyStream>>;
pub(crate) type Answer = answer::Answer<Arc<BodyStream>>;
