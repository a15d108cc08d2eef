//! A file that a handler names.

use std::io;
use std::ops::Deref;
use std::path::Path;

use eyewall_files::FileCache;
use eyewall_http::message::Request as Asked;
use http::{HeaderMap, Method};
use rocket::Request;
use rocket::response::{self, Responder, Response};

use crate::answer;

/// A file that a handler answers with, as with Rocket's `NamedFile`. Its bytes are those of the volume, which stay as they are until
/// the last of them was sent.
///
/// The client gets what it asks for: by `Accept-Encoding` a precompressed form, where the [`FileCache`] is told that there are some; by
/// `If-None-Match` and its like, a 304 or 412; by `Range`, a 206 or 416. Requests of other methods than GET and HEAD get all of it.
///
/// ```
/// use std::path::Path;
///
/// use eyewall_rocket::{CachedFile, FileCache};
/// use rocket::{State, get};
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
    /// A file of the file system, with its first bytes read into the volume, if it isn't there. The path is the program's own: symbolic
    /// links are followed wherever they lead, so that it must not be made of what a client sends, unless Rocket's `PathBuf` has
    /// checked that.
    ///
    /// # Errors
    /// The system's; `NotFound` also for what is no file.
    pub async fn open(path: impl AsRef<Path>, files: &FileCache) -> io::Result<Self> {
        Ok(files.open_prepared(path).await?.into())
    }

    /// All of it, with a 200 or the status that it is wrapped in, whatever conditions and ranges the client sends: for pages of
    /// errors. `Accept-Encoding` counts.
    pub fn unconditional(mut self) -> Self {
        self.is_unconditional = true;
        self
    }
}

/// With the first bytes as they are at hand: where they aren't, they are read when the body is.
impl From<eyewall_files::CachedFile> for CachedFile {
    fn from(file: eyewall_files::CachedFile) -> Self {
        Self { file, is_unconditional: false }
    }
}

/// Its path, length, times and fields.
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
