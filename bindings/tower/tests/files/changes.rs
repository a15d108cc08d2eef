//! A changed file is sent in its new version, even if it isn't kept.

use std::fs;

use eyewall_tower::files::{FileCacheOptions, admission};

use crate::support::{Site, bytes, get};

#[tokio::test]
async fn a_request_after_a_change_gets_the_new_content() {
    let site = Site::new(&["page.html"]);
    let dir = site.serve();
    let first = site.get_until(&dir, "/page.html", "last-modified").await;
    for version in ["as long..", "longer than before", "short"] {
        site.write("page.html", version);
        let taken = get(&dir, "/page.html", &[("if-none-match", first.field("etag"))]).await;
        assert_eq!((taken.status, taken.text()), (200, version));
    }
    site.write("next", "renamed");
    fs::rename(site.at("next"), site.at("page.html")).unwrap();
    assert_eq!(get(&dir, "/page.html", &[]).await.text(), "renamed");
    fs::remove_file(site.at("page.html")).unwrap();
    assert_eq!(get(&dir, "/page.html", &[]).await.status, 404);
    site.write("page.html", "back");
    assert_eq!(get(&dir, "/page.html", &[]).await.text(), "back");
}

#[tokio::test]
async fn a_file_that_is_not_kept_is_still_sent() {
    let options = FileCacheOptions::new().max_bytes(50_000).admission(admission::extensions(["txt"]));
    let site = Site::with(&["page.html"], options);
    site.write("large.txt", bytes(50_001));
    site.write("fits.txt", bytes(50_000));
    let dir = site.serve().cache_status("files");
    for (path, length, why) in [
        ("/page.html", 9, "files; fwd=uri-miss; detail=not-admitted"),
        ("/large.txt", 50_001, "files; fwd=uri-miss; detail=too-large"),
        ("/fits.txt", 50_000, "files; hit"),
    ] {
        site.get_until(&dir, path, "etag").await;
        let taken = get(&dir, path, &[]).await;
        assert_eq!((taken.body.len(), taken.field("cache-status")), (length, why), "{path}");
    }
    assert!(get(&dir, "/large.txt", &[]).await.body == bytes(50_001));
    assert_eq!(site.files.used_bytes(), 50_000);
}
