//! A folder with files, a volume in front of it, and requests.

use std::convert::Infallible;
use std::fs;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use eyewall::Options;
use eyewall_tower::files::{FileCache, FileCacheOptions, ServeDir};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::BodyExt as _;
use tempfile::TempDir;
use tower_service::Service;

pub(crate) struct Site {
    folder: TempDir,
    pub(crate) files: FileCache,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) status: u16,
    pub(crate) fields: HeaderMap,
    pub(crate) body: Bytes,
}

impl Site {
    /// A site with these files; each holds its own path. The volume is so small that a fragment has 32 KiB.
    pub(crate) fn new(paths: &[&str]) -> Self {
        Self::with(paths, FileCacheOptions::new())
    }

    pub(crate) fn with(paths: &[&str], options: FileCacheOptions) -> Self {
        let cache = Options::new().size(4 << 20).entry_bytes_max(64 << 10).anonymous().unwrap();
        let site = Self { folder: tempfile::tempdir().unwrap(), files: options.build(cache) };
        for path in paths {
            site.write(path, path);
        }
        site
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), bytes).unwrap();
    }

    pub(crate) fn serve(&self) -> ServeDir {
        ServeDir::new(self.folder.path(), &self.files).unwrap()
    }

    /// Repeats the request until the file is old enough to have this field, and so to be kept (`etag`) or
    /// known (`last-modified`).
    pub(crate) async fn get_until<S, G>(&self, service: &S, path: &str, field: &str) -> Taken
    where
        S: Service<Request<String>, Response = Response<G>, Error = Infallible> + Clone,
        G: http_body::Body<Data = Bytes, Error = io::Error>,
    {
        loop {
            let taken = get(service, path, &[]).await;
            if taken.fields.contains_key(field) {
                return taken;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Taken {
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

/// Bytes without repeated parts.
pub(crate) fn bytes(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at ^ (at >> 8) ^ (at >> 16).wrapping_mul(7)) as u8).collect()
}

pub(crate) fn request(method: Method, target: &str, fields: &[(&str, &str)]) -> Request<String> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(String::new()).unwrap()
}

pub(crate) async fn send<S, G>(service: &S, request: Request<String>) -> Taken
where
    S: Service<Request<String>, Response = Response<G>, Error = Infallible> + Clone,
    G: http_body::Body<Data = Bytes, Error = io::Error>,
{
    let mut service = service.clone();
    let Ok(()) = poll_fn(|context| service.poll_ready(context)).await;
    let Ok(response) = service.call(request).await;
    let (head, body) = response.into_parts();
    let promised = body.size_hint().exact();
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(promised, Some(body.len() as u64));
    Taken { status: head.status.as_u16(), fields: head.headers, body }
}

pub(crate) async fn get<S, G>(service: &S, target: &str, fields: &[(&str, &str)]) -> Taken
where
    S: Service<Request<String>, Response = Response<G>, Error = Infallible> + Clone,
    G: http_body::Body<Data = Bytes, Error = io::Error>,
{
    send(service, request(Method::GET, target, fields)).await
}
