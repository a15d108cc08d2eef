//! The origin of a tier's copy, which lies at the end of its metadata, behind the tags.
//!
//! ```text
//! 0        8         16      20        24     25
//! +--------+---------+-------+---------+------+
//! | slot   | offset  | epoch | retired | at   |
//! +--------+---------+-------+---------+------+
//! ```
//!
//! Nothing in it is followed. The key says where its slots are. The origin says which of the sixteen slots it was,
//! and what that slot and its ring must be like.

use super::slot::Slot;

/// The length of an origin.
pub(crate) const ORIGIN_BYTES: usize = 25;

/// The entry that a copy was made from, as it was then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The slot that named it, without its frequency.
    pub(crate) slot: Slot,
    /// Its virtual offset in its ring.
    pub(crate) offset: u64,
    /// Its purge epoch.
    pub(crate) epoch: u32,
    /// Purges up to this epoch may have been forgotten.
    pub(crate) retired: u32,
    /// Which of the key's sixteen slots named it: eight in its first bucket, eight in its second.
    pub(crate) at: u8,
}

impl Origin {
    pub(crate) fn bytes(&self) -> [u8; ORIGIN_BYTES] {
        let mut bytes = [0; ORIGIN_BYTES];
        bytes[..8].copy_from_slice(&self.slot.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.retired.to_le_bytes());
        bytes[24] = self.at;
        bytes
    }

    /// The origin at the end of `metadata`, and the metadata before it.
    #[inline]
    pub(crate) fn read(metadata: &[u8]) -> Option<(Self, &[u8])> {
        let (rest, bytes) = metadata.split_last_chunk::<ORIGIN_BYTES>()?;
        let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, byte| (word << 8) | u64::from(*byte));
        let epochs = word(16);
        let origin = Self {
            slot: Slot(word(0)),
            offset: word(8),
            epoch: epochs as u32,
            retired: (epochs >> 32) as u32,
            at: bytes[24],
        };
        Some((origin, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_back_from_behind_the_metadata() {
        let origin = Origin { slot: Slot(u64::MAX - 1), offset: 1 << 61, epoch: 7, retired: u32::MAX, at: 15 };
        let metadata = [b"text/html", &origin.bytes()[..]].concat();
        assert_eq!(Origin::read(&metadata), Some((origin, &b"text/html"[..])));
        assert_eq!(Origin::read(&metadata[..ORIGIN_BYTES - 1]), None);
    }
}
