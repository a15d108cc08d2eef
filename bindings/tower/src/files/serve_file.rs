//! A file as a service.

use std::convert::Infallible;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};

use eyewall_files::FileCache;
use eyewall_http::message;
use http::request::Parts;
use http::{Request, Response};
use tower_service::Service;

use super::body::Body;
use super::future::ResponseFuture;
use super::reply;

/// Serves one file, whatever the request's path. Clones are the same service.
///
/// It sends precompressed files if [`FileCacheOptions::precompressed`](super::FileCacheOptions::precompressed)
/// says so.
#[derive(Debug, Clone)]
pub struct ServeFile {
    files: FileCache,
    path: Arc<PathBuf>,
    cache_name: Option<Arc<str>>,
}

impl ServeFile {
    /// Serves the file at a path of the program's own, and follows symbolic links wherever they lead. The
    /// file needn't exist yet: until it does, the response is 404. A relative path starts at the present
    /// working directory.
    pub fn new(path: impl AsRef<Path>, files: &FileCache) -> Self {
        let path = path.as_ref();
        // Only an empty path has no absolute form, and it names no file.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self { files: files.clone(), path: Arc::new(path), cache_name: None }
    }

    /// Adds the field `Cache-Status` (RFC 9211) to responses, with this name of the cache. By default they
    /// don't have it.
    pub fn cache_status(self, name: impl Into<Arc<str>>) -> Self {
        Self { cache_name: Some(name.into()), ..self }
    }

    async fn respond(self, request: &Parts) -> Response<Body> {
        let method = &request.method;
        if !reply::is_answered(method) {
            return reply::method_not_allowed(method);
        }
        let asked = message::Request { method, fields: &request.headers };
        match self.files.answer(&*self.path, asked).await {
            Ok(answer) => reply::file(method, answer, self.cache_name.as_deref()),
            Err(error) if is_absence(&error) => reply::not_found(method),
            Err(error) => reply::failed(method, &error),
        }
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidFilename)
}

impl<B> Service<Request<B>> for ServeFile {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (this, (request, _)) = (self.clone(), request.into_parts());
        ResponseFuture::of(async move { this.respond(&request).await })
    }
}
