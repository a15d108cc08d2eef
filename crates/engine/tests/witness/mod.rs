//! Values that bear witness: each carries a checksum over itself and its key, so that a wrong, torn or foreign
//! byte is seen wherever it is read.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The shortest value: checksum and version.
pub const BYTES_MIN: usize = 16;

/// Version `version` of `key`'s value.
pub fn value(key: &[u8], version: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random::new(version ^ xxh3_64(key));
    let mut value = vec![0; bytes.max(BYTES_MIN)];
    for chunk in value[16..].chunks_mut(8) {
        let word = random.word().to_le_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
    value[8..16].copy_from_slice(&version.to_le_bytes());
    let sum = xxh3_64_with_seed(&value[8..], xxh3_64(key));
    value[..8].copy_from_slice(&sum.to_le_bytes());
    value
}

/// The version of `key`'s value, if it is one.
pub fn version(key: &[u8], value: &[u8]) -> Option<u64> {
    let (sum, rest) = value.split_first_chunk::<8>()?;
    let version = rest.first_chunk::<8>()?;
    (u64::from_le_bytes(*sum) == xxh3_64_with_seed(rest, xxh3_64(key))).then(|| u64::from_le_bytes(*version))
}

/// The version of `key`'s value.
///
/// # Panics
/// If `value` isn't one.
#[track_caller]
pub fn check(key: &[u8], value: &[u8]) -> u64 {
    match version(key, value) {
        Some(version) => version,
        None => panic!("wrong bytes for {}: {} of them", String::from_utf8_lossy(key), value.len()),
    }
}

/// A sequence that a seed determines (SplitMix64).
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (u128::from(self.word()) * u128::from(limit) >> 64) as u64
    }
}
