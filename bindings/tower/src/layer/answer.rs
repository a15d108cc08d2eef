//! An answer of the inner service that is on its way into the volume, and the volume.

use std::sync::Arc;

use eyewall_page_cache::body::BodyStream;
use eyewall_page_cache::{answer, pages};

/// The stored responses of a layer.
pub(crate) type Pages = pages::Pages<Arc<BodyStream>>;
pub(crate) type Joined = answer::Joined<Arc<BodyStream>>;
pub(crate) type Leader = answer::Leader<Arc<BodyStream>>;
pub(crate) type Answer = answer::Answer<Arc<BodyStream>>;
