//! The hashes that are part of the format.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::layout::Layout;
use super::record::Header;

/// The secret of a volume. Without reading it, nobody can make keys collide or forge headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Secret {
    pub(crate) hash_seed: u64,
    pub(crate) mac_key: [u64; 2],
}

/// Where a key may lie, and how its slot is recognised. All of it comes from one 64-bit hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) hash: u64,
    pub(crate) stripe: usize,
    /// The picks of its two buckets ([`super::buckets::Buckets::of`]), which may be the same bucket.
    pub(crate) picks: [u32; 2],
    /// 19 bits.
    pub(crate) fingerprint: u64,
    /// 16 more bits, by which a ghost recognises its key.
    pub(crate) ghost_hash: u64,
}

impl Place {
    /// 12 of those bits, by which a cell of the sketch recognises its key.
    #[inline]
    pub(crate) fn sketch_tag(&self) -> u16 {
        (self.ghost_hash >> 4) as u16
    }
}

/// XXH3-64 of the key, seeded with the volume's secret (xxHash specification 0.2.0).
#[inline]
pub(crate) fn key_hash(secret: &Secret, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, secret.hash_seed)
}

/// Splits a key's hash into stripe, picks and fingerprint.
#[inline]
pub(crate) fn place(layout: &Layout, hash: u64) -> Place {
    Place {
        hash,
        stripe: stripe(layout, hash),
        picks: [pick(hash, 0), pick(hash, 1)],
        fingerprint: fingerprint(hash),
        ghost_hash: (mixed(hash) >> 12) & 0xffff,
    }
}

#[inline]
fn mixed(hash: u64) -> u64 {
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    hash.wrapping_mul(GOLDEN)
}

/// [`Place::stripe`].
#[inline]
pub(crate) fn stripe(layout: &Layout, hash: u64) -> usize {
    (((hash >> 48) * layout.stripes) >> 16) as usize
}

/// One of [`Place::picks`].
#[inline]
pub(crate) fn pick(hash: u64, which: usize) -> u32 {
    if which == 0 { hash as u32 } else { (mixed(hash) >> 32) as u32 }
}

/// [`Place::fingerprint`].
#[inline]
pub(crate) fn fingerprint(hash: u64) -> u64 {
    (hash >> 32) & 0x7_ffff
}

/// The low 32 bits of XXH3-64 over an entry's key, metadata and value, which lie next to each other in this order.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    xxh3_64(bytes) as u32
}

/// The low 32 bits of SipHash-1-3 over what makes a header genuine: its position, its fields that never change, and
/// the hash of its key.
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

/// The hash of a tag, or of a purged prefix: XXH3-64, seeded with the complement of the keys' seed. So it reveals
/// nothing about a key of the same bytes.
pub(crate) fn purge_hash(secret: &Secret, bytes: &[u8]) -> u64 {
    xxh3_64_with_seed(bytes, !secret.hash_seed)
}
