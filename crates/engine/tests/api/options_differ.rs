//! A program starts with another size, hint or largest entry than its volume has. It gets an error, and the volume
//! stays as it is, byte for byte. Options that aren't set are taken from the volume.

use eyewall::{Error, Options};

use crate::common;
use crate::common::{disk_folder, fast_folder};

#[test]
fn a_differing_option_is_named_and_nothing_is_changed() {
    let _turn = common::turn();
    for folder in [fast_folder(), disk_folder()] {
        let path = folder.path().join("volume");
        let made = Options::new().size(1 << 20).entry_size_hint(500).entry_bytes_max(100_000);
        let cache = made.open(&path).unwrap();
        cache.put("key", "value").unwrap();
        drop(cache);
        let before = std::fs::read(&path).unwrap();
        let plain = Options::new();
        for (options, name, wanted, has) in [
            (plain.clone().size(2 << 20), "size", 2 << 20, 1 << 20),
            (plain.clone().size(512 << 10), "size", 512 << 10, 1 << 20),
            (plain.clone().size(1), "size", 0, 1 << 20),
            (plain.clone().entry_size_hint(501), "entry_size_hint", 501, 500),
            (plain.clone().entry_bytes_max(200_000), "entry_bytes_max", 200_000, 100_000),
            (made.clone().size(4 << 20).read_only(true), "size", 4 << 20, 1 << 20),
        ] {
            match options.open(&path).unwrap_err() {
                Error::OptionsDiffer { option, asked, found, .. } => {
                    assert_eq!((option, asked, found), (name, wanted, has));
                }
                other => panic!("{other:?}"),
            }
        }
        let error = plain.clone().size(2 << 20).open(&path).unwrap_err().to_string();
        assert!(error.contains("was created with size = 1048576, not 2097152; leave the option out"), "{error}");
        assert!(std::fs::read(&path).unwrap() == before, "not a byte was changed");
        // Sizes are rounded down to whole pages, at the next open as at the creation.
        for options in [plain, made.clone(), made.size((1 << 20) + 4095)] {
            assert_eq!(&*options.open(&path).unwrap().get("key").unwrap().unwrap(), b"value");
        }
    }
}

#[test]
fn options_that_differ_are_refused_while_others_use_the_volume() {
    let _turn = common::turn();
    let folder = fast_folder();
    let path = folder.path().join("volume");
    let cache = Options::new().size(1 << 20).open(&path).unwrap();
    cache.put("key", "value").unwrap();
    assert!(Options::new().size(2 << 20).open(&path).is_err());
    assert_eq!(cache.stats().unwrap().processes, 1, "the second opener never attached");
    assert_eq!(&*cache.get("key").unwrap().unwrap(), b"value");
}
