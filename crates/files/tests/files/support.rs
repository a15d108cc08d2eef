//! A folder with files, and a volume in front of it.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use eyewall::{Cache, Options};
use eyewall_files::{Answer, CachedFile, FileCache, FileCacheOptions, Source};
use eyewall_http::message::Request;
use http::header::{ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use tempfile::TempDir;

pub(crate) struct Ground {
    pub(crate) folder: TempDir,
    pub(crate) files: FileCache,
}

/// A response whose body was read to its end.
pub(crate) struct Taken {
    pub(crate) status: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) source: Source,
    pub(crate) body: Vec<u8>,
}

/// Entries of 64 KiB at most, so that fragments are short.
pub(crate) fn volume() -> Cache {
    Options::new().size(4 << 20).entry_bytes_max(64 << 10).anonymous().unwrap()
}

/// Bytes in which no two pieces are alike.
pub(crate) fn bytes(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(7)) as u8).collect()
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self::with(FileCacheOptions::new())
    }

    pub(crate) fn with(options: FileCacheOptions) -> Self {
        Self::of(options.build(volume()))
    }

    pub(crate) fn of(files: FileCache) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A file that is old enough to be kept: the kernel's clock has advanced since the change.
    pub(crate) fn settled(&self, name: &str) -> CachedFile {
        self.open_until(name, &ETAG)
    }

    /// A file that is old enough for its look to be remembered, which takes a second.
    pub(crate) fn old(&self, name: &str) -> CachedFile {
        self.open_until(name, &LAST_MODIFIED)
    }

    fn open_until(&self, name: &str, field: &HeaderName) -> CachedFile {
        loop {
            let file = self.files.open_blocking(self.at(name)).unwrap();
            if file.fields().contains_key(field) {
                return file;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Writes a file, and waits until it may be kept.
    pub(crate) fn make(&self, name: &str, bytes: impl AsRef<[u8]>) -> CachedFile {
        self.write(name, bytes);
        self.settled(name)
    }
}

pub(crate) fn fields(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
    pairs.iter().map(pair).collect()
}

/// Reads an answer to its end, without a runtime.
pub(crate) fn take(answer: Answer) -> Taken {
    let Answer { status, fields, body, source } = answer;
    assert_eq!(fields.get("content-length"), promised(status, body.bytes_left()).as_ref());
    let body = body.flat_map(|piece| piece.unwrap()).collect();
    Taken { status, fields, source, body }
}

/// The length that the head has to announce.
fn promised(status: StatusCode, length: u64) -> Option<HeaderValue> {
    (status == StatusCode::OK || status == StatusCode::PARTIAL_CONTENT).then(|| length.into())
}

pub(crate) async fn get(file: &CachedFile, pairs: &[(&'static str, &str)]) -> Taken {
    let fields = fields(pairs);
    take(file.answer(Request { method: &Method::GET, fields: &fields }).await.unwrap())
}

pub(crate) fn content(file: &CachedFile) -> Vec<u8> {
    file.content().flat_map(|piece| piece.unwrap()).collect()
}
