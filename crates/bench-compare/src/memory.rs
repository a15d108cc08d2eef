//! Caches inside one process. All hold `Arc<[u8]>` under `Box<[u8]>`, are asked by `&[u8]`, hash with foldhash and weigh
//! an entry by the bytes of its key and value.

use std::sync::Arc;

use eyewall_bench::error::Result;
use eyewall_bench::random::KEY_BYTES;
use eyewall_bench::store::{Handle, Peer, Place, Store};
use foldhash::fast::RandomState;
use foyer_memory::{CacheBuilder, CacheProperties, S3FifoConfig};
use quick_cache::{DefaultHashBuilder, Weighter};

type Key = Box<[u8]>;
type Value = Arc<[u8]>;

/// `quick_cache` as it comes.
pub(crate) const QUICK_CACHE: Peer =
    Peer { name: QuickCache::NAME, open: |place| Ok(Box::new(QuickCache::new(place))) };

/// moka's synchronous cache as it comes, but for the hash.
pub(crate) const MOKA: Peer = Peer { name: Moka::NAME, open: |place| Ok(Box::new(Moka::new(place))) };

/// foyer's in-memory cache with S3-FIFO, whose reads take its lock shared (its default, LRU, takes it exclusively).
pub(crate) const FOYER: Peer = Peer { name: Foyer::NAME, open: |place| Ok(Box::new(Foyer::new(place))) };

fn weight(key: &[u8], value: &[u8]) -> usize {
    key.len() + value.len()
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Key, Value> for ByBytes {
    fn weight(&self, key: &Key, value: &Value) -> u64 {
        weight(key, value) as u64
    }
}

struct QuickCache(quick_cache::sync::Cache<Key, Value, ByBytes>);

impl QuickCache {
    const NAME: &str = "quick_cache";

    fn new(place: &Place<'_>) -> Self {
        let objects = place.cap_bytes as usize / (place.value_bytes + KEY_BYTES);
        Self(quick_cache::sync::Cache::with(
            objects,
            place.cap_bytes,
            ByBytes,
            DefaultHashBuilder::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        ))
    }
}

impl Store for QuickCache {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &QuickCache {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.0.get(key).map(|value| consumer(&value)).is_some())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key.into(), value.into());
        Ok(())
    }
}

struct Moka(moka::sync::Cache<Key, Value, RandomState>);

impl Moka {
    const NAME: &str = "moka";

    fn new(place: &Place<'_>) -> Self {
        Self(
            moka::sync::Cache::builder()
                .max_capacity(place.cap_bytes)
                .weigher(|key: &Key, value: &Value| weight(key, value) as u32)
                .build_with_hasher(RandomState::default()),
        )
    }
}

impl Store for Moka {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &Moka {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.0.get(key).map(|value| consumer(&value)).is_some())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key.into(), value.into());
        Ok(())
    }
}

struct Foyer(foyer_memory::Cache<Key, Value, RandomState, CacheProperties>);

impl Foyer {
    const NAME: &str = "foyer";

    fn new(place: &Place<'_>) -> Self {
        Self(
            CacheBuilder::new(place.cap_bytes as usize)
                .with_eviction_config(S3FifoConfig::default())
                .with_hash_builder(RandomState::default())
                .with_weighter(|key: &Key, value: &Value| weight(key, value))
                .build(),
        )
    }
}

impl Store for Foyer {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl Handle for &Foyer {
    /// The entry that foyer returns is its own reference-counted guard: the value is not cloned.
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.0.get(key).map(|entry| consumer(&entry)).is_some())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.insert(key.into(), value.into());
        Ok(())
    }
}
