//! Files that change.

use std::fs;
use std::time::Duration;

use eyewall_rocket::{CachedFile, FileCacheOptions, Freshness};
use rocket::async_test;
use rocket::http::Status;

use crate::support::{Site, WAYS, field, get, text};

#[async_test]
async fn the_next_request_after_a_change_gets_the_new_content() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "first");
    site.settle_for("a.txt", Duration::from_millis(1200));
    let client = site.client().await;
    for way in WAYS {
        let target = format!("{way}/a.txt");
        let tag = field(&get(&client, &target, &[]).await, "etag");
        // The file is known and kept by now.
        assert_eq!(text(&client, &target).await, (Status::Ok, "first".to_owned()));
        site.write("a.txt", "second");
        assert_eq!(text(&client, &target).await, (Status::Ok, "second".to_owned()));
        site.settle("a.txt");
        let response = get(&client, &target, &[("if-none-match", &tag)]).await;
        assert_eq!(response.status(), Status::Ok, "another tag");
        fs::remove_file(site.path("a.txt")).unwrap();
        assert_eq!(get(&client, &target, &[]).await.status(), Status::NotFound);
        site.write("a.txt", "first");
        site.settle("a.txt");
    }
}

#[async_test]
async fn a_file_replaced_by_a_rename_is_noticed() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "first");
    site.settle("a.txt");
    let client = site.client().await;
    assert_eq!(text(&client, "/a.txt").await.1, "first");
    site.write("next", "after");
    fs::rename(site.path("next"), site.path("a.txt")).unwrap();
    assert_eq!(text(&client, "/a.txt").await.1, "after");
}

#[async_test]
async fn within_an_interval_clients_get_the_kept_file_and_never_a_broken_body() {
    let site = Site::new(FileCacheOptions::new().freshness(Freshness::Interval(Duration::from_hours(1))));
    site.write("kept.txt", "first");
    site.settle_for("kept.txt", Duration::from_millis(1200));
    let client = site.client().await;
    for way in WAYS {
        assert_eq!(text(&client, &format!("{way}/kept.txt")).await.1, "first");
    }
    site.write("kept.txt", "another");
    for way in WAYS {
        assert_eq!(text(&client, &format!("{way}/kept.txt")).await.1, "first", "trusted for an hour");
    }
    // A missing file can't be trusted.
    assert!(site.files.remove(site.path("kept.txt")).unwrap());
    for way in WAYS {
        assert_eq!(text(&client, &format!("{way}/kept.txt")).await.1, "another");
    }
}

#[async_test]
async fn an_open_file_keeps_its_content() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "first");
    site.settle("a.txt");
    let file = CachedFile::open(site.path("a.txt"), &site.files).await.unwrap();
    assert_eq!((file.path(), file.bytes(), file.is_cached()), (&*site.path("a.txt"), 5, true));
    assert_eq!(file.fields()["content-type"], "text/plain; charset=utf-8");
}
