//! Caches inside one process. All hold `Arc<[u8]>` under `Box<[u8]>`, look up by `&[u8]`, hash with foldhash, and weigh
//! an entry by the bytes of its key and value.

use std::sync::Arc;

use eyewall_bench::error::Result;
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::random::KEY_BYTES;
use eyewall_bench::store::{Handle, Place, Store, check_size};
use foldhash::fast::RandomState;
use foyer_memory::{CacheBuilder, CacheProperties, S3FifoConfig};
use quick_cache::{DefaultHashBuilder, Weighter};

use crate::version;

type Key = Box<[u8]>;
type Value = Arc<[u8]>;

/// `quick_cache` with its defaults.
pub const QUICK_CACHE: Peer = Held::<QuickCache>::PEER;

/// moka's synchronous cache with its defaults, except the hash.
pub const MOKA: Peer = Held::<Moka>::PEER;

/// foyer's in-memory cache with S3-FIFO. Its reads share the lock; with LRU, the default, a read takes the lock
/// exclusively.
pub const FOYER: Peer = Held::<Foyer>::PEER;

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

/// The calls that each cache needs; `Held` turns it into a store.
trait Shelf: Sized + Send + Sync + 'static {
    const NAME: &str;

    /// The crate whose version is reported.
    const LIBRARY: &str = Self::NAME;

    fn new(place: &Place<'_>) -> Self;

    fn look(&self, key: &[u8], consumer: impl FnOnce(&[u8])) -> bool;

    fn keep(&self, key: Key, value: Value);

    fn take_out(&self, key: &[u8]) -> bool;
}

struct Held<S> {
    shelf: S,
    cap_bytes: u64,
}

impl<S: Shelf> Held<S> {
    const PEER: Peer = Peer {
        name: S::NAME,
        kind: Kind::Other,
        look: || Ok(version::of_crate(S::LIBRARY)),
        open: |place| Ok(Box::new(Self { shelf: S::new(place), cap_bytes: place.cap_bytes })),
        attach: None,
    };
}

impl<S: Shelf> Store for Held<S> {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        S::NAME
    }

    fn handle(&self) -> &Self {
        self
    }
}

impl<S: Shelf> Handle for &Held<S> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Ok(self.shelf.look(key, consumer))
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(S::NAME, value, self.cap_bytes)?;
        self.shelf.keep(key.into(), value.into());
        Ok(())
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.shelf.take_out(key))
    }
}

type QuickCache = quick_cache::sync::Cache<Key, Value, ByBytes>;

impl Shelf for QuickCache {
    const NAME: &str = "quick_cache";

    fn new(place: &Place<'_>) -> Self {
        let objects = place.cap_bytes as usize / (place.value_bytes + KEY_BYTES);
        Self::with(
            objects,
            place.cap_bytes,
            ByBytes,
            DefaultHashBuilder::default(),
            quick_cache::sync::DefaultLifecycle::default(),
        )
    }

    #[inline]
    fn look(&self, key: &[u8], consumer: impl FnOnce(&[u8])) -> bool {
        self.get(key).map(|value| consumer(&value)).is_some()
    }

    #[inline]
    fn keep(&self, key: Key, value: Value) {
        self.insert(key, value);
    }

    fn take_out(&self, key: &[u8]) -> bool {
        self.remove(key).is_some()
    }
}

type Moka = moka::sync::Cache<Key, Value, RandomState>;

impl Shelf for Moka {
    const NAME: &str = "moka";

    fn new(place: &Place<'_>) -> Self {
        moka::sync::Cache::builder()
            .max_capacity(place.cap_bytes)
            .weigher(|key: &Key, value: &Value| weight(key, value) as u32)
            .build_with_hasher(RandomState::default())
    }

    #[inline]
    fn look(&self, key: &[u8], consumer: impl FnOnce(&[u8])) -> bool {
        self.get(key).map(|value| consumer(&value)).is_some()
    }

    #[inline]
    fn keep(&self, key: Key, value: Value) {
        self.insert(key, value);
    }

    fn take_out(&self, key: &[u8]) -> bool {
        self.remove(key).is_some()
    }
}

type Foyer = foyer_memory::Cache<Key, Value, RandomState, CacheProperties>;

impl Shelf for Foyer {
    const NAME: &str = "foyer";

    const LIBRARY: &str = "foyer-memory";

    fn new(place: &Place<'_>) -> Self {
        CacheBuilder::new(place.cap_bytes as usize)
            .with_eviction_config(S3FifoConfig::default())
            .with_hash_builder(RandomState::default())
            .with_weighter(|key: &Key, value: &Value| weight(key, value))
            .build()
    }

    /// The entry that foyer returns is its own reference-counted guard: the value is not cloned.
    #[inline]
    fn look(&self, key: &[u8], consumer: impl FnOnce(&[u8])) -> bool {
        self.get(key).map(|entry| consumer(&entry)).is_some()
    }

    #[inline]
    fn keep(&self, key: Key, value: Value) {
        self.insert(key, value);
    }

    fn take_out(&self, key: &[u8]) -> bool {
        self.remove(key).is_some()
    }
}
