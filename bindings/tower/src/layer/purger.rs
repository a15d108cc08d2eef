//! Purging what a layer has stored, because it has changed at its source.

use std::sync::Arc;

use eyewall::Purge;

use super::settings::Settings;
use super::tags;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::store::PurgeTarget;

/// Why nothing was purged.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The given text is no address.
    #[error("{0:?} is no address; give a URI such as https://example.org/path, or a path")]
    Address(String),
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] eyewall::Error),
    /// The runtime ends, or the purge panicked.
    #[error("the purge was given up, since its runtime ends or it panicked")]
    GivenUp,
}

/// Purges responses that services of a [`CacheLayer`](crate::CacheLayer) have stored, in any process.
///
/// A hard purge ([`Purge::Hard`]) removes them. A soft purge makes them stale: a stale response may be sent while it is validated,
/// or when the inner service fails, if the response allows that. A response on its way into the volume is not stored as if it were
/// new. There is one exception: if another process asks for an address at the moment of its purge, it doesn't notice the purge.
///
/// Each purge waits for the volume on a blocking thread.
#[derive(Debug, Clone)]
pub struct Purger {
    settings: Arc<Settings>,
    pages: Arc<Pages>,
}

impl Purger {
    pub(super) fn new(settings: Arc<Settings>, pages: Arc<Pages>) -> Self {
        Self { settings, pages }
    }

    /// Purges all responses of an address, a URI such as `https://example.org/path?query`. If keys have no host, or requests name
    /// none, the address is a path. True: there was an entry of the address itself; entries of keys with more parts aren't counted.
    ///
    /// # Errors
    /// [`PurgeError`]: possibly nothing was purged.
    pub async fn address(&self, address: &str, kind: Purge) -> Result<bool, PurgeError> {
        let unknown = || PurgeError::Address(address.to_owned());
        let uri = self.settings.key.parsed(address).ok_or_else(unknown)?;
        let address = self.settings.address(&uri);
        let tag = self.settings.key.address_tag(&address);
        self.purge(move |pages| pages.purge_address(&address, tag.as_deref(), kind)).await
    }

    /// Purges responses that carry a tag, and those that had too many tags to keep them all.
    ///
    /// # Errors
    /// [`PurgeError`].
    pub async fn tag(&self, tag: &str, kind: Purge) -> Result<(), PurgeError> {
        let (tag, many) = (tags::named(&self.settings, tag), tags::many(&self.settings));
        self.purge(move |pages| {
            pages.store.purge(PurgeTarget::Tag(&tag), kind)?;
            pages.store.purge(PurgeTarget::Tag(&many), kind)
        })
        .await
    }

    /// Purges all addresses with this prefix, in the form that keys have: `https://example.org/shop/`, or without the parts that
    /// keys leave out. Scheme and host are in lower case there, without the default port of the scheme.
    ///
    /// # Errors
    /// [`PurgeError`].
    pub async fn prefix(&self, prefix: &str, kind: Purge) -> Result<(), PurgeError> {
        let prefix = self.settings.prefix() + prefix;
        self.purge(move |pages| pages.store.purge(PurgeTarget::Prefix(prefix.as_bytes()), kind)).await
    }

    /// Purges everything that this layer, or one with the same namespace, has stored, and no entries of other programs in the
    /// volume. For a layer without a namespace, it purges the entries of all layers.
    ///
    /// # Errors
    /// [`PurgeError`].
    pub async fn all(&self, kind: Purge) -> Result<(), PurgeError> {
        self.prefix("", kind).await
    }

    async fn purge<T: Send + 'static>(
        &self,
        purge: impl FnOnce(&Pages) -> eyewall::Result<T> + Send + 'static,
    ) -> Result<T, PurgeError> {
        let pages = Arc::clone(&self.pages);
        let purged = tokio::task::spawn_blocking(move || purge(&pages)).await;
        Ok(purged.map_err(|_| PurgeError::GivenUp)??)
    }
}
