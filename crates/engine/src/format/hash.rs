//! The hashes that are part of the format.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::layout::Layout;
use super::record::Header;

/// The secret of a volume: keys can't be made to collide, nor headers forged, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) hash_seed: u64,
    pub(crate) mac_key: [u64; 2],
}

/// Where a key may live, and how its slot is recognised. All of it is taken from one 64-bit hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) hash: u64,
    pub(crate) stripe: usize,
    /// What picks its two buckets ([`super::buckets::Buckets::of`]), which may be one and the same.
    pub(crate) picks: [u32; 2],
    /// 19 bits.
    pub(crate) fingerprint: u64,
    /// 16 bits more, by which a ghost knows its key.
    pub(crate) ghost_hash: u64,
}

/// XXH3-64 of the key, seeded with the volume's secret (xxHash specification 0.2.0).
#[inline]
pub(crate) fn key_hash(secret: &Secret, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, secret.hash_seed)
}

/// Splits a key's hash into stripe, picks and fingerprint.
#[inline]
pub(crate) fn place(layout: &Layout, hash: u64) -> Place {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = hash.wrapping_mul(GOLDEN);
    Place {
        hash,
        stripe: (((hash >> 48) * layout.stripes) >> 16) as usize,
        picks: [hash as u32, (mixed >> 32) as u32],
        fingerprint: (hash >> 32) & 0x7_ffff,
        ghost_hash: (mixed >> 12) & 0xffff,
    }
}

/// The low 32 bits of XXH3-64 over an entry's key, metadata and value, which lie together in this order.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// The low 32 bits of SipHash-1-3 over what makes a header genuine: where it is, what it says that never changes, whose
/// key it holds.
pub(crate) fn header_mac(secret: &Secret, position: u64, hash: u64, header: &Header) -> u32 {
    let lengths = header.lengths;
    let flags = u64::from(header.flags.0);
    let words = [
        position,
        (lengths.key << 16) | lengths.metadata | (flags << 32),
        lengths.value,
        hash,
        header.serial,
        header.created_ms,
    ];
    let mut state = SipHasher13::new_with_keys(secret.mac_key[0], secret.mac_key[1]);
    for word in words {
        state.write_u64(word.to_le());
    }
    state.finish() as u32
}

/// The hash of a tag, or of a prefix that is purged: XXH3-64, seeded with the complement of the keys' seed, so that it says
/// nothing about a key of the same bytes.
pub(crate) fn purge_hash(secret: &Secret, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, !secret.hash_seed)
}
