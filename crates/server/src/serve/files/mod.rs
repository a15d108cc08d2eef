//! `--root`: files of a folder, served from the volume by [`eyewall_files`].

mod fast_path;

use std::io;
use std::path::Path;

use eyewall_files::{Answer, Answered, FileCache, FilePath, Folder, FolderOptions, Found, Refusal, Symlinks};
use eyewall_http::message;
use http::header::LOCATION;
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use super::body::Body;
use super::{NAME, reply};
use crate::config::site::{self, Site};
use eyewall_http::answer::Answer as Sent;

/// The kernel sends files from this length on itself, where it can. Shorter ones are sent by one call from the volume, without probes and
/// checks (docs/decisions/0036).
const SENT_FROM_FILE_MIN: u64 = 256 << 10;

/// The settings for a site's folder.
pub(crate) fn options(site: &Site) -> FolderOptions {
    FolderOptions {
        index: site.index_names().map(str::to_owned).collect(),
        symlinks: match site.followed_links() {
            site::Symlinks::None => Symlinks::None,
            site::Symlinks::Below => Symlinks::Below,
        },
        dotfiles: site.serves_dotfiles(),
        precompressed: site.serves_precompressed(),
    }
}

/// What a path names in a folder.
pub(crate) enum Named {
    /// A file that can be sent.
    File,
    /// Something that the server answers itself: a folder without the slash at the end, or a file that can't be read.
    Answer(Response<Body>),
    /// Nothing that is served.
    Nothing,
}

/// A folder with a volume in front of it.
pub(crate) struct Files {
    folder: Folder,
}

impl Files {
    /// # Errors
    /// The errors of [`Folder::open`].
    pub(crate) fn open(root: &Path, files: &FileCache, options: FolderOptions) -> io::Result<Self> {
        Ok(Self { folder: Folder::open(root, files, options)? })
    }

    /// Whether it serves this folder, with these options.
    pub(crate) fn serves(&self, root: &Path, options: &FolderOptions) -> bool {
        let is_same = std::path::absolute(root).is_ok_and(|root| root == self.folder.root());
        is_same && self.folder.options() == options && root.is_dir()
    }

    /// Answers a GET or a HEAD of a site without origins. `sends_files` says whether the connection can send a file itself.
    pub(crate) async fn answer(&self, request: &Parts, sends_files: bool) -> Response<Body> {
        match self.find_answer(request, sends_files).await {
            Some(response) => response,
            None => self.absent(request),
        }
    }

    /// The answer of a site without origins if the path has no file.
    pub(crate) fn absent(&self, request: &Parts) -> Response<Body> {
        if self.parse(request) == Err(Refusal::Malformed) {
            return reply::error(StatusCode::BAD_REQUEST, "the path is malformed");
        }
        reply::error(StatusCode::NOT_FOUND, "there is nothing at this address")
    }

    /// Answers a GET or a HEAD if its path has a file. If no file can have the path, an origin may know it. A file that can't be read
    /// is a response, 403 or 500.
    pub(crate) async fn find_answer(&self, request: &Parts, sends_files: bool) -> Option<Response<Body>> {
        let path = self.parse(request).ok()?;
        let asked = message::Request { method: &request.method, fields: &request.headers };
        let sent_from_file_min = if sends_files { SENT_FROM_FILE_MIN } else { u64::MAX };
        match self.folder.answer_from_file(&path, asked, sent_from_file_min).await {
            Ok(Answered::File(answer)) => Some(response(*answer)),
            Ok(Answered::Folder) => Some(redirect(&path, request.uri.query())),
            Ok(Answered::Nothing) => None,
            Err(error) => Some(failed(&error)),
        }
    }

    /// What the path of a request names. Nothing is stored.
    pub(crate) async fn named(&self, request: &Parts) -> Named {
        let Ok(path) = self.parse(request) else { return Named::Nothing };
        match self.folder.find(&path).await {
            Ok(Found::File(_)) => Named::File,
            Ok(Found::Folder) => Named::Answer(redirect(&path, request.uri.query())),
            Ok(Found::Nothing) => Named::Nothing,
            Err(error) => Named::Answer(failed(&error)),
        }
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        self.folder.root()
    }

    fn parse(&self, request: &Parts) -> Result<FilePath, Refusal> {
        FilePath::parse(request.uri.path(), self.folder.serves_dotfiles())
    }
}

fn response(answer: Answer) -> Response<Body> {
    let Answer { status, mut fields, body, source } = answer;
    if let Some(told) = source.cache_status() {
        told.append_to(&mut fields, NAME);
    }
    match status {
        StatusCode::PRECONDITION_FAILED => reply::without_content(Sent::PreconditionFailed),
        StatusCode::RANGE_NOT_SATISFIABLE => reply::without_content(Sent::RangeNotSatisfiable(fields)),
        _ => reply::response(status, fields, Body::file(body)),
    }
}

fn redirect(path: &FilePath, query: Option<&str>) -> Response<Body> {
    let location = match query {
        Some(query) => format!("{}?{query}", path.folder_location()),
        None => path.folder_location(),
    };
    let mut response = reply::error(StatusCode::MOVED_PERMANENTLY, "the address of a folder ends with a slash");
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn failed(error: &io::Error) -> Response<Body> {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return reply::error(StatusCode::FORBIDDEN, "the server may not read this file");
    }
    tracing::warn!(%error, "can't read a file");
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
}

#[cfg(test)]
mod tests;
