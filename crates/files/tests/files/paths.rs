//! Paths of programs: relative, with `..`, long, of any bytes; and those without a file.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;

use eyewall_files::{FilePath, Folder, FolderOptions, Found};

use crate::support::{Ground, content, get};

#[tokio::test]
async fn where_there_is_no_file_there_is_an_error_that_says_so() {
    let ground = Ground::new();
    fs::create_dir(ground.at("folder")).unwrap();
    ground.write("file", "");
    symlink("circle", ground.at("circle")).unwrap();
    symlink("nowhere", ground.at("broken")).unwrap();
    let _socket = UnixListener::bind(ground.at("socket")).unwrap();
    let long = "n".repeat(256);
    let longer = "n/".repeat(3000);
    for name in ["none", "folder", "folder/none", "file/below", "circle", "broken", "socket", "", &long, &longer] {
        for path in [ground.at(name), ground.at("folder/..").join(name)] {
            let error = ground.files.open(&path).await.unwrap_err();
            assert!(
                error.kind() == ErrorKind::NotFound && error.to_string().contains(ground.at("").to_str().unwrap()),
                "{error}"
            );
            assert_eq!(ground.files.open_blocking(&path).unwrap_err().kind(), error.kind());
            assert_eq!(ground.files.contains(&path).unwrap_err().kind(), error.kind());
            assert_eq!(ground.files.refresh(&path).unwrap_err().kind(), error.kind(), "{name}");
            assert!(!ground.files.remove(&path).unwrap());
        }
    }
    assert_eq!(ground.files.open("").await.unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(ground.files.open("/").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(ground.files.used_bytes(), 0);
}

#[tokio::test]
async fn a_file_that_may_not_be_read_is_an_error_of_its_own() {
    let ground = Ground::new();
    let path = ground.write("secret", "secret");
    fs::set_permissions(&path, Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        eprintln!("this user may read every file: nothing to see");
        return;
    }
    assert_eq!(ground.files.open(&path).await.unwrap_err().kind(), ErrorKind::PermissionDenied);
    let folder = Folder::open(ground.at(""), &ground.files, FolderOptions::default()).unwrap();
    let found = folder.find(&FilePath::parse("/secret", false).unwrap()).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_file_is_the_same_by_all_ways_that_lead_to_it() {
    let ground = Ground::new();
    fs::create_dir(ground.at("folder")).unwrap();
    assert_eq!(content(&ground.make("page", "page")), b"page");
    for way in ["folder/../page", "./page", "folder//..///page", "page/"] {
        let file = ground.files.open_blocking(ground.at(way)).unwrap();
        assert_eq!((file.path(), file.is_cached()), (&*ground.at("page"), true), "{way}");
        assert!(ground.files.contains(ground.at(way)).unwrap());
        assert_eq!(ground.files.file_statistics(ground.at(way)), ground.files.file_statistics(ground.at("page")));
        let stored = ground.files.statistics().stored;
        assert!(ground.files.refresh(ground.at(way)).unwrap());
        assert_eq!(ground.files.statistics().stored, stored + 1, "{way}: read anew");
        assert!(ground.files.remove(ground.at(way)).unwrap() && !file.is_cached(), "{way}");
        assert!(ground.files.refresh(ground.at("page")).unwrap());
    }
    fs::remove_file(ground.at("page")).unwrap();
    assert!(ground.files.remove(ground.at("folder/../page")).unwrap(), "of one that is gone, too");
}

#[test]
fn a_step_upwards_means_what_links_make_of_it() {
    let ground = Ground::new();
    fs::create_dir_all(ground.at("far/away")).unwrap();
    symlink("far/away", ground.at("link")).unwrap();
    ground.write("page", "near");
    ground.write("far/page", "far");
    assert_eq!(content(&ground.files.open_blocking(ground.at("link/../page")).unwrap()), b"far");
    assert_eq!(content(&ground.files.open_blocking(ground.at("page")).unwrap()), b"near");
}

#[test]
fn a_relative_path_is_taken_from_the_working_directory() {
    let ground = Ground::new();
    // The folder in which cargo starts tests.
    let file = ground.files.open_blocking("Cargo.toml").unwrap();
    assert_eq!(file.path(), Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert_eq!(content(&file), fs::read("Cargo.toml").unwrap());
    assert!(ground.files.file_statistics("Cargo.toml").is_some());
}

#[tokio::test]
async fn names_are_bytes() {
    let ground = Ground::new();
    let name = OsStr::from_bytes(b"caf\xE9 \xFF.txt");
    fs::write(ground.at("").join(name), "latin").unwrap();
    let file = loop {
        let file = ground.files.open(ground.at("").join(name)).await.unwrap();
        if file.fields().contains_key("etag") {
            break file;
        }
    };
    assert_eq!(get(&file, &[]).await.fields["content-type"], "text/plain; charset=utf-8");
    assert!(file.is_cached() && ground.files.remove(ground.at("").join(name)).unwrap());
    let folder = Folder::open(ground.at(""), &ground.files, FolderOptions::default()).unwrap();
    let found = folder.find(&FilePath::parse("/caf%E9%20%FF.txt", false).unwrap()).await.unwrap();
    assert!(matches!(found, Found::File(file) if content(&file) == b"latin"));
}

#[tokio::test]
async fn long_paths_are_served_and_kept() {
    let ground = Ground::new();
    let deep = format!("{0}/{0}/{0}/{0}", "d".repeat(250));
    fs::create_dir_all(ground.at(&deep)).unwrap();
    let name = format!("{deep}/page");
    let file = ground.make(&name, "deep down");
    assert_eq!(get(&file, &[]).await.body, b"deep down");
    assert!(file.is_cached());
    let folder = Folder::open(ground.at(""), &ground.files, FolderOptions::default()).unwrap();
    let found = folder.find(&FilePath::parse(&format!("/{name}"), false).unwrap()).await.unwrap();
    assert!(matches!(found, Found::File(file) if content(&file) == b"deep down"));
}
