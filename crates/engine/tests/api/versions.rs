//! Files that were a volume, or will be: of a newer program, of a machine of the other byte order, truncated, damaged
//! at the front, of another boot. Each gets its own error, and none is written to unless it can be used.

use std::io::Read;
use std::path::Path;

use eyewall::{Error, Options, Unclean};

use crate::common::fast_folder;

fn volume(path: &Path) -> Vec<u8> {
    let cache = Options::new().size(512 << 10).open(path).unwrap();
    cache.put("key", "value").unwrap();
    drop(cache);
    std::fs::read(path).unwrap()
}

/// The error of opening a volume whose bytes were changed; it must leave them so.
fn answer(change: impl FnOnce(&mut Vec<u8>)) -> Error {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut bytes = volume(&path);
    change(&mut bytes);
    std::fs::write(&path, &bytes).unwrap();
    let error = Options::new().open(&path).unwrap_err();
    let reading = Options::new().read_only(true).open(&path).unwrap_err();
    assert_eq!(error.to_string(), reading.to_string());
    assert!(std::fs::read(&path).unwrap() == bytes, "left as it is");
    error
}

#[test]
fn another_format_version_is_named() {
    for version in [0_u32, 1, 2, 3, 4, 7, u32::MAX] {
        let error = answer(|bytes| bytes[8..12].copy_from_slice(&version.to_le_bytes()));
        assert!(matches!(error, Error::Version { found, supported: 5, .. } if found == version), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(&format!("has format version {version}, this program knows version 5")), "{text}");
    }
}

#[test]
fn the_other_byte_order_is_named_whatever_the_version() {
    for version in [1_u32, 5] {
        let error = answer(|bytes| {
            bytes[8..12].copy_from_slice(&version.to_be_bytes());
            bytes[12..16].reverse();
        });
        assert!(matches!(error, Error::ByteOrder { .. }), "{error:?}");
        assert!(error.to_string().contains("of another byte order; remove it to start empty"), "{error}");
    }
}

#[test]
fn a_truncated_file_is_corrupt_or_foreign() {
    for length in [1, 7] {
        let error = answer(|bytes| bytes.truncate(length));
        assert!(matches!(error, Error::Foreign { .. }), "{length}: {error:?}");
    }
    for (length, what) in [(0, "it is empty"), (8, "it ends within"), (100, "it ends within"), (151, "it ends within")]
    {
        let error = answer(|bytes| bytes.truncate(length));
        assert!(error.to_string().contains(what), "{length}: {error}");
    }
    for length in [152, 4095, 4096, 100_000, (512 << 10) - 1] {
        let error = answer(|bytes| bytes.truncate(length));
        assert!(error.to_string().contains("is damaged: it is shorter than its superblock says"), "{length}: {error}");
    }
}

#[test]
fn a_damaged_superblock_is_corrupt() {
    for at in [16, 24, 40, 96, 127, 144, 151] {
        let error = answer(|bytes| bytes[at] ^= 1);
        assert!(matches!(error, Error::Corrupt { .. }), "{at}: {error:?}");
        assert!(error.to_string().contains("Remove it to start empty"), "{error}");
    }
}

#[test]
fn a_longer_file_is_used_as_before() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let mut bytes = volume(&path);
    bytes.extend_from_slice(&[7; 10_000]);
    // In place, so that it stays the same file.
    std::fs::write(&path, &bytes).unwrap();
    let cache = Options::new().open(&path).unwrap();
    assert_eq!((cache.size(), cache.contains("key").unwrap()), (512 << 10, true));
}

/// Where the superblock keeps the boot of the last attachment, and whether the volume was left in order.
const BOOT_AT: usize = 208;
const CLEAN_AT: usize = 192;

#[test]
fn after_a_boot_an_orderly_volume_is_kept_and_another_as_asked() {
    for (clean, unclean, kept) in
        [(true, Unclean::Clear, true), (false, Unclean::Clear, false), (false, Unclean::Keep, true)]
    {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let mut bytes = volume(&path);
        bytes[BOOT_AT] ^= 1;
        bytes[CLEAN_AT] = u8::from(clean);
        std::fs::write(&path, &bytes).unwrap();
        let cache = Options::new().unclean(unclean).open(&path).unwrap();
        assert_eq!(cache.contains("key").unwrap(), kept);
        assert_eq!(cache.stats().unwrap().unclean_drops, u64::from(!kept));
        cache.put("key", "again").unwrap();
        assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    }
}

/// Where the superblock keeps the number of the attachment and its tag.
const NUMBER_AT: usize = 200;

#[test]
fn a_volume_that_cannot_tell_its_attachments_apart_is_emptied() {
    for at in [NUMBER_AT, NUMBER_AT + 2] {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let mut bytes = volume(&path);
        bytes[at] ^= 2;
        std::fs::write(&path, &bytes).unwrap();
        let cache = Options::new().open(&path).unwrap();
        assert!(!cache.contains("key").unwrap());
        assert_eq!(cache.stats().unwrap().unclean_drops, 1);
        drop(cache);
        let cache = Options::new().open(&path).unwrap();
        cache.put("key", "again").unwrap();
        assert_eq!(cache.stats().unwrap().unclean_drops, 1, "mended");
    }
}

/// Volumes of all former formats.
const FIXTURES: [(u32, &[u8]); 4] = [
    (1, include_bytes!("../../../../fixtures/format-1.volume.gz")),
    (2, include_bytes!("../../../../fixtures/format-2.volume.gz")),
    (3, include_bytes!("../../../../fixtures/format-3.volume.gz")),
    (4, include_bytes!("../../../../fixtures/format-4.volume.gz")),
];

#[test]
fn a_volume_of_an_older_format_is_refused_and_left_as_it_is() {
    for (version, packed) in FIXTURES {
        let folder = fast_folder();
        let path = folder.path().join("volume");
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        std::fs::write(&path, &bytes).unwrap();
        let error = Options::new().open(&path).unwrap_err();
        assert!(matches!(error, Error::Version { found, .. } if found == version), "{error:?}");
        assert!(
            error.to_string().contains("`eyewall import` of this one; or remove the file to start empty"),
            "{error}"
        );
        assert!(std::fs::read(&path).unwrap() == bytes, "left as it is");
    }
}
