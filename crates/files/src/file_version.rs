//! Identifies the version of a file.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderValue;
use xxhash_rust::xxh3::xxh3_64;

/// How long after a change another change may leave the file's time unchanged: file times advance by ticks of the
/// system's timer (10 ms at most), plus a margin.
const TICK: Duration = Duration::from_millis(50);

const SECOND_NS: i64 = 1_000_000_000;

/// Length of a stored version.
pub(crate) const FILE_VERSION_BYTES: usize = 40;

/// Device, inode, size and both times of a file. Any change of its bytes changes one of them, except two changes
/// within one tick ([`FileVersion::may_still_change`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) bytes: u64,
    pub(crate) modified_ns: i64,
    pub(crate) changed_ns: i64,
}

impl FileVersion {
    pub(crate) fn of(file: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(SECOND_NS).saturating_add(rest);
        Self {
            device: file.dev(),
            inode: file.ino(),
            bytes: file.size(),
            modified_ns: nanoseconds(file.mtime(), file.mtime_nsec()),
            changed_ns: nanoseconds(file.ctime(), file.ctime_nsec()),
        }
    }

    /// The five numbers in order, little-endian: part of the format of stored fragments.
    pub(crate) fn to_bytes(self) -> [u8; FILE_VERSION_BYTES] {
        let words = [self.device, self.inode, self.bytes, self.modified_ns as u64, self.changed_ns as u64];
        let mut bytes = [0; FILE_VERSION_BYTES];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; FILE_VERSION_BYTES]) -> Self {
        let mut words = [0; FILE_VERSION_BYTES / 8];
        let (chunks, _) = bytes.as_chunks::<8>();
        for (word, chunk) in words.iter_mut().zip(chunks) {
            *word = u64::from_le_bytes(*chunk);
        }
        let [device, inode, bytes, modified, changed] = words;
        Self { device, inode, bytes, modified_ns: modified as i64, changed_ns: changed as i64 }
    }

    /// Whether the last change is so recent that another one could give the same version.
    pub(crate) fn may_still_change(&self, now: SystemTime) -> bool {
        let settled = now
            .checked_sub(TICK)
            .and_then(|settled| settled.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |settled| settled.as_nanos() as i64);
        self.modified_ns.max(self.changed_ns) > settled
    }

    /// Whether the file is older than another. Compressors give their output the time of the input, and some
    /// cut it to whole seconds: such a time counts as any time within its second.
    pub(crate) fn is_older_than(&self, other: &Self) -> bool {
        let is_cut = self.modified_ns % SECOND_NS == 0 && self.modified_ns / SECOND_NS == other.modified_ns / SECOND_NS;
        self.modified_ns < other.modified_ns && !is_cut
    }

    /// A strong validator: other bytes have another tag. It is a hash, so that clients don't learn inode
    /// numbers. The suffix distinguishes the codings of one address.
    pub(crate) fn etag(&self, suffix: &str) -> Option<HeaderValue> {
        HeaderValue::from_str(&format!("\"{:016x}{suffix}\"", xxh3_64(&self.to_bytes()))).ok()
    }

    pub(crate) fn last_modified(&self) -> Option<HeaderValue> {
        let modified = UNIX_EPOCH + Duration::from_secs(u64::try_from(self.modified_ns / SECOND_NS).ok()?);
        HeaderValue::from_str(&httpdate::fmt_http_date(modified)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_trusted_only_when_its_last_change_is_over() {
        let changed_ns = 1_000_000_000_000;
        let version = FileVersion { device: 1, inode: 2, bytes: 3, modified_ns: 4, changed_ns };
        let at = |milliseconds| UNIX_EPOCH + Duration::from_millis(milliseconds);
        assert!(version.may_still_change(at(1_000_000)));
        assert!(version.may_still_change(at(1_000_049)));
        assert!(!version.may_still_change(at(1_000_050)));
        assert!(version.may_still_change(at(0)), "a file from the future");
    }

    #[test]
    fn a_time_cut_to_seconds_is_as_old_as_the_full_time() {
        let modified = |modified_ns| FileVersion { device: 1, inode: 2, bytes: 3, modified_ns, changed_ns: 4 };
        let plain = modified(7_500_000_000);
        for (precompressed_ns, is_older) in [
            (7_500_000_000, false),
            (7_500_000_001, false),
            (7_499_999_999, true),
            (7_000_000_000, false),
            (6_000_000_000, true),
        ] {
            assert_eq!(modified(precompressed_ns).is_older_than(&plain), is_older, "{precompressed_ns}");
        }
    }
}
