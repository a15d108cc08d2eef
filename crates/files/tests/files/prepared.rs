//! `open_prepared` and `answer_now`: for frameworks that answer where nothing may block.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyewall::Options;
use eyewall_files::{Answer, CachedFile, FileCache, FileCacheOptions, Freshness, Source};
use eyewall_http::message::Request;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue, Method};
use http_body_util::BodyExt;

/// Every look counts for a day, so only a failed read shows a change.
fn trusting() -> FileCacheOptions {
    FileCacheOptions::new().freshness(Freshness::Interval(Duration::from_hours(24)))
}

fn build(options: FileCacheOptions) -> FileCache {
    options.build(Options::new().size(8 << 20).anonymous().unwrap())
}

/// So that it may be kept: a file that has changed within the last tick of the system's clock isn't.
fn write(path: &Path, content: &[u8]) {
    fs::write(path, content).unwrap();
    let metadata = fs::metadata(path).unwrap();
    let changed = UNIX_EPOCH + Duration::new(metadata.ctime() as u64, metadata.ctime_nsec() as u32);
    while SystemTime::now() < changed + Duration::from_millis(100) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ask(file: &CachedFile, fields: &HeaderMap) -> Answer {
    file.answer_now(Request { method: &Method::GET, fields })
}

async fn bytes(answer: Answer) -> Bytes {
    BodyExt::collect(answer.body).await.unwrap().to_bytes()
}

#[tokio::test]
async fn bytes_read_in_preparation_are_no_hit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    write(&path, b"first");
    let files = build(FileCacheOptions::new());
    let first = ask(&files.open_prepared(&path).await.unwrap(), &HeaderMap::new());
    assert_eq!((first.source, files.statistics().misses), (Source::Stored, 1));
    assert_eq!(bytes(first).await, "first");
    let second = ask(&files.open_prepared(&path).await.unwrap(), &HeaderMap::new());
    assert_eq!((second.source, files.statistics().hits), (Source::Volume, 1));
}

#[tokio::test]
async fn a_file_that_changed_unnoticed_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    write(&path, b"first");
    // No bytes are kept, so the answer rests on the look alone.
    let files = build(trusting().max_bytes(0));
    files.open_prepared(&path).await.unwrap();
    write(&path, b"another");
    let answer = ask(&files.open_prepared(&path).await.unwrap(), &HeaderMap::new());
    assert_eq!(answer.fields["content-length"], "7");
    assert_eq!(bytes(answer).await, "another");
    fs::remove_file(&path).unwrap();
    let missing = files.open_prepared(&path).await.unwrap_err();
    assert_eq!(missing.kind(), std::io::ErrorKind::NotFound);
}

#[tokio::test]
async fn a_precompressed_file_that_changed_unnoticed_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, precompressed) = (folder.path().join("a.txt"), folder.path().join("a.txt.gz"));
    write(&plain, b"plain");
    write(&precompressed, b"precompressed");
    let files = build(trusting().precompressed(true));
    let fields = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]);
    assert_eq!(bytes(ask(&files.open_prepared(&plain).await.unwrap(), &HeaderMap::new())).await, "plain");
    write(&precompressed, b"precompressed anew");
    let answer = ask(&files.open_prepared(&plain).await.unwrap(), &fields);
    assert_eq!(bytes(answer).await, "precompressed anew");
}
