//! One file as a service, forevery path.

use std::fs;
use std::time::Duration;

use eyewall_tower::ServeFile;
use eyewall_tower::files::{FileCacheOptions, Freshness};
use http::Method;

use crate::support::{Site, get, request, send};

#[tokio::test]
async fn a_file_is_sent_for_any_path() {
    let site = Site::new(&["page.html"]);
    let file = ServeFile::new(site.at("page.html"), &site.files).cache_status("files");
    let first = site.get_until(&file, "/", "etag").await;
    assert_eq!(
        (first.status, first.text(), first.field("content-type")),
        (200, "page.html", "text/html; charset=utf-8")
    );
    let part = get(&file, "/%zz/../x?y", &[("range", "bytes=0-3")]).await;
    assert_eq!((part.status, part.text(), part.field("cache-status")), (206, "page", "files; hit"));
    assert_eq!(get(&file, "/", &[("if-none-match", first.field("etag"))]).await.status, 304);
    let refused = send(&file, request(Method::POST, "/", &[])).await;
    assert_eq!((refused.status, refused.field("allow")), (405, "GET, HEAD"));
    let head = send(&file, request(Method::HEAD, "/", &[])).await;
    assert_eq!((head.field("content-length"), head.body.len()), ("9", 0));
}

#[tokio::test]
async fn a_file_may_come_and_go() {
    let site = Site::new(&[]);
    let file = ServeFile::new(site.at("page.html"), &site.files);
    for _ in 0..2 {
        assert_eq!(get(&file, "/", &[]).await.status, 404);
        site.write("page.html", "there");
        assert_eq!(get(&file, "/", &[]).await.text(), "there");
        fs::remove_file(site.at("page.html")).unwrap();
    }
    fs::create_dir(site.at("folder")).unwrap();
    for path in [site.at("folder"), "".into(), "n".repeat(300).into()] {
        assert_eq!(get(&ServeFile::new(path, &site.files), "/", &[]).await.status, 404);
    }
}

#[tokio::test]
async fn a_file_removed_within_its_interval_is_gone() {
    let options = FileCacheOptions::new().freshness(Freshness::Interval(Duration::from_hours(1))).max_bytes(0);
    let site = Site::with(&["page.html"], options);
    let file = ServeFile::new(site.at("page.html"), &site.files);
    site.get_until(&file, "/", "last-modified").await;
    fs::remove_file(site.at("page.html")).unwrap();
    assert_eq!(get(&file, "/", &[]).await.status, 404);
}

#[tokio::test]
async fn precompressed_files_beside_it_are_sent_if_that_is_set() {
    let site = Site::with(&["page.html", "page.html.br"], FileCacheOptions::new().precompressed(true));
    let file = ServeFile::new(site.at("page.html"), &site.files);
    let taken = get(&file, "/", &[("accept-encoding", "br")]).await;
    assert_eq!((taken.text(), taken.field("content-encoding")), ("page.html.br", "br"));
}
