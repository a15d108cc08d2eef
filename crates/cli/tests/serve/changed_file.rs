//! A file changes while the volume has its old bytes: the next request gets the new ones.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use crate::common::client::Reply;
use crate::common::server::{Server, Site};

#[test]
fn a_rewritten_file_is_read_again() {
    let site = Site::new();
    site.write("page.html", "first");
    let server = Server::over_folder(site.path());
    let first = server.get_until("/page.html", Reply::is_hit);
    assert_eq!(first.text(), "first");
    // As long as before, so that the size doesn't change.
    site.write("page.html", "again");
    let changed = server.get("/page.html");
    assert_eq!(changed.text(), "again");
    assert!(!changed.is_hit(), "{}", changed.cache());
    let second = server.get_until("/page.html", Reply::is_hit);
    assert_eq!(second.text(), "again");
    assert_ne!(second.field("etag"), first.field("etag"));
}

#[test]
fn a_file_of_the_same_age_and_size_put_in_its_place_is_noticed() {
    let site = Site::new();
    let time = SystemTime::now() - Duration::from_hours(1);
    for (name, bytes) in [("page.html", "first"), ("new.html", "again")] {
        site.write(name, bytes);
        File::options().write(true).open(site.path().join(name)).unwrap().set_modified(time).unwrap();
    }
    let server = Server::over_folder(site.path());
    assert_eq!(server.get_until("/page.html", Reply::is_hit).text(), "first");
    fs::rename(site.path().join("new.html"), site.path().join("page.html")).unwrap();
    assert_eq!(server.get("/page.html").text(), "again");
}

#[test]
fn a_file_that_is_removed_is_gone() {
    let site = Site::new();
    site.write("page.html", "first");
    let server = Server::over_folder(site.path());
    server.get_until("/page.html", Reply::is_hit);
    fs::remove_file(site.path().join("page.html")).unwrap();
    assert_eq!(server.get("/page.html").status, 404);
}

#[test]
fn a_root_that_is_a_link_can_be_switched() {
    let site = Site::new();
    site.write("v1/index.html", "one");
    site.write("v2/index.html", "two");
    let link = site.path().join("current");
    symlink("v1", &link).unwrap();
    let server = Server::over_folder(&link);
    assert_eq!(server.get_until("/", Reply::is_hit).text(), "one");
    symlink("v2", site.path().join("next")).unwrap();
    fs::rename(site.path().join("next"), &link).unwrap();
    assert_eq!(server.get("/").text(), "two");
}
