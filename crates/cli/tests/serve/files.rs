//! Eyewall serves a folder of files with types, indexes and decoded names, and the second time from the volume.

use crate::common::client::Reply;
use crate::common::server::{Server, Site};

#[test]
fn a_file_is_stored_once_and_then_answered_from_the_volume() {
    let site = Site::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(150_000).collect();
    site.write("photo.jpg", &bytes);
    let server = Server::over_folder(site.path());
    let stored = server.get_until("/photo.jpg", |reply| reply.cache() == "Eyewall; fwd=uri-miss; stored");
    let hit = server.get("/photo.jpg");
    assert_eq!(hit.cache(), "Eyewall; hit");
    for reply in [stored, hit] {
        assert_eq!(reply.status, 200);
        assert_eq!(reply.field("content-type"), "image/jpeg");
        assert_eq!(reply.field("content-length"), "150000");
        assert_eq!(reply.body, bytes);
    }
}

#[test]
fn types_follow_the_names() {
    let site = Site::new();
    for (name, kind) in [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.svg", "image/svg+xml"),
        ("a.json", "application/json"),
        ("a.woff2", "font/woff2"),
        ("a", "application/octet-stream"),
        ("a.unheard-of", "application/octet-stream"),
    ] {
        site.write(name, "");
        let server = Server::over_folder(site.path());
        assert_eq!(server.get(&format!("/{name}")).field("content-type"), kind, "{name}");
    }
}

#[test]
fn a_folder_shows_its_index() {
    let site = Site::new();
    site.write("index.html", "root");
    site.write("a b/index.html", "inner");
    site.write("empty/other.html", "");
    let server = Server::over_folder(site.path());
    assert_eq!(server.get("/").text(), "root");
    assert_eq!(server.get("/a%20b/").text(), "inner");
    let redirect = server.get("/a%20b?q=1");
    assert_eq!((redirect.status, redirect.field("location")), (301, "/a%20b/?q=1"));
    for target in ["/empty/", "/empty", "/index.html/"] {
        assert_eq!(server.get(target).status, 404, "{target}: nothing is listed");
    }
}

#[test]
fn a_name_that_no_file_can_have_is_not_found() {
    let site = Site::new();
    site.write("a/page.html", "found");
    let server = Server::over_folder(site.path());
    for bytes in [255, 256, 4096, 60 << 10] {
        let name = "x".repeat(bytes);
        for target in [format!("/{name}"), format!("/a/{name}"), format!("/a/{name}/")] {
            assert_eq!(server.get(&target).status, 404, "{bytes} bytes");
        }
    }
    assert_eq!(server.get(&format!("/a/{}page.html", "b/".repeat(30 << 10))).status, 404);
    assert_eq!(server.get("/a/page.html").text(), "found");
}

#[test]
fn names_are_decoded_and_queries_are_ignored() {
    let site = Site::new();
    site.write("caf\u{e9} #1.txt", "found");
    let server = Server::over_folder(site.path());
    assert_eq!(server.get("/caf%C3%A9%20%231.txt?v=2").text(), "found");
    assert_eq!(server.get("/caf%C3%A9").status, 404);
}

#[test]
fn an_empty_file_is_a_file() {
    let site = Site::new();
    site.write("empty.txt", "");
    let server = Server::over_folder(site.path());
    let hit = server.get_until("/empty.txt", Reply::is_hit);
    assert_eq!((hit.status, hit.field("content-length"), hit.text()), (200, "0", ""));
}

#[test]
fn servers_of_two_folders_share_a_volume_without_mixing() {
    let volume = crate::common::command::Volume::new();
    let (one, two) = (Site::new(), Site::new());
    one.write("index.html", "one");
    two.write("index.html", "two");
    for _ in 0..2 {
        for (site, text) in [(&one, "one"), (&two, "two")] {
            let root = site.path().to_str().unwrap();
            let server = Server::spawn(&mut volume.command(["serve", "--listen", "127.0.0.1:0", "--root", root]));
            assert_eq!(server.get_until("/", Reply::is_hit).text(), text);
        }
    }
}
