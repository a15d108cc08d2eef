//! Where everything lies in a volume's file, read from its bytes as `docs/format.md` draws them, for tests that
//! damage it on purpose.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

/// Words of a stripe: its rings' heads and tails.
pub const SMALL_HEAD: u64 = 128;
pub const SMALL_TAIL: u64 = 136;
pub const MAIN_HEAD: u64 = 144;
pub const MAIN_TAIL: u64 = 152;
/// How many buckets the stripe's index has, in the low half.
pub const BUCKETS: u64 = 72;
/// The first bucket that power loss drops.
pub const SURE: u64 = 120;
/// The complement of the word that counts buckets.
pub const BUCKETS_CHECK: u64 = 88;
/// How many entries steps have moved to their other bucket.
pub const MOVES: u64 = 456;

const STRIPE_BYTES: u64 = 512;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The shape of a volume. All offsets count from the start of the file.
#[derive(Debug, Clone, Copy)]
pub struct Anatomy {
    pub size: u64,
    pub stripes: u64,
    /// The least number of buckets in a stripe.
    pub buckets: u64,
    pub small: u64,
    pub main: u64,
    pub processes_at: u64,
    pub threads_at: u64,
    pub stripes_at: u64,
    pub claims_at: u64,
    pub tags_at: u64,
    /// The last stripe's buckets, which are the last bytes of the file.
    pub index_at: u64,
    pub data_at: u64,
}

impl Anatomy {
    pub fn of(file: &[u8]) -> Self {
        let [size, stripes, buckets, small, main, processes, threads, claims] =
            std::array::from_fn(|field| word(file, 16 + 8 * field as u64));
        let processes_at = 4096;
        let threads_at = processes_at + processes * 64;
        let stripes_at = threads_at + threads * 192;
        let claims_at = stripes_at + stripes * STRIPE_BYTES;
        let tags_at = claims_at + stripes * claims * 64;
        let tag_buckets = word(file, 128);
        let tags_end = tags_at + (tag_buckets * 4).next_multiple_of(64) + tag_buckets * 64;
        let (stripe_share, entry) = (size / stripes, (word(file, 88) + 44).next_multiple_of(8) + 14);
        let lines = (stripe_share / entry * 4).div_ceil(31).min(stripe_share / 128 / 64).max(1);
        let tags_end = tags_end + stripes * lines * 64;
        let rounded = tags_end.next_multiple_of(4096);
        let fits = rounded + stripes * (small + main) <= size;
        let data_at = if fits { rounded } else { tags_end };
        let data_end = data_at + stripes * (small + main);
        let count = word(file, stripes_at + (stripes - 1) * STRIPE_BYTES + BUCKETS) & 0xffff_ffff;
        let index_at = data_end - count.clamp(buckets, small * 3 / 256) * 64;
        Self {
            size,
            stripes,
            buckets,
            small,
            main,
            processes_at,
            threads_at,
            stripes_at,
            claims_at,
            tags_at,
            index_at,
            data_at,
        }
    }

    /// The offset of one of a stripe's words.
    pub fn stripe_word(&self, stripe: u64, word: u64) -> u64 {
        self.stripes_at + stripe * STRIPE_BYTES + word
    }

    /// The offset of a stripe's first data byte.
    pub fn data_byte(&self, stripe: u64) -> u64 {
        self.data_at + stripe * (self.main + self.small)
    }

    /// The offset of the byte at a virtual offset of a stripe's small ring.
    pub fn small_byte(&self, stripe: u64, at: u64) -> u64 {
        self.data_byte(stripe) + self.main + at % self.small
    }

    /// The same in its main ring.
    pub fn main_byte(&self, stripe: u64, at: u64) -> u64 {
        self.data_byte(stripe) + at % self.main
    }

    /// The offsets of all slots in a stripe's index.
    pub fn slots(&self, file: &[u8], stripe: u64) -> Vec<u64> {
        let count = word(file, self.stripe_word(stripe, BUCKETS)) & 0xffff_ffff;
        let count = count.clamp(self.buckets, self.small * 3 / 256);
        let bucket_at = |bucket: u64| self.data_byte(stripe + 1) - (bucket + 1) * 64;
        (0..count).flat_map(|bucket| (0..8).map(move |slot| bucket_at(bucket) + slot * 8)).collect()
    }
}

/// The word at an offset.
pub fn word(file: &[u8], at: u64) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&file[at as usize..at as usize + 8]);
    u64::from_le_bytes(word)
}

/// Puts `value` at an offset.
pub fn set_word(file: &mut [u8], at: u64, value: u64) {
    file[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
}

/// Gives an empty volume a fixed secret, so that a seed always stands for the same bytes.
pub fn fix_secret(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    for (at, secret) in [(96, 1), (104, 2), (112, 3)] {
        set_word(&mut bytes, at, secret);
    }
    let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..144]);
    set_word(&mut bytes, 144, sum);
    File::options().write(true).open(path).unwrap().write_all_at(&bytes, 0).unwrap();
}
