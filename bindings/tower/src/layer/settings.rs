//! What the user of a layer has set.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::policy::Policy;
use eyewall_page_cache::pages::Lasting;
use eyewall_page_cache::tags;
use http::request::Parts;
use http::{HeaderName, Uri};

use super::key::KeyParts;

/// Keys begin so, and so are no keys of other programs in the same volume.
const PREFIX: &str = "tower:";
/// The longest body that is stored, if not set.
const BODY_BYTES_MAX: u64 = 8 << 20;
/// How long a request waits for the answer to another one, if not set.
const PATIENCE: Duration = Duration::from_secs(5);

type Clock = dyn Fn() -> SystemTime + Send + Sync;
type Bypass = dyn Fn(&Parts) -> bool + Send + Sync;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) policy: Policy,
    pub(crate) key: KeyParts,
    pub(crate) namespace: Option<String>,
    pub(crate) body_bytes_max: u64,
    /// The name in `Cache-Status`.
    pub(crate) name: Option<String>,
    pub(crate) tag_fields: Vec<HeaderName>,
    pub(crate) patience: Duration,
    pub(crate) is_across_processes: bool,
    pub(crate) bypass: Option<Arc<Bypass>>,
    pub(crate) clock: Option<Arc<Clock>>,
    /// Paths of unary methods, and for how long their answers are fresh.
    pub(crate) grpc: HashMap<String, Duration>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy { heuristic: None, ..Policy::default() },
            key: KeyParts::default(),
            namespace: None,
            body_bytes_max: BODY_BYTES_MAX,
            name: Some("Eyewall".to_owned()),
            tag_fields: tags::FIELDS.to_vec(),
            patience: PATIENCE,
            is_across_processes: false,
            bypass: None,
            clock: None,
            grpc: HashMap::new(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut form = to.debug_struct("Settings");
        form.field("policy", &self.policy).field("key", &self.key).field("namespace", &self.namespace);
        form.field("body_bytes_max", &self.body_bytes_max).field("name", &self.name).field("grpc", &self.grpc);
        form.finish_non_exhaustive()
    }
}

impl Settings {
    /// What time it is.
    pub(crate) fn now(&self) -> SystemTime {
        self.clock.as_ref().map_or_else(SystemTime::now, |clock| clock())
    }

    /// By which for how long a response is kept.
    pub(crate) fn lasting(&self) -> Lasting {
        Lasting { now: self.now(), when_unreachable: self.policy.stale_if_unreachable.unwrap_or_default() }
    }

    /// Whether the cache is to have nothing to do with a request.
    pub(crate) fn bypasses(&self, parts: &Parts) -> bool {
        self.bypass.as_ref().is_some_and(|bypass| bypass(parts))
    }

    /// What all keys of the layer begin with.
    pub(crate) fn prefix(&self) -> String {
        self.namespace.as_ref().map_or_else(|| PREFIX.to_owned(), |namespace| format!("{PREFIX}{namespace}:"))
    }

    /// The key of an absolute address.
    pub(crate) fn address(&self, uri: &Uri) -> String {
        self.key.address(&self.prefix(), uri)
    }
}
