//! The disk has no room for a new volume, or is read-only. The error says what would help, and nothing is left
//! behind.
//!
//! The file systems are mounted in a child's own namespace, which vanishes with it.

#![cfg(test)]

mod common;

use std::ffi::CString;
use std::path::Path;

use common::{Child, fast_folder, is_root, play, say};
use eyewall::{Cache, Error, Options};

#[test]
fn child() {
    play(&[("fills a disk", fills_a_disk), ("only reads", only_reads), ("warns", warns)]);
}

fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn mount(what: &str, place: &Path, kind: &str, flags: libc::c_ulong, data: &str) {
    let (what, place, kind, data) = (c(what), c(place.to_str().unwrap()), c(kind), c(data));
    // SAFETY: C strings that live during the call.
    let done = unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) };
    assert_eq!(done, 0, "mounting: {}", std::io::Error::last_os_error());
}

/// Makes the mounts of this process invisible to others. Returns false if that isn't permitted.
fn own_mounts() -> bool {
    // SAFETY: no pointers are involved.
    if !is_root() || unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
        say("not permitted");
        return false;
    }
    mount("none", Path::new("/"), "none", libc::MS_REC | libc::MS_PRIVATE, "");
    true
}

fn run(role: &str) {
    let folder = fast_folder();
    let mut child = Child::start(role, &[folder.path().to_str().unwrap()]);
    match child.hear().as_str() {
        "done" => child.finish(),
        _ => println!("skipped: mounting a file system is not permitted here"),
    }
}

fn fills_a_disk(arguments: &[&str]) {
    if !own_mounts() {
        return;
    }
    let place = Path::new(arguments[0]);
    mount("tmpfs", place, "tmpfs", 0, "size=1m");
    let path = place.join("volume");
    for size in [2 << 20, 64 << 20, 1 << 40] {
        let error = Options::new().size(size).open(&path).unwrap_err();
        assert!(matches!(error, Error::NoSpace { bytes, .. } if bytes == size), "{error:?}");
        assert!(error.to_string().contains("free some space or choose a smaller size"), "{error}");
        assert_eq!(std::fs::read_dir(place).unwrap().count(), 0, "nothing is left");
    }
    // The room is free again, and an existing volume can be used while the disk is full.
    let cache = Options::new().size(768 << 10).open(&path).unwrap();
    let filling = std::fs::write(place.join("filler"), vec![0; 1 << 20]);
    assert_eq!(filling.unwrap_err().kind(), std::io::ErrorKind::StorageFull);
    for number in 0..5000_u32 {
        cache.put(number.to_le_bytes(), vec![1; 900]).unwrap();
    }
    assert_eq!(cache.verify().unwrap().problems, Vec::<String>::new());
    drop(cache);
    assert!(Cache::open(&path).unwrap().stats().unwrap().entries > 100);
    say("done");
}

#[test]
fn a_full_disk_is_reported_and_nothing_is_left() {
    run("fills a disk");
}

fn only_reads(arguments: &[&str]) {
    if !own_mounts() {
        return;
    }
    let place = Path::new(arguments[0]);
    let path = place.join("volume");
    Options::new().size(512 << 10).open(&path).unwrap().put("key", "value").unwrap();
    mount(arguments[0], place, "none", libc::MS_BIND, "");
    mount("none", place, "none", libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY, "");
    let error = Cache::open(&path).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("open it with read_only(true)"), "{error}");
    let error = Options::new().size(512 << 10).open(place.join("new")).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert!(error.to_string().contains("choose another directory"), "{error}");
    let cache = Options::new().read_only(true).open(&path).unwrap();
    assert!(cache.is_read_only());
    let hit = cache.get("key").unwrap().unwrap();
    assert_eq!((&*hit, hit.is_copy()), (&b"value"[..], true));
    assert_eq!(cache.iter().count(), 1);
    assert_eq!(cache.stats().unwrap().entries, 1);
    for error in [
        cache.put("key", "other").map(drop).unwrap_err(),
        cache.remove("key").map(drop).unwrap_err(),
        cache.clear().map(drop).unwrap_err(),
        cache.verify().map(drop).unwrap_err(),
    ] {
        assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    }
    say("done");
}

#[test]
fn a_read_only_file_system_can_be_read_from() {
    run("only reads");
}

fn warns(arguments: &[&str]) {
    if !own_mounts() {
        return;
    }
    let place = Path::new(arguments[0]);
    mount("tmpfs", place, "tmpfs", 0, "size=16m");
    let plain = Options::new().size(512 << 10).open(place.join("volume")).unwrap();
    assert_eq!(plain.storage_warning(), None);
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| place.join(name));
    for folder in [&lower, &upper, &work, &merged] {
        std::fs::create_dir(folder).unwrap();
    }
    let data = format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    mount("overlay", &merged, "overlay", 0, &data);
    let layered = Options::new().size(512 << 10).open(merged.join("volume")).unwrap();
    assert_eq!(layered.storage_warning(), Some("overlayfs copies a file up on its first write"));
    layered.put("key", "value").unwrap();
    drop(layered);
    assert_eq!(std::fs::read_dir(&merged).unwrap().count(), 1);
    assert_eq!(&*Cache::open(merged.join("volume")).unwrap().get("key").unwrap().unwrap(), b"value");
    say("done");
}

#[test]
fn a_layered_file_system_works_with_a_warning() {
    run("warns");
}
