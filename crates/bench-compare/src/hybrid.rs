//! foyer's hybrid cache: a cache in memory, and files for the entries that it evicts.
//!
//! - The cache in memory is set up like foyer alone (`memory.rs`). It has the size of the tier, or an eighth of the cap
//!   if no size is given. On the disk, foyer's block engine uses a directory, up to the cap. Entries are written on
//!   eviction, which is foyer's default.
//! - A block is a sixteenth of the cap, at most 16 MiB (the default), but has room for two typical values. The disk
//!   part refuses larger values, so this store does, too.
//! - Entries on their way to the disk may take as much memory as the cap, instead of 16 MiB, so that none is dropped
//!   for lack of this memory.
//! - Its tasks run on a runtime of their own. A get that hits in memory doesn't wait; for any other get the thread
//!   waits for the disk.

use std::path::PathBuf;

use eyewall_bench::error::{Error, Result};
use eyewall_bench::footprint;
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::random::KEY_BYTES;
use eyewall_bench::store::{Handle, Place, Store, check_size};
use foldhash::fast::RandomState;
use foyer::{
    BlockEngineConfig, DeviceBuilder as _, FsDeviceBuilder, HybridCache, HybridCacheBuilder, PsyncIoEngineConfig,
    RecoverMode, S3FifoConfig,
};
use tokio::runtime::{Builder, Runtime};

use crate::version;

const NAME: &str = "foyer, hybrid";

/// The part of the cap that is memory if the size of a tier isn't given.
const MEMORY_PART: u64 = 8;

/// A block is this part of the cap, and at most this large.
const BLOCK_PART: u64 = 16;
const BLOCK_BYTES_MAX: u64 = 16 << 20;
/// Whatever the size of values, the cap holds at least so many blocks.
const BLOCKS_MIN: u64 = 4;
const PAGE_BYTES: u64 = 4 << 10;

/// The largest size of an entry on the disk beside its value: header, lengths, the block's index.
const HEAD_BYTES: u64 = 8 << 10;

/// foyer in memory and on the disk.
pub const HYBRID: Peer = Peer {
    name: NAME,
    kind: Kind::Other,
    look: || Ok(version::of_crate("foyer")),
    open: |place| Ok(Box::new(Hybrid::create(place)?)),
    attach: None,
};

type Cache = HybridCache<Vec<u8>, Vec<u8>, RandomState>;

struct Hybrid {
    cache: Cache,
    runtime: Runtime,
    directory: PathBuf,
    value_bytes_max: u64,
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(failure: foyer::Error) -> Error {
    Error::Store { store: NAME, what: failure.to_string() }
}

fn block_bytes(place: &Place<'_>) -> u64 {
    let roomy = (2 * (place.value_bytes + KEY_BYTES) as u64 + HEAD_BYTES).min(place.cap_bytes / BLOCKS_MIN);
    (place.cap_bytes / BLOCK_PART).min(BLOCK_BYTES_MAX).max(roomy).next_multiple_of(PAGE_BYTES)
}

impl Hybrid {
    fn create(place: &Place<'_>) -> Result<Self> {
        let runtime = Builder::new_multi_thread().enable_all().build().map_err(Error::io("start foyer's runtime"))?;
        let memory_bytes = if place.tier_bytes > 0 { place.tier_bytes } else { place.cap_bytes / MEMORY_PART };
        let block_bytes = block_bytes(place);
        let device =
            FsDeviceBuilder::new(place.directory).with_capacity(place.cap_bytes as usize).build().map_err(failed)?;
        let engine = BlockEngineConfig::new(device)
            .with_block_size(block_bytes as usize)
            .with_submit_queue_size_threshold(place.cap_bytes as usize);
        let building = HybridCacheBuilder::new()
            .with_name(NAME)
            .with_flush_on_close(false)
            .memory(memory_bytes as usize)
            .with_eviction_config(S3FifoConfig::default())
            .with_hash_builder(RandomState::default())
            .with_weighter(|key: &Vec<u8>, value: &Vec<u8>| key.len() + value.len())
            .storage()
            .with_io_engine_config(PsyncIoEngineConfig::new())
            .with_engine_config(engine)
            .with_recover_mode(RecoverMode::None)
            .with_spawner(runtime.handle().clone().into())
            .build();
        let cache = runtime.block_on(building).map_err(failed)?;
        let value_bytes_max = block_bytes.saturating_sub(HEAD_BYTES);
        Ok(Self { cache, runtime, directory: place.directory.to_owned(), value_bytes_max })
    }
}

impl Drop for Hybrid {
    fn drop(&mut self) {
        // Its tasks hold the files until then. Entries that could not be written are not needed any more.
        let _ = self.runtime.block_on(self.cache.close());
    }
}

impl Store for Hybrid {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&self) -> &Self {
        self
    }

    fn settle(&self) -> Result<()> {
        self.runtime.block_on(self.cache.storage().wait());
        Ok(())
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        // Both parts hold entries. Entries on their way from one to the other are in memory, too, but foyer doesn't
        // report them.
        Ok(Some(footprint::below(&self.directory)?.bytes + self.cache.memory().usage() as u64))
    }
}

impl Handle for &Hybrid {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let entry = match self.cache.get(key).try_unwrap() {
            Ok(entry) => Some(entry),
            Err(waiting) => self.runtime.block_on(waiting).map_err(failed)?,
        };
        Ok(entry.map(|entry| consumer(&entry)).is_some())
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(NAME, value, self.value_bytes_max)?;
        self.cache.insert(key.to_vec(), value.to_vec());
        Ok(())
    }

    /// Doesn't look up whether there was an entry.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.cache.remove(key);
        Ok(true)
    }
}
