//! Tags, which lie at the end of an entry's metadata, behind the caller's part.
//!
//! ```text
//! +-----------------+-------------------+----------------------------+---------+-----------+
//! | the caller's    | n x hash, 64 bits | n x (length 8, the bytes)  | n, 8    | bytes, 16 |
//! +-----------------+-------------------+----------------------------+---------+-----------+
//!                   |<------------------- bytes of the tags' part -------------------------->|
//! ```
//!
//! The part is read from its end. An inconsistent one counts as no tags, and as purged.

use super::hash::{Secret, purge_hash};

/// The most tags of one entry.
pub(crate) const TAGS_MAX: usize = 32;
/// The length of a tag has 8 bits.
pub(crate) const TAG_BYTES_MAX: usize = 255;

const HASH_BYTES: usize = 8;
const END_BYTES: usize = 3;

/// Appends the part for `tags`.
pub(crate) fn write(secret: &Secret, tags: &[&str], to: &mut Vec<u8>) {
    let start = to.len();
    for tag in tags {
        to.extend_from_slice(&purge_hash(secret, tag.as_bytes()).to_le_bytes());
    }
    for tag in tags {
        to.push(tag.len() as u8);
        to.extend_from_slice(tag.as_bytes());
    }
    to.push(tags.len() as u8);
    let bytes = to.len() - start + 2;
    to.extend_from_slice(&(bytes as u16).to_le_bytes());
}

/// How many bytes [`write`] appends.
pub(crate) fn bytes(tags: &[&str]) -> usize {
    tags.iter().map(|tag| HASH_BYTES + 1 + tag.len()).sum::<usize>() + END_BYTES
}

/// The part for tags at the end of `metadata`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tags<'a> {
    /// The start of the part, which is the length of the caller's metadata.
    pub(crate) start: usize,
    hashes: &'a [u8],
    names: &'a [u8],
}

impl<'a> Tags<'a> {
    pub(crate) fn read(metadata: &'a [u8]) -> Option<Self> {
        let (rest, bytes) = metadata.split_last_chunk::<2>()?;
        let start = metadata.len().checked_sub(usize::from(u16::from_le_bytes(*bytes)))?;
        let (count, part) = rest.get(start..)?.split_last()?;
        let (hashes, names) = part.split_at_checked(usize::from(*count) * HASH_BYTES)?;
        Some(Self { start, hashes, names })
    }

    #[inline]
    pub(crate) fn hashes(self) -> impl Iterator<Item = u64> + use<'a> {
        self.hashes.chunks_exact(HASH_BYTES).map(|hash| {
            let mut bytes = [0; HASH_BYTES];
            bytes.copy_from_slice(hash);
            u64::from_le_bytes(bytes)
        })
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> + use<'a> {
        let mut left = self.names;
        std::iter::from_fn(move || {
            let (length, rest) = left.split_first()?;
            let (name, rest) = rest.split_at_checked(usize::from(*length))?;
            left = rest;
            std::str::from_utf8(name).ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: Secret = Secret { hash_seed: 5, mac_key: [0; 2] };

    #[test]
    fn tags_are_read_back_after_the_callers_metadata() {
        let tags = ["product:7", "", "shop"];
        let mut metadata = b"text/html".to_vec();
        write(&SECRET, &tags, &mut metadata);
        assert_eq!(metadata.len(), 9 + bytes(&tags));
        let read = Tags::read(&metadata).unwrap();
        assert_eq!((read.start, read.names().collect::<Vec<_>>()), (9, tags.to_vec()));
        let hashes: Vec<_> = tags.iter().map(|tag| purge_hash(&SECRET, tag.as_bytes())).collect();
        assert_eq!(read.hashes().collect::<Vec<_>>(), hashes);
    }

    proptest! {
        #[test]
        fn arbitrary_metadata_is_read_without_a_panic(metadata: Vec<u8>) {
            if let Some(tags) = Tags::read(&metadata) {
                prop_assert!(tags.start <= metadata.len());
                prop_assert!(tags.hashes().count() + tags.names().count() <= metadata.len());
            }
        }
    }
}
