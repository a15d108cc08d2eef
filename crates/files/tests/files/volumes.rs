//! The volume is full, busy, read-only, or fails: answers become slower, and none fails.

use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use eyewall::{FillOptions, Filling, Options, PutOptions};
use eyewall_files::{FileCache, Source};

use crate::support::{Ground, bytes, content, get};

#[tokio::test]
async fn a_read_only_volume_serves_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("files.eyewall");
    let ground = Ground::of(FileCache::new(Options::new().size(4 << 20).open(&path).unwrap()));
    assert_eq!(content(&ground.make("there", "there")), b"there");
    ground.make("not there", "not there");
    let reader = FileCache::new(Options::new().read_only(true).open(&path).unwrap());
    for (name, source) in [("there", Source::Volume), ("not there", Source::File("read-only"))] {
        let taken = get(&reader.open(ground.at(name)).await.unwrap(), &[]).await;
        assert_eq!((taken.source, &taken.body[..]), (source, name.as_bytes()));
    }
    assert!(!reader.contains(ground.at("not there")).unwrap());
    assert!(reader.remove(ground.at("there")).is_err() && reader.refresh(ground.at("there")).is_err());
    assert!(reader.contains(ground.at("there")).unwrap());
}

#[tokio::test]
async fn pinned_bytes_stay_unchanged_while_the_volume_takes_other_files() {
    let ground = Ground::new();
    let mut held: Vec<(u64, Bytes)> = Vec::new();
    let of = |number: u64| [&number.to_le_bytes(), &bytes(30_000)[8..]].concat();
    // More bytes than the volume has.
    for number in 0..200 {
        ground.write(&number.to_string(), of(number));
    }
    for number in 0..200 {
        let file = ground.settled(&number.to_string());
        let mut taken = file.content();
        let piece = taken.next().unwrap().unwrap();
        assert!(piece == of(number) && taken.next().is_none());
        held.push((number, piece));
    }
    let is_kept = |number: u64| ground.files.contains(ground.at(&number.to_string())).unwrap();
    assert!(!(0..200).all(is_kept), "which are gone depends on where the folder lies");
    for (number, piece) in &held {
        assert!(*piece == of(*number), "{number}");
    }
    drop(held);
    assert_eq!(ground.files.cache().stats().unwrap().pins, 0);
}

#[tokio::test]
async fn a_file_that_somebody_else_reads_for_ever_is_sent_past_the_volume() {
    let ground = Ground::new();
    let file = ground.make("page", "page");
    let key = format!("file:{}", ground.at("page").display());
    let filling = ground.files.cache().begin_fill(key, Duration::ZERO, &FillOptions::new()).unwrap();
    assert!(matches!(filling, Filling::Ours(_)));
    let taken = get(&file, &[]).await;
    assert_eq!((taken.source, &taken.body[..]), (Source::File("not-stored"), &b"page"[..]));
    drop(filling);
    assert_eq!(get(&file, &[]).await.source, Source::Stored);
}

#[tokio::test]
async fn a_volume_that_is_lost_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("files.eyewall");
    let cache = Options::new().size(4 << 20).survive_sigbus(true).open(&path).unwrap();
    let ground = Ground::of(FileCache::new(cache));
    let file = ground.make("page", bytes(100_000));
    assert!(content(&file) == bytes(100_000));
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    for _ in 0..3 {
        assert!(get(&file, &[]).await.body == bytes(100_000));
    }
    assert_eq!(get(&file, &[]).await.source, Source::File("volume-failed"));
    assert!(!file.is_cached());
}

#[tokio::test]
async fn an_entry_that_others_have_made_shorter_is_not_the_file() {
    let ground = Ground::new();
    let file = ground.make("page", bytes(100_000));
    assert_eq!(get(&file, &[]).await.body, bytes(100_000));
    let cache = ground.files.cache();
    let keys: Vec<Vec<u8>> = cache.iter().map(|hit| hit.key().to_vec()).collect();
    assert_eq!(keys.len(), 4);
    for key in &keys {
        let metadata = cache.peek(key).unwrap().unwrap().metadata().to_vec();
        cache.put_with(key, "short", &PutOptions::new().metadata(&metadata)).unwrap();
    }
    let taken = get(&file, &[]).await;
    assert!(taken.body == bytes(100_000) && taken.source == Source::Stored);
    assert!(file.is_cached(), "they were replaced");
}
