//! Concurrent requests, in one process and in several, read a file once.

use std::sync::Arc;

use eyewall::Options;
use eyewall_files::{FileCache, Source};
use tokio::sync::Barrier;

use crate::support::{Ground, bytes, content, get};

const READERS: usize = 32;

/// Sends all requests at once. Returns how often a fragment was stored meanwhile.
async fn read_by_all(ground: &Ground, expected: &[u8]) -> u64 {
    let stored = ground.files.statistics().stored;
    let barrier = Arc::new(Barrier::new(READERS));
    let reading = (0..READERS).map(|_| {
        let (files, barrier, path) = (ground.files.clone(), Arc::clone(&barrier), ground.at("page"));
        tokio::spawn(async move {
            barrier.wait().await;
            get(&files.open(path).await.unwrap(), &[]).await.body
        })
    });
    for read in reading.collect::<Vec<_>>() {
        assert!(read.await.unwrap() == expected);
    }
    ground.files.statistics().stored - stored
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_that_many_ask_for_is_read_once() {
    let ground = Ground::new();
    for length in [100, 100_000] {
        // A new file, and then a new version of it.
        for version in 0..2 {
            let mut whole = bytes(length);
            whole[0] = version;
            ground.make("page", &whole);
            let fragments = length.div_ceil(32 << 10);
            assert_eq!(read_by_all(&ground, &whole).await, fragments, "{length}, {version}");
        }
        ground.files.remove(ground.at("page")).unwrap();
    }
    assert_eq!(ground.files.cache().stats().unwrap().pins, 0);
}

#[tokio::test]
async fn a_file_read_by_one_process_is_there_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let open = || FileCache::new(Options::new().size(4 << 20).open(folder.path().join("files.eyewall")).unwrap());
    let ground = Ground::of(open());
    let other = open();
    let file = ground.make("page", bytes(100_000));
    assert_eq!(get(&file, &[]).await.source, Source::Stored);
    let theirs = other.open(ground.at("page")).await.unwrap();
    let taken = get(&theirs, &[]).await;
    assert!(taken.source == Source::Volume && taken.body == bytes(100_000));
    assert_eq!((other.statistics().stored, other.statistics().hits), (0, 1));
    assert_eq!((other.used_bytes(), ground.files.used_bytes()), (100_000, 100_000));
    // A change, and a removal, concern all processes.
    let file = ground.make("page", "second");
    assert_eq!(content(&file), b"second");
    assert_eq!(content(&other.open(ground.at("page")).await.unwrap()), b"second");
    assert!(other.remove(ground.at("page")).unwrap() && !file.is_cached());
    // It is still there after a restart.
    assert_eq!(content(&file), b"second");
    let page = ground.at("page");
    drop((other, theirs, taken, file));
    let Ground { files, folder } = ground;
    drop(files);
    assert!(open().contains(page).unwrap());
    drop(folder);
}
