//! A layer that answers requests from a volume (RFC 9111).
//!
//! ```text
//! request ──> select among what is stored ──> may it be used?
//!               fresh, or stale and allowed ──────> hit; behind the client's back it may be validated
//!               to be validated, or nothing there ─> join the request for the key
//!                                                     somebody asks already: wait, read its body, or look again
//!                                                     first: ask the inner service ──304──> renew what is stored, hit
//!                                                              └any other─> judge: fill, or pass on
//! ```
//! Which of these it is, `eyewall-http` decides; here are the services, the store and the clock.

mod answer;
mod ask;
mod body;
mod claim;
mod fill;
mod grpc;
mod inner;
mod key;
mod pass;
mod purger;
mod query;
mod reply;
mod service;
mod settings;
mod storing;
mod tags;
mod visit;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall::Cache;
use eyewall_http::policy::{Heuristic, Policy};
use eyewall_page_cache::store::Store;
use http::HeaderName;
use http::request::Parts;
use tower_layer::Layer;

pub use body::{BoxError, CachedBody, RequestBody};
pub use key::KeyParts;
pub use purger::{PurgeError, Purger};
pub use service::{CacheService, ResponseFuture};
pub use tags::Tags;

use answer::Pages;
use settings::Settings;

/// For how long it is remembered that an answer could not be stored: nobody waits for another's meanwhile.
const UNSTORABLE_FOR: Duration = Duration::from_mins(1);

/// Caches the responses of a service in a volume.
///
/// Each setting counts for the services that are made of the layer afterwards. All of them, and all clones of the layer, share
/// what is under way: of many requests for the same, one reaches the inner service.
///
/// Services of the layer run inside of a tokio runtime whose time is enabled.
#[derive(Debug, Clone)]
pub struct CacheLayer {
    settings: Arc<Settings>,
    pages: Arc<Pages>,
}

impl CacheLayer {
    /// A layer that stores in this volume, by the rules for shared caches. Nothing is stored whose response doesn't say for how
    /// long it is fresh, or how it can be validated.
    pub fn new(cache: Cache) -> Self {
        Self {
            settings: Arc::default(),
            pages: Arc::new(Pages::new(Arc::new(Store::new(cache)), Some(UNSTORABLE_FOR))),
        }
    }

    fn set(mut self, set: impl FnOnce(&mut Settings)) -> Self {
        set(Arc::make_mut(&mut self.settings));
        self
    }

    /// How the freedom is used that the RFCs leave to a cache, and what overrules responses. Default: that of [`Policy`], without
    /// guesses at lifetimes.
    ///
    /// It takes the place of what [`CacheLayer::heuristic`] and [`CacheLayer::default_ttl`] have set.
    pub fn policy(self, policy: Policy) -> Self {
        self.set(|settings| settings.policy = policy)
    }

    /// Guesses for how long a response is fresh that doesn't say so, by its `Last-Modified` (RFC 9111, section 4.2.2).
    pub fn heuristic(self, heuristic: Heuristic) -> Self {
        self.set(|settings| settings.policy.heuristic = Some(heuristic))
    }

    /// For how long a response is fresh that doesn't say so, if its status is one that may be stored unasked (200, 404, and other
    /// such).
    ///
    /// **Every response counts that doesn't forbid it**, those that were made for a user by his cookies, too. What differs by user
    /// has to say so by `Cache-Control: private` or `Vary`, or is left out by [`CacheLayer::bypass`].
    pub fn default_ttl(self, ttl: Duration) -> Self {
        self.set(|settings| settings.policy.default_ttl = Some(ttl))
    }

    /// What the keys of responses are made of. Default: scheme, host, path and query.
    pub fn key(self, parts: KeyParts) -> Self {
        self.set(|settings| settings.key = parts)
    }

    /// Requests with which the cache is to have nothing to do: they aren't answered from it, and their answers aren't stored. A
    /// change that one of them asks for still removes what it makes wrong.
    pub fn bypass(self, is_bypassed: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.bypass = Some(Arc::new(is_bypassed)))
    }

    /// Keeps what this layer stores, its tags among it, apart from what others with other names store in the same volume.
    pub fn namespace(self, name: impl Into<String>) -> Self {
        self.set(|settings| settings.namespace = Some(name.into()))
    }

    /// The longest body that is stored, in bytes; a longer one passes. Default: 8 MiB. A body is held in memory while it is
    /// collected. What the volume takes as one entry is a limit, too ([`Cache::entry_bytes_max`]).
    pub fn body_bytes_max(self, bytes: u64) -> Self {
        self.set(|settings| settings.body_bytes_max = bytes)
    }

    /// The name under which the field `Cache-Status` (RFC 9211) of responses tells what the cache did. Default: `Eyewall`.
    pub fn cache_status(self, name: impl Into<String>) -> Self {
        self.set(|settings| settings.name = Some(name.into()))
    }

    /// Leaves out `Cache-Status`.
    pub fn without_cache_status(self) -> Self {
        self.set(|settings| settings.name = None)
    }

    /// The fields of responses that name tags, separated by blanks or commas. Default: `Surrogate-Key`, `Cache-Tag`, `xkey`. <!-- tidy: word -->
    pub fn tag_fields(self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.set(|settings| settings.tag_fields = names.into_iter().collect())
    }

    /// How long a request waits for the answer to another one for the same, before it asks for itself. Default: 5 s.
    pub fn patience(self, wait: Duration) -> Self {
        self.set(|settings| settings.patience = wait)
    }

    /// Lets one process ask for what several miss at once, and the others wait for it ([`CacheLayer::patience`]). Within a process
    /// that is always so. Default: no, since it costs each miss some writes to the volume.
    ///
    /// It holds a claim for each of them, of which each stripe of the volume has 16 to 64: where more is asked for at once, requests
    /// wait for nothing, up to their patience.
    pub fn across_processes(self, yes: bool) -> Self {
        self.set(|settings| settings.is_across_processes = yes)
    }

    /// Caches the answers of unary gRPC methods, each named as `/package.Service/Method`, for this long.
    ///
    /// They have to be methods that only read, and whose answer depends on nothing but the request's message: metadata isn't part
    /// of the key. Calls that carry `authorization`, and messages of more than 64 KiB, pass. All other calls pass untouched.
    pub fn cache_grpc<M: Into<String>>(self, methods: impl IntoIterator<Item = M>, ttl: Duration) -> Self {
        self.set(|settings| settings.grpc.extend(methods.into_iter().map(|method| (method.into(), ttl))))
    }

    /// Takes the time from here, for tests whose time doesn't go by itself. Default: [`SystemTime::now`].
    pub fn clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.clock = Some(Arc::new(now)))
    }

    /// A handle that purges what services of this layer have stored. It is made when keys and namespace are set.
    pub fn purger(&self) -> Purger {
        Purger::new(Arc::clone(&self.settings), Arc::clone(&self.pages))
    }
}

impl<S> Layer<S> for CacheLayer {
    type Service = CacheService<S>;

    fn layer(&self, inner: S) -> CacheService<S> {
        CacheService::new(inner, Arc::clone(&self.settings), Arc::clone(&self.pages))
    }
}
