//! A look is remembered while the kernel reports no change, or for as long as the user sets.

use std::fs;
use std::time::Duration;

use eyewall_files::{FileCache, FileCacheOptions, FilePath, Folder, FolderOptions, Found, Freshness, Source};
use eyewall_http::message::Request;
use http::{HeaderMap, Method};

use crate::support::{Ground, content, get, take, volume};

const HOUR: Duration = Duration::from_hours(1);

fn with(freshness: Freshness) -> Ground {
    Ground::with(FileCacheOptions::new().freshness(freshness))
}

#[test]
fn a_watched_file_is_not_looked_at_again_until_it_changes() {
    let ground = with(Freshness::Watched);
    ground.write("page", "first");
    // A known path is looked up again after a second, and a machine may stop for that long.
    let is_known = (0..10).any(|_| {
        ground.old("page");
        let looks = ground.files.statistics().looks;
        assert_eq!(content(&ground.files.open_blocking(ground.at("page")).unwrap()), b"first");
        ground.files.statistics().looks == looks
    });
    assert!(is_known);
    for version in ["as long", "longer than", "short"] {
        ground.write("page", version);
        assert_eq!(content(&ground.files.open_blocking(ground.at("page")).unwrap()), version.as_bytes());
    }
    fs::remove_file(ground.at("page")).unwrap();
    assert!(ground.files.open_blocking(ground.at("page")).is_err());
}

#[tokio::test]
async fn within_its_interval_a_file_is_sent_as_it_was_found() {
    let ground = with(Freshness::Interval(HOUR));
    ground.write("page", "first");
    ground.write("unread", "first");
    assert_eq!(content(&ground.old("page")), b"first");
    ground.old("unread");
    let looks = ground.files.statistics().looks;
    for name in ["page", "unread"] {
        ground.write(name, "second");
    }
    for _ in 0..3 {
        let file = ground.files.open(ground.at("page")).await.unwrap();
        let taken = get(&file, &[]).await;
        assert_eq!((taken.source, &taken.body[..]), (Source::Volume, &b"first"[..]));
    }
    assert_eq!(ground.files.statistics().looks, looks);
    // The missing bytes have to be read, and the file is no longer the one that was found.
    let fields = HeaderMap::new();
    let request = Request { method: &Method::GET, fields: &fields };
    assert_eq!(take(ground.files.answer(ground.at("unread"), request).await.unwrap()).body, b"second");
    assert_eq!(ground.files.statistics().looks, looks + 1);
}

#[tokio::test]
async fn a_file_removed_within_its_interval_and_not_in_the_volume_is_gone() {
    let fields = HeaderMap::new();
    let request = Request { method: &Method::GET, fields: &fields };
    let ground = with(Freshness::Interval(HOUR));
    ground.write("page", "first");
    ground.old("page");
    let folder = Folder::open(ground.at(""), &ground.files, FolderOptions::default()).unwrap();
    let path = FilePath::parse("/page", false).unwrap();
    assert!(matches!(folder.find(&path).await.unwrap(), Found::File(file) if file.bytes() == 5));
    fs::remove_file(ground.at("page")).unwrap();
    let error = ground.files.answer(ground.at("page"), request).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert!(matches!(folder.answer(&path, request).await.unwrap(), eyewall_files::Answered::Nothing));
}

#[test]
fn after_its_interval_it_is_looked_at_again() {
    let ground = with(Freshness::Interval(Duration::from_millis(1)));
    ground.write("page", "first");
    assert_eq!(content(&ground.old("page")), b"first");
    ground.write("page", "second");
    while content(&ground.files.open_blocking(ground.at("page")).unwrap()) != b"second" {}
    let ground = with(Freshness::Interval(Duration::ZERO));
    ground.write("page", "first");
    ground.old("page");
    for _ in 0..2 {
        let looks = ground.files.statistics().looks;
        ground.files.open_blocking(ground.at("page")).unwrap();
        assert_eq!(ground.files.statistics().looks, looks + 1);
    }
}

#[tokio::test]
async fn a_folder_with_other_options_does_not_share_known_paths() {
    let ground = Ground::of(FileCache::new(volume()));
    ground.write("start.html", "start");
    let folder = Folder::open(ground.at(""), &ground.files, FolderOptions::default()).unwrap();
    let root = FilePath::parse("/", false).unwrap();
    assert!(!folder.find(&root).await.unwrap().is_file());
    let other = folder.with_options(FolderOptions { index: vec!["start.html".to_owned()], ..folder.options().clone() });
    assert!(other.find(&root).await.unwrap().is_file());
    assert!(!folder.find(&root).await.unwrap().is_file(), "the first is as it was");
    assert_eq!((other.options().index.len(), other.root()), (1, folder.root()));
}
