//! A layer that answers requests from a volume (RFC 9111), by the page cache ([`eyewall_page_cache::visit`]).
//!
//! This module has what is specific to the layer: the inner service, keys and tags, gRPC, and the user's settings.

mod grpc;
mod inner;
mod key;
mod pass;
mod purger;
mod query;
mod service;
mod settings;
mod tags;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall::Cache;
use eyewall_http::policy::{Heuristic, Policy};
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::settings::{Clock, Settings as CacheSettings};
use eyewall_page_cache::store::Store;
use http::HeaderName;
use http::request::Parts;
use tower_layer::Layer;

pub use eyewall_http::coding::{Coding, Codings};
pub use eyewall_page_cache::cached_body::CachedBody;
pub use eyewall_page_cache::compression::Compression;
pub use eyewall_page_cache::compression::media_type::TypePattern;
pub use eyewall_page_cache::request_body::RequestBody;
pub use eyewall_page_cache::upstream::BoxError;
pub use key::KeyParts;
pub use purger::{PurgeError, Purger};
pub use service::{CacheService, ResponseFuture};
pub use tags::Tags;

use settings::Settings;

/// How long the layer remembers that an answer could not be stored. Meanwhile no request waits for another one.
const UNSTORABLE_FOR: Duration = Duration::from_mins(1);

/// Caches the responses of a service in a volume.
///
/// Each setting applies to the services that the layer makes afterwards. All these services, and all clones of the layer, share the
/// requests that are under way: of concurrent requests for the same key, one reaches the inner service.
///
/// Services of the layer run inside a tokio runtime with its time enabled.
#[derive(Debug, Clone)]
pub struct CacheLayer {
    settings: Arc<Settings>,
    pages: Arc<Pages>,
}

impl CacheLayer {
    /// A layer that stores in this volume, by the rules for shared caches. It stores a response only if the response says how long
    /// it is fresh, or how to validate it.
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

    fn set_cache(self, set: impl FnOnce(&mut CacheSettings)) -> Self {
        self.set(|settings| set(Arc::make_mut(&mut settings.cache)))
    }

    /// Sets what the RFCs leave to a cache, and what overrules responses. Default: that of [`Policy`], without heuristic lifetimes.
    ///
    /// This replaces the settings of [`CacheLayer::heuristic`] and [`CacheLayer::default_ttl`].
    pub fn policy(self, policy: Policy) -> Self {
        self.set_cache(|cache| cache.policy = policy)
    }

    /// Estimates how long a response without a lifetime is fresh, from its `Last-Modified` (RFC 9111, section 4.2.2).
    pub fn heuristic(self, heuristic: Heuristic) -> Self {
        self.set_cache(|cache| cache.policy.heuristic = Some(heuristic))
    }

    /// Sets how long a response without a lifetime is fresh, if its status may be stored by default (such as 200 or 404).
    ///
    /// **This applies to every response that doesn't forbid it**, including one that was made for a user by his cookies. A response
    /// that differs by user has to carry `Cache-Control: private` or `Vary`, or its requests have to be left out by
    /// [`CacheLayer::bypass`].
    pub fn default_ttl(self, ttl: Duration) -> Self {
        self.set_cache(|cache| cache.policy.default_ttl = Some(ttl))
    }

    /// Sets the parts of the keys. Default: scheme, host, path and query.
    pub fn key(self, parts: KeyParts) -> Self {
        self.set(|settings| settings.key = parts)
    }

    /// Selects requests that bypass the cache: it neither answers them nor stores their responses. If such a request changes
    /// something, it still removes the responses that it makes wrong.
    pub fn bypass(self, is_bypassed: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.bypass = Some(Arc::new(is_bypassed)))
    }

    /// Separates the entries and tags of this layer from those of layers with other names in the same volume.
    pub fn namespace(self, name: impl Into<String>) -> Self {
        self.set(|settings| settings.namespace = Some(name.into()))
    }

    /// Sets the greatest length of a stored body, in bytes. A longer one is passed on only. Default: 8 MiB. A body of more than a
    /// mebibyte, with a length and a strong entity tag, is stored in fragments while it arrives, up to a quarter of the volume. Any
    /// other body is collected in memory, and may be as long as one entry of the volume ([`Cache::entry_bytes_max`]).
    pub fn body_bytes_max(self, bytes: u64) -> Self {
        self.set_cache(|cache| cache.body_bytes_max = bytes)
    }

    /// Sets the name of this cache in the field `Cache-Status` (RFC 9211) of responses. Default: `Eyewall`.
    pub fn cache_status(self, name: impl Into<String>) -> Self {
        self.set_cache(|cache| cache.name = Some(name.into()))
    }

    /// Leaves out `Cache-Status`.
    pub fn without_cache_status(self) -> Self {
        self.set_cache(|cache| cache.name = None)
    }

    /// The fields of responses that name tags, separated by blanks or commas. Default: `Surrogate-Key`, `Cache-Tag`, `xkey`. <!-- tidy: word -->
    pub fn tag_fields(self, names: impl IntoIterator<Item = HeaderName>) -> Self {
        self.set(|settings| settings.tag_fields = names.into_iter().collect())
    }

    /// Sets how long a request waits for the answer to another one with the same key before it asks the service itself. Default: 5
    /// s.
    pub fn patience(self, wait: Duration) -> Self {
        self.set_cache(|cache| cache.collapse_timeout = wait)
    }

    /// Collapses requests across processes: when several processes miss the same key, one of them asks, and the others wait for it
    /// ([`CacheLayer::patience`]). Within a process, requests are always collapsed. Default: no, because it costs each miss some
    /// writes to the volume.
    ///
    /// Each such request holds a claim, of which each stripe of the volume has 16 to 64. When there are more, requests wait in
    /// vain, up to their patience.
    pub fn across_processes(self, yes: bool) -> Self {
        self.set_cache(|cache| cache.is_across_processes = yes)
    }

    /// Remembers failures for this long, so that not every client waits for the same one. It remembers an error of the inner
    /// service, which clients get as a 502, and a 404, 410 or 5xx without a lifetime. A failure without a body takes a few bytes;
    /// clients get its status and a line of text. Default: failures are not remembered.
    pub fn remember_failures(self, ttl: Duration) -> Self {
        self.set(|settings| settings.failure_ttl = Some(ttl)).set_cache(|cache| cache.remembers_bare_errors = true)
    }

    /// Caches the answers of unary gRPC methods, each named as `/package.Service/Method`, for this long.
    ///
    /// They have to be methods that only read, and whose answer depends on nothing but the request's message: metadata isn't part
    /// of the key. Calls that carry `authorization`, and messages of more than 64 KiB, pass. All other calls pass untouched.
    pub fn cache_grpc<M: Into<String>>(self, methods: impl IntoIterator<Item = M>, ttl: Duration) -> Self {
        self.set(|settings| settings.grpc.extend(methods.into_iter().map(|method| (method.into(), ttl))))
    }

    /// Compresses stored responses, in the background and once each, after the second request for them. Clients that prefer a
    /// compressed form get it. Default: nothing is compressed. See [`Compression`].
    ///
    /// A page that shows a secret and also text of the request, such as a search term, must not be compressed (BREACH): its length
    /// tells about the secret. `Cache-Control: no-transform` keeps a response as it is.
    pub fn compress(self, compression: Compression) -> Self {
        self.set_cache(|cache| cache.compression = Some(compression))
    }

    /// Takes the time from here, for tests whose time doesn't go by itself. Default: [`SystemTime::now`].
    pub fn clock(self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.set_cache(|cache| cache.clock = Clock::by(now))
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
