//! Programs can remove kept files, read them again, and measure them.

use std::fs;

use eyewall_files::{FileCacheOptions, admission};

use crate::support::{Ground, bytes, content, volume};

#[test]
fn a_removed_file_leaves_nothing_and_is_read_again() {
    let ground = Ground::new();
    let file = ground.make("page", bytes(100_000));
    assert!(!ground.files.remove(ground.at("page")).unwrap(), "nothing is there yet");
    content(&file);
    assert_eq!(ground.files.used_bytes(), 100_000);
    assert!(ground.files.remove(ground.at("page")).unwrap());
    assert_eq!(ground.files.used_bytes(), 0);
    assert!(!ground.files.contains(ground.at("page")).unwrap());
    assert!(content(&file) == bytes(100_000) && file.is_cached());
}

#[test]
fn all_fragments_are_removed_even_if_the_file_is_shorter_or_gone() {
    for is_gone in [false, true] {
        let ground = Ground::new();
        content(&ground.make("page", bytes(100_000)));
        if is_gone {
            fs::remove_file(ground.at("page")).unwrap();
        } else {
            ground.write("page", "short");
        }
        assert!(ground.files.remove(ground.at("page")).unwrap());
        assert_eq!(ground.files.used_bytes(), 0);
    }
}

#[test]
fn a_file_that_no_volume_could_hold_isnt_looked_for_piece_by_piece() {
    let ground = Ground::new();
    ground.write("page", "short");
    // Without blocks on the disk. Some file systems have no files of this length.
    let page = fs::File::options().write(true).open(ground.at("page")).unwrap();
    if page.set_len(1 << 43).is_err() {
        return println!("skipped: this file system has no files of 8 TiB");
    }
    assert!(!ground.files.remove(ground.at("page")).unwrap());
}

#[test]
fn precompressed_files_go_with_the_plain_one_and_no_others() {
    let ground = Ground::new();
    for name in ["page", "page.gz", "page.br", "page.zst", "page.css", "pag"] {
        content(&ground.make(name, name));
    }
    assert!(ground.files.remove(ground.at("page")).unwrap());
    for (name, is_there) in [
        ("page", false),
        ("page.gz", false),
        ("page.br", false),
        ("page.zst", false),
        ("page.css", true),
        ("pag", true),
    ] {
        assert_eq!(ground.files.contains(ground.at(name)).unwrap(), is_there, "{name}");
    }
}

#[test]
fn a_refreshed_file_is_read_although_it_is_the_same() {
    let ground = Ground::new();
    ground.make("page", bytes(100_000));
    for round in 1..=2 {
        assert!(ground.files.refresh(ground.at("page")).unwrap());
        assert_eq!(ground.files.statistics().stored, 4 * round);
        assert!(ground.files.contains(ground.at("page")).unwrap());
    }
    ground.make("page", "changed");
    assert!(ground.files.refresh(ground.at("page")).unwrap());
    assert_eq!(ground.files.statistics().stored, 9);
}

#[test]
fn a_file_that_is_not_to_be_kept_is_refreshed_to_nothing() {
    let ground = Ground::with(FileCacheOptions::new().admission(admission::extensions(["css"])));
    ground.make("page.html", "page");
    ground.make("page.css", "page");
    assert!(!ground.files.refresh(ground.at("page.html")).unwrap());
    assert!(ground.files.refresh(ground.at("page.css")).unwrap());
    assert_eq!(ground.files.used_bytes(), 4);
}

#[test]
fn only_files_count_as_used() {
    let cache = volume();
    cache.put("/page", [0; 1000]).unwrap();
    let ground = Ground::of(FileCacheOptions::new().build(cache));
    assert_eq!(ground.files.used_bytes(), 0);
    content(&ground.make("a", bytes(10)));
    content(&ground.make("b", bytes(70_000)));
    assert_eq!(ground.files.used_bytes(), 70_010);
}
