//! The settings of a layer.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use eyewall_http::policy::Policy;
use eyewall_page_cache::settings::{Place, Settings as CacheSettings};
use eyewall_page_cache::tags;
use http::request::Parts;
use http::{HeaderName, Uri};

use super::key::KeyParts;

/// The prefix of all keys. Other programs in the same volume use other prefixes.
const PREFIX: &str = "tower:";
/// The default greatest length of a stored body.
const BODY_BYTES_MAX: u64 = 8 << 20;

type Bypass = dyn Fn(&Parts) -> bool + Send + Sync;

#[derive(Clone)]
pub(crate) struct Settings {
    /// The settings of the page cache.
    pub(crate) cache: Arc<CacheSettings>,
    pub(crate) key: KeyParts,
    pub(crate) namespace: Option<String>,
    pub(crate) tag_fields: Vec<HeaderName>,
    pub(crate) bypass: Option<Arc<Bypass>>,
    /// How long a failure of the inner service is remembered.
    pub(crate) failure_ttl: Option<Duration>,
    /// Paths of unary methods, and how long their answers are fresh.
    pub(crate) grpc: HashMap<String, Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        let cache = CacheSettings {
            place: Place::Origin,
            policy: Policy { heuristic: None, ..Policy::default() },
            body_bytes_max: BODY_BYTES_MAX,
            ..CacheSettings::default()
        };
        Self {
            cache: Arc::new(cache),
            key: KeyParts::default(),
            namespace: None,
            tag_fields: tags::FIELDS.to_vec(),
            bypass: None,
            failure_ttl: None,
            grpc: HashMap::new(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = to.debug_struct("Settings");
        form.field("cache", &self.cache).field("key", &self.key).field("namespace", &self.namespace);
        form.field("grpc", &self.grpc).finish_non_exhaustive()
    }
}

impl Settings {
    /// Whether a request bypasses the cache.
    pub(crate) fn bypasses(&self, parts: &Parts) -> bool {
        self.bypass.as_ref().is_some_and(|bypass| bypass(parts))
    }

    /// The prefix of all keys of the layer.
    pub(crate) fn prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(|| PREFIX.to_owned(), |namespace| format!("{PREFIX}{namespace}:"))
    }

    /// The key of an absolute address.
    pub(crate) fn address(&self, uri: &Uri) -> String {
        self.key.address(&self.prefix(), uri)
    }
}
