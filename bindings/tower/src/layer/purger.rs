//! Purging what a layer has stored, because it has changed at its source.

use std::sync::Arc;

use eyewall::Purge;

use super::answer::Pages;
use super::settings::Settings;
use super::tags;
use eyewall_page_cache::store::PurgeTarget;

/// Why nothing was purged.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// What was given is no address.
    #[error("{0:?} is no address; give a URI such as https://example.org/path, or a path")]
    Address(String),
    /// The volume failed.
    #[error(transparent)]
    Volume(#[from] eyewall::Error),
    /// The runtime ends.
    #[error("the purge was given up, since its runtime ends or it panicked")]
    GivenUp,
}

/// Purges what services of a [`CacheLayer`](crate::CacheLayer) have stored, whichever process did.
///
/// A hard purge ([`Purge::Hard`]) removes; a soft one makes stale, so that it may be sent while it is validated or where the inner
/// service fails, as its response allows. What is on its way into the volume while it is purged is not stored as if it were new; but
/// an address that is purged here isn't noticed by another process that asks for it at that moment.
///
/// Each purge waits for the volume on a thread that may.
#[derive(Debug, Clone)]
pub struct Purger {
    settings: Arc<Settings>,
    pages: Arc<Pages>,
}

impl Purger {
    pub(super) fn new(settings: Arc<Settings>, pages: Arc<Pages>) -> Self {
        Self { settings, pages }
    }

    /// Purges all responses of an address, a URI such as `https://example.org/path?query`; where keys have no host, or requests
    /// name none, a path. True: there was one of its own; where keys have more parts, the others aren't counted.
    ///
    /// # Errors
    /// [`PurgeError`]: nothing was purged for sure.
    pub async fn address(&self, address: &str, kind: Purge) -> Result<bool, PurgeError> {
        let unknown = || PurgeError::Address(address.to_owned());
        let uri = self.settings.key.parsed(address).ok_or_else(unknown)?;
        let address = self.settings.address(&uri);
        let tag = self.settings.key.address_tag(&address);
        self.purge(move |pages| pages.purge_address(&address, tag.as_deref(), kind)).await
    }

    /// Purges what carries a tag, and what had too many of them to tell.
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

    /// Purges all addresses that begin so, in the form that keys have: `https://example.org/shop/`, or without what keys leave out.
    /// Scheme and host are in lower case there, without the port that their scheme has anyway.
    ///
    /// # Errors
    /// [`PurgeError`].
    pub async fn prefix(&self, prefix: &str, kind: Purge) -> Result<(), PurgeError> {
        let prefix = self.settings.prefix() + prefix;
        self.purge(move |pages| pages.store.purge(PurgeTarget::Prefix(&prefix), kind)).await
    }

    /// Purges everything that the layer, or one with the same namespace, has stored, and nothing of others in the volume. A layer
    /// without a namespace means those of all layers.
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
