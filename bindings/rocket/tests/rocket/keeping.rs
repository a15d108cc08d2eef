//! Which files are kept, and the statistics of them.

use eyewall_rocket::{CachedFile, FileCacheOptions, FileStatistics, Statistics, admission};
use rocket::async_test;

use crate::support::{Site, WAYS, bytes, text};

#[async_test]
async fn files_within_the_size_limits_are_kept() {
    let site = Site::new(FileCacheOptions::new().min_bytes(10).max_bytes(1000));
    for (name, length) in [("short", 9), ("shortest-kept", 10), ("longest-kept", 1000), ("long", 1001)] {
        site.write(name, bytes(length, 1));
        site.settle(name);
        let client = site.client().await;
        for way in WAYS {
            assert_eq!(client.get(format!("{way}/{name}")).dispatch().await.into_bytes().await.unwrap().len(), length);
        }
        let is_kept = site.files.contains(site.path(name)).unwrap();
        assert_eq!(is_kept, name.ends_with("kept"), "{name}");
    }
    assert_eq!(site.files.used_bytes(), 1010);
}

#[async_test]
async fn the_admission_decides_which_files_are_kept() {
    for way in WAYS {
        let twice = admission::asked_for(2);
        let options = FileCacheOptions::new()
            .admission(move |file| twice(file) && file.path.extension().is_some_and(|extension| extension == "txt"));
        let site = Site::new(options);
        for name in ["a.txt", "a.mp4"] {
            site.write(name, "content");
            site.settle(name);
        }
        let client = site.client().await;
        let mut kept = Vec::new();
        for _ in 0..3 {
            for name in ["a.txt", "a.mp4"] {
                assert_eq!(text(&client, &format!("{way}/{name}")).await.1, "content");
            }
            kept.push(["a.txt", "a.mp4"].map(|name| site.files.contains(site.path(name)).unwrap()));
        }
        assert_eq!(kept, [[false, false], [true, false], [true, false]], "{way}");
    }
}

#[async_test]
async fn sent_files_are_counted() {
    let site = Site::new(FileCacheOptions::new());
    for name in ["a.txt", "b.txt"] {
        site.write(name, "content");
        site.settle(name);
    }
    let client = site.client().await;
    for target in ["/a.txt", "/named/a.txt", "/named/b.txt", "/a.txt", "/b.txt"] {
        text(&client, target).await;
    }
    let of = |name: &str| site.files.file_statistics(site.path(name));
    assert_eq!(of("a.txt"), Some(FileStatistics { hits: 2, misses: 1 }));
    assert_eq!(of("b.txt"), Some(FileStatistics { hits: 1, misses: 1 }));
    assert_eq!(of("c.txt"), None);
    let Statistics { hits, misses, stored, not_stored, .. } = site.files.statistics();
    assert_eq!((hits, misses, stored, not_stored), (3, 2, 2, 0));
}

#[async_test]
async fn files_are_refreshed_and_removed_on_demand() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "content");
    site.settle("a.txt");
    let path = site.path("a.txt");
    assert!(!site.files.contains(&path).unwrap() && site.files.used_bytes() == 0);
    assert!(site.files.refresh(&path).unwrap(), "it is kept now");
    assert!(site.files.contains(&path).unwrap() && site.files.used_bytes() == 7);
    assert!(CachedFile::open(&path, &site.files).await.unwrap().is_cached());
    assert!(site.files.remove(&path).unwrap() && !site.files.remove(&path).unwrap());
    assert!(!site.files.contains(&path).unwrap());
    assert_eq!(text(&site.client().await, "/a.txt").await.1, "content", "and read again");
}
