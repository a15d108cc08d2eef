//! A file as the response of a handler.

use std::io;
use std::ops::Deref;
use std::path::Path;

use eyewall_files::FileCache;
use eyewall_http::message::Request as Asked;
use http::{HeaderMap, Method};
use rocket::Request;
use rocket::response::{self, Responder, Response};

use crate::answer;

/// A file as the response of a handler, like Rocket's `NamedFile`. It pins its bytes in the volume until the last
/// of them was sent.
///
/// The request decides about the response. By `Accept-Encoding` the client gets a precompressed form, if the
/// [`FileCache`] has that enabled; by `If-None-Match` and similar fields a 304 or 412; by `Range` a 206 or 416. A
/// method other than GET and HEAD gets the whole file.
///
/// ```
/// use std::path::Path;
///
/// use eyewall_rocket::{CachedFile, FileCache}; use rocket::{State, get};
///
/// #[get("/report")]
/// async fn report(files: &State<FileCache>) -> Option<CachedFile> {
///     CachedFile::open(Path::new("reports").join("latest.pdf"), files).await.ok()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct CachedFile {
    file: eyewall_files::CachedFile,
    is_unconditional: bool,
}

impl CachedFile {
    /// Opens a file, and reads its first bytes into the volume if they aren't there. It follows symbolic
    /// links wherever they lead. So never build the path from a client's input, unless Rocket's `PathBuf` has
    /// checked it.
    ///
    /// # Errors
    /// The system's error; `NotFound` also for a path that is not a file.
    pub async fn open(path: impl AsRef<Path>, files: &FileCache) -> io::Result<Self> {
        Ok(files.open_prepared(path).await?.into())
    }

    /// Always sends the whole file, with a 200 or the status that it is wrapped in, whatever conditions and
    /// ranges the client sends: for error pages. `Accept-Encoding` still applies.
    pub fn unconditional(mut self) -> Self {
        self.is_unconditional = true;
        self
    }
}

/// With the first bytes if they are in memory; otherwise the body reads them.
impl From<eyewall_files::CachedFile> for CachedFile {
    fn from(file: eyewall_files::CachedFile) -> Self {
        Self { file, is_unconditional: false }
    }
}

/// Prints its path, length, times and fields.
impl Deref for CachedFile {
    type Target = eyewall_files::CachedFile;

    fn deref(&self) -> &Self::Target {
        &self.file
    }
}

impl<'r> Responder<'r, 'static> for CachedFile {
    fn respond_to(self, request: &'r Request<'_>) -> response::Result<'static> {
        Ok(self.respond(request))
    }
}

impl CachedFile {
    fn respond(self, request: &Request<'_>) -> Response<'static> {
        let method = answer::method(request);
        let mut fields = answer::fields(request);
        if self.is_unconditional || method.is_none() {
            let codings = fields.remove(http::header::ACCEPT_ENCODING);
            fields = HeaderMap::from_iter(codings.map(|codings| (http::header::ACCEPT_ENCODING, codings)));
        }
        let method = method.unwrap_or(Method::GET);
        answer::response(self.file.answer_now(Asked { method: &method, fields: &fields }))
    }
}
