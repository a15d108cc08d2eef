//! The stored form of a file: one fragment for most files, several for large ones.
//!
//! ```text
//! key        file: path                       the first fragment
//!            file: path NUL number            the others; the number in hexadecimal digits
//! metadata   0..40  version                     of the file when the bytes were read
//!            40..44 bytes of a fragment       little-endian; all but the last are so long
//! value      bytes of the file
//! ```
//! Paths have no NUL, so no two files share a key. The volume's shape determines the length of fragments. A resize changes it, and
//! older fragments then don't match any more.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::file_version::{FILE_VERSION_BYTES, FileVersion};

/// The prefix of the keys of all files.
pub(crate) const PREFIX: &[u8] = b"file:";
/// The maximum length. Longer fragments gain little: a look-up takes less time than copying a page.
const FRAGMENT_BYTES_MAX: u64 = 1 << 20;
/// A fragment takes at most this share of an entry, which also holds key and metadata. Keys have at most 64 KiB.
const BESIDE_BYTES: u64 = 8 << 10;

pub(crate) const METADATA_BYTES: usize = FILE_VERSION_BYTES + 4;

/// The length of fragments for the largest entry of a volume: a power of two.
pub(crate) fn fragment_bytes(entry_bytes_max: u64) -> u64 {
    let room = entry_bytes_max.saturating_sub(BESIDE_BYTES).clamp(1, FRAGMENT_BYTES_MAX);
    1 << room.ilog2()
}

/// The key of a file's first fragment.
pub(crate) fn first_key(path: &Path) -> Vec<u8> {
    [PREFIX, path.as_os_str().as_bytes()].concat()
}

/// The key of a fragment, from the key of the first one.
pub(crate) fn key(first: &[u8], number: u64) -> Vec<u8> {
    if number == 0 { first.to_vec() } else { [first, b"\0", format!("{number:x}").as_bytes()].concat() }
}

pub(crate) fn metadata(version: &FileVersion, fragment_bytes: u64) -> [u8; METADATA_BYTES] {
    let mut metadata = [0; METADATA_BYTES];
    metadata[..FILE_VERSION_BYTES].copy_from_slice(&version.to_bytes());
    metadata[FILE_VERSION_BYTES..].copy_from_slice(&(fragment_bytes as u32).to_le_bytes());
    metadata
}

/// Reads a fragment's metadata: the stamp of its file, and the length of fragments when it was stored.
pub(crate) fn of_metadata(metadata: &[u8]) -> Option<(FileVersion, u64)> {
    let metadata: &[u8; METADATA_BYTES] = metadata.try_into().ok()?;
    let (version, fragment_bytes) = metadata.split_first_chunk()?;
    let fragment_bytes = u32::from_le_bytes(fragment_bytes.try_into().ok()?);
    (fragment_bytes > 0).then(|| (FileVersion::from_bytes(*version), u64::from(fragment_bytes)))
}

/// How many fragments a file has: at least one.
pub(crate) fn count(bytes: u64, fragment_bytes: u64) -> u64 {
    bytes.div_ceil(fragment_bytes).max(1)
}

/// The bytes of a file in a fragment.
pub(crate) fn range(number: u64, bytes: u64, fragment_bytes: u64) -> Range<u64> {
    let start = number.saturating_mul(fragment_bytes).min(bytes);
    start..start.saturating_add(fragment_bytes).min(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_fit_into_an_entry_and_are_no_longer_than_a_mebibyte() {
        for (entry_bytes_max, bytes) in
            [(u64::MAX, 1 << 20), (2 << 20, 1 << 20), (1 << 20, 512 << 10), (64 << 10, 32 << 10), (100, 1), (0, 1)]
        {
            assert_eq!(fragment_bytes(entry_bytes_max), bytes, "{entry_bytes_max}");
        }
    }

    #[test]
    fn a_file_is_covered_by_its_fragments() {
        for (bytes, count) in [(0, 1), (1, 1), (100, 1), (101, 2), (200, 2), (1000, 10)] {
            assert_eq!(super::count(bytes, 100), count);
            let mut at = 0;
            for number in 0..count {
                let range = range(number, bytes, 100);
                assert_eq!(range.start, at);
                at = range.end;
            }
            assert_eq!(at, bytes);
        }
    }

    #[test]
    fn a_stored_fragment_names_its_file() {
        let version = FileVersion { device: 1, inode: 2, bytes: 3, modified_ns: -4, changed_ns: 5 };
        assert_eq!(of_metadata(&metadata(&version, 1 << 20)), Some((version, 1 << 20)));
        assert_eq!(of_metadata(&metadata(&version, 0)), None, "there are no such fragments");
        assert_eq!(of_metadata(b"other"), None);
        assert_eq!(key(&first_key(Path::new("/a b")), 0), b"file:/a b");
        assert_eq!(key(&first_key(Path::new("/a")), 31), b"file:/a\x001f");
    }
}
