//! The format of an export's stream.
//!
//! ```text
//! header   magic 8 | version 32, zero 32 | wall clock 64 | sum 64
//! entry    head 40 | tags | key | metadata | value | sum 64
//! trailer  2, zero 56 | entries 64 | sum 64
//!
//! 0      1       2        4          6      8       16    24           32            40
//! +------+-------+--------+----------+------+-------+-----+------------+-------------+
//! | 1    | flags | key 16 | metadata | tags | value | age | fresh left | usable left |
//! +------+-------+--------+----------+------+-------+-----+------------+-------------+
//! ```
//!
//! All numbers are little-endian. A sum is the XXH3-64 of everything before it in its part. The trailer's sum covers
//! the sums of all parts before it, and the number of entries.

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

pub(super) const MAGIC: [u8; 8] = *b"EYEXPORT";
pub(super) const VERSION: u32 = 1;
pub(super) const HEADER_BYTES: usize = 32;
pub(super) const ENTRY_HEAD_BYTES: usize = 40;
/// The trailer without its first byte.
pub(super) const TRAILER_REST_BYTES: usize = 23;
pub(super) const SUM_BYTES: usize = 8;
pub(super) const ENTRY: u8 = 1;
pub(super) const TRAILER: u8 = 2;
/// Flag: the value is a reason code.
pub(super) const NEGATIVE: u8 = 1;
/// Stands for a time without end.
const EVER: u64 = u64::MAX;

/// The fixed fields at the start of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryHead {
    pub(super) flags: u8,
    pub(super) key: u16,
    pub(super) metadata: u16,
    pub(super) tags: u16,
    pub(super) value: u64,
    /// This and the next two fields are in milliseconds, as of the header's clock.
    pub(super) age: u64,
    pub(super) fresh_left: Option<u64>,
    pub(super) usable_left: Option<u64>,
}

impl EntryHead {
    pub(super) fn bytes(&self) -> [u8; ENTRY_HEAD_BYTES] {
        let mut bytes = [0; ENTRY_HEAD_BYTES];
        (bytes[0], bytes[1]) = (ENTRY, self.flags);
        bytes[2..4].copy_from_slice(&self.key.to_le_bytes());
        bytes[4..6].copy_from_slice(&self.metadata.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.tags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.age.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.fresh_left.unwrap_or(EVER).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.usable_left.unwrap_or(EVER).to_le_bytes());
        bytes
    }

    /// `None` if there are flags that this version doesn't know.
    pub(super) fn read(bytes: &[u8; ENTRY_HEAD_BYTES]) -> Option<Self> {
        let left = |at| Some(word(bytes, at)).filter(|left| *left != EVER);
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        (bytes[1] & !NEGATIVE == 0).then(|| Self {
            flags: bytes[1],
            key: half(2),
            metadata: half(4),
            tags: half(6),
            value: word(bytes, 8),
            age: word(bytes, 16),
            fresh_left: left(24),
            usable_left: left(32),
        })
    }
}

/// The header, with the wall clock in milliseconds since 1970.
pub(super) fn header(wall_ms: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&wall_ms.to_le_bytes());
    let sum = xxh3_64(&bytes[..24]);
    bytes[24..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// The 64 bits at an offset that lies inside of `bytes`.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// What the trailer checks: the sums of all parts, and the number of entries.
pub(super) struct Whole {
    sums: Xxh3,
    pub(super) entries: u64,
}

impl Whole {
    pub(super) fn new(header_sum: u64) -> Self {
        let mut sums = Xxh3::new();
        sums.update(&header_sum.to_le_bytes());
        Self { sums, entries: 0 }
    }

    pub(super) fn add(&mut self, entry_sum: u64) {
        self.sums.update(&entry_sum.to_le_bytes());
        self.entries += 1;
    }

    /// The trailer without its first byte.
    pub(super) fn trailer_rest(&self) -> [u8; TRAILER_REST_BYTES] {
        let mut sums = self.sums.clone();
        sums.update(&self.entries.to_le_bytes());
        let mut bytes = [0; TRAILER_REST_BYTES];
        bytes[7..15].copy_from_slice(&self.entries.to_le_bytes());
        bytes[15..].copy_from_slice(&sums.digest().to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_head_means_what_was_written(bytes: [u8; ENTRY_HEAD_BYTES]) {
            if let Some(head) = EntryHead::read(&bytes) {
                prop_assert_eq!(&head.bytes()[1..], &bytes[1..]);
                prop_assert_eq!(EntryHead::read(&head.bytes()), Some(head));
            } else {
                prop_assert!(bytes[1] > NEGATIVE);
            }
        }
    }
}
