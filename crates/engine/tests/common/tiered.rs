//! A volume and its tier, each in a folder of its own.

use std::path::PathBuf;

use eyewall::{Cache, Options, TierStats, seams};
use tempfile::TempDir;

use super::fast_folder;

/// The folders of a volume and its tier.
pub struct Tiered {
    pub volume: TempDir,
    pub tier: TempDir,
}

impl Tiered {
    pub fn new() -> Self {
        // The machine may be short of memory; `tier_pressure.rs` tests what the tier does then.
        seams::ignore_waiting();
        Self { volume: fast_folder(), tier: fast_folder() }
    }

    pub fn path(&self) -> PathBuf {
        self.volume.path().join("volume")
    }

    pub fn options(&self, size: u64, tier: u64) -> Options {
        Options::new().size(size).tier(tier).tier_folder(self.tier.path())
    }

    /// A volume of 4 MiB and a tier of 1 MiB.
    pub fn open(&self) -> Cache {
        self.options(4 << 20, 1 << 20).open(self.path()).unwrap()
    }

    /// The names of the files in the tier's folder.
    pub fn left(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.tier.path()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub fn tier_stats(cache: &Cache) -> TierStats {
    cache.stats().unwrap().tier.unwrap()
}

/// Gets `key` until it comes from the tier, and returns the value.
pub fn warm(cache: &Cache, key: &str) -> Vec<u8> {
    for _ in 0..10 {
        let before = tier_stats(cache).hits;
        let found = cache.get(key).unwrap().map(|hit| hit.to_vec());
        if tier_stats(cache).hits > before {
            return found.unwrap();
        }
    }
    panic!("{key} doesn't get into the tier: {:?}", cache.stats());
}
