//! The stores.

use std::time::Duration;

use bytes::Bytes;

use crate::frame::Name;
use crate::redis_store::RedisStore;
use crate::s3_store::S3Store;

/// A store.
#[derive(Debug)]
pub(crate) enum Store {
    Redis(Box<RedisStore>),
    S3(S3Store),
}

/// Why a store did not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("{0}")]
    Redis(#[from] redis::RedisError),
    #[error("{0}")]
    S3(#[from] object_store::Error),
    #[error("it did not answer in time")]
    Late,
}

/// What became of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is there. All objects have this many bytes, if the store knows.
    Stored(Option<u64>),
    /// It does not fit.
    Refused,
}

impl Store {
    /// The object of this name.
    pub(crate) async fn get(&self, name: &Name) -> Result<Option<Bytes>, StoreError> {
        match self {
            Self::Redis(store) => store.get(name).await,
            Self::S3(store) => store.get(name).await,
        }
    }

    /// Stores an object that is of no use after `ttl`.
    pub(crate) async fn put(&self, name: &Name, object: Bytes, ttl: Duration) -> Result<Kept, StoreError> {
        match self {
            Self::Redis(store) => store.put(name, object, ttl).await,
            Self::S3(store) => store.put(name, object).await,
        }
    }

    /// Removes an object that was found to be of no use.
    pub(crate) async fn remove(&self, name: &Name) -> Result<(), StoreError> {
        match self {
            // It removes what is too old itself.
            Self::Redis(_) => Ok(()),
            Self::S3(store) => store.remove(name).await,
        }
    }
}
