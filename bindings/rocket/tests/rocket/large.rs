//! Files that are longer than an entry.

use eyewall_rocket::{FileCache, FileCacheOptions};
use rocket::async_test;
use rocket::http::Status;

use crate::support::{Site, WAYS, bytes, get, volume};

const LENGTH: usize = 10_000_000;

#[async_test]
async fn a_large_file_is_kept_in_fragments() {
    let site = Site::with(FileCache::new(volume(40_000_000)));
    let content = bytes(LENGTH, 7);
    site.write("large.bin", &content);
    site.settle("large.bin");
    let client = site.client().await;
    for way in WAYS {
        let response = get(&client, &format!("{way}/large.bin"), &[]).await;
        assert_eq!(response.body().preset_size(), Some(LENGTH));
        assert!(response.into_bytes().await.unwrap() == content);
        assert!(site.files.contains(site.path("large.bin")).unwrap());
    }
    let read = site.files.statistics();
    assert!(read.stored >= 10 && read.not_stored == 0, "{read:?}: read once, in fragments");
}

#[async_test]
async fn a_range_of_a_large_file_reads_no_more_than_its_fragments() {
    let site = Site::with(FileCache::new(volume(40_000_000)));
    let content = bytes(LENGTH, 7);
    site.write("large.bin", &content);
    site.settle("large.bin");
    let client = site.client().await;
    // Across a border of fragments.
    let response = get(&client, "/large.bin", &[("range", "bytes=4194300-4194309")]).await;
    assert_eq!(response.status(), Status::PartialContent);
    assert!(response.into_bytes().await.unwrap() == content[4_194_300..4_194_310]);
    assert_eq!(site.files.statistics().stored, 2);
}

#[async_test]
async fn a_file_that_is_too_large_to_be_kept_is_still_sent() {
    let site = Site::new(FileCacheOptions::new());
    let content = bytes(LENGTH, 7);
    site.write("large.bin", &content);
    site.settle("large.bin");
    let client = site.client().await;
    for way in WAYS {
        assert!(get(&client, &format!("{way}/large.bin"), &[]).await.into_bytes().await.unwrap() == content);
    }
    assert_eq!((site.files.used_bytes(), site.files.statistics().stored), (0, 0));
}
