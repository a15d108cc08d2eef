//! The given path leads to something else: a text, a picture, a folder, a pipe, a dangling link. The error says so,
//! and the file is left as it is, whether it was opened to write or only to read.

use std::os::unix::fs::symlink;
use std::path::Path;

use eyewall::{Error, Options};

use crate::common::fast_folder;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

fn ways() -> [Options; 3] {
    [Options::new(), Options::new().create(false), Options::new().read_only(true)]
}

fn assert_foreign(path: &Path) {
    for options in ways() {
        let error = options.open(path).unwrap_err();
        assert!(matches!(error, Error::Foreign { .. }), "{error:?}");
        assert!(error.to_string().contains("is not an Eyewall volume; it was left as it is"), "{error}");
    }
}

#[test]
fn other_files_are_refused_and_left_as_they_are() {
    let folder = fast_folder();
    let megabyte = vec![b'x'; 1 << 20];
    let almost = b"EYEWALL".repeat(1000);
    // Like ISO 9660, whose first 32 KiB are unused.
    let mut image = vec![0; 2 << 20];
    image[32 << 10..][..8].copy_from_slice(b"\x01CD001\x01\0");
    let files =
        [("text", &b"hello\n"[..]), ("picture", PNG), ("large", &megabyte), ("almost", &almost), ("image", &image)];
    for (name, bytes) in files {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let before = path.metadata().unwrap().modified().unwrap();
        assert_foreign(&path);
        assert_eq!(std::fs::read(&path).unwrap(), bytes, "{name}");
        assert_eq!(path.metadata().unwrap().modified().unwrap(), before, "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "nothing was created beside them");
}

#[test]
fn a_folder_and_a_pipe_are_refused_at_once() {
    let folder = fast_folder();
    assert_foreign(folder.path());
    let pipe = folder.path().join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name is a C string that lives during the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert_foreign(&pipe);
}

#[test]
fn a_missing_file_is_created_only_on_demand() {
    let folder = fast_folder();
    let path = folder.path().join("volume");
    for options in [Options::new().create(false), Options::new().read_only(true)] {
        let error = options.open(&path).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error:?}");
        assert!(error.to_string().contains("create one first"), "{error}");
    }
    assert!(!path.exists());
    let error = Options::new().open(folder.path().join("no").join("volume")).unwrap_err();
    assert!(matches!(error, Error::Io { what: "creating", .. }), "{error:?}");
}

#[test]
fn a_link_is_followed_and_a_dangling_one_is_an_error() {
    let folder = fast_folder();
    let (path, link) = (folder.path().join("volume"), folder.path().join("link"));
    symlink(&path, &link).unwrap();
    let error = Options::new().size(512 << 10).open(&link).unwrap_err();
    assert!(error.to_string().contains("link to a missing file"), "{error}");
    let cache = Options::new().size(512 << 10).open(&path).unwrap();
    cache.put("key", "value").unwrap();
    assert!(Options::new().open(&link).unwrap().contains("key").unwrap());
}
