//! `--root`: files of a folder, answered from the volume.
//!
//! ```text
//! request -- path --> folder: what is there?   memory: known, since nothing has changed     watches, walk
//!                                              root: the kernel's answer, below the root    stamp
//!         -- coding --> one of its forms --> volume, or content: the file's bytes
//! ```
//! A value is served from the volume only if it was read from the file with exactly the stamp that the file has. So a changed file
//! is never served stale. A hit on what is known costs one system call beside those of the socket, and waits for nothing; all that
//! asks the file system has threads of its own.

mod coding;
mod content;
mod folder;
mod memory;
mod path;
mod root;
mod stamp;
mod walk;
mod watches;

use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use http::header::{ETAG, LAST_MODIFIED, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::body::Body;
use super::head::{Head, Kind};
use super::store::{Store, Times};
use super::{NAME, reply};
use crate::config::site::{Site, Symlinks};
use folder::{Folder, Form, Found, Look};
use path::{FilePath, Refusal};
pub(crate) use root::Root;
pub(crate) use stamp::Stamp;

/// What of a folder is served.
#[derive(Debug, Clone)]
pub(crate) struct FilesSettings {
    /// Names of the files that stand for their folder: the first that is there.
    pub(crate) index: Vec<String>,
    /// Which symbolic links below the root are followed.
    pub(crate) symlinks: Symlinks,
    /// Whether names that begin with a dot are served.
    pub(crate) dotfiles: bool,
    /// Whether packed files are served in the place of those that they lie beside.
    pub(crate) precompressed: bool,
}

impl FilesSettings {
    /// As the configuration of a site has them.
    pub(crate) fn of(site: &Site) -> Self {
        Self {
            index: site.index_names().map(str::to_owned).collect(),
            symlinks: site.followed_links(),
            dotfiles: site.serves_dotfiles(),
            precompressed: site.serves_precompressed(),
        }
    }
}

#[cfg(test)]
impl Default for FilesSettings {
    fn default() -> Self {
        Self::of(&Site::default())
    }
}

/// A folder with a volume in front of it.
pub(crate) struct Files {
    folder: Arc<Folder>,
    store: Arc<Store>,
}

impl Files {
    pub(crate) fn new(root: Root, store: Arc<Store>, settings: FilesSettings) -> Self {
        Self { folder: Arc::new(Folder::new(root, settings)), store }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.root()
    }

    /// Answers a GET or a HEAD where there is nobody else to ask.
    pub(crate) async fn answer(&self, request: &Parts) -> Response<Body> {
        match self.find_answer(request).await {
            Some(response) => response,
            None if self.parse(request) == Err(Refusal::Malformed) => {
                reply::error(StatusCode::BAD_REQUEST, "the path is malformed")
            }
            None => not_found(),
        }
    }

    /// Answers a GET or a HEAD, if there is something at its path. A path that no file can have is nothing, too: another may know
    /// it. What is there and can't be read is an answer, 403 or 500.
    pub(crate) async fn find_answer(&self, request: &Parts) -> Option<Response<Body>> {
        let path = self.parse(request).ok()?;
        self.answer_path(request, &path).await
    }

    fn parse(&self, request: &Parts) -> Result<FilePath, Refusal> {
        FilePath::parse(request.uri.path(), self.folder.serves_dotfiles())
    }

    async fn answer_path(&self, request: &Parts, path: &FilePath) -> Option<Response<Body>> {
        let now = SystemTime::now();
        let known = self.folder.recall(path);
        let mut is_known = known.is_some();
        let mut look = match known {
            Some(known) => known,
            None => match self.look(path, now).await {
                Ok(look) => look,
                Err(error) => return Some(failed(&error)),
            },
        };
        loop {
            let forms = match &*look.found {
                Found::Nothing => return None,
                Found::Folder => return Some(redirect(path, request.uri.query())),
                Found::File(forms) => forms,
            };
            let chosen = coding::choose(forms.iter().map(|form| form.coding), &request.headers);
            let form = &forms[chosen];
            if let Some(response) = self.answer_without_file(request, form, now) {
                return Some(response);
            }
            if !is_known {
                let file = look.files.swap_remove(chosen);
                return Some(self.answer_file(request, form, file, now).await);
            }
            // What is known has no open file.
            is_known = false;
            look = match self.look(path, now).await {
                Ok(look) => look,
                Err(error) => return Some(failed(&error)),
            };
        }
    }

    async fn look(&self, path: &FilePath, now: SystemTime) -> io::Result<Look> {
        let (folder, path) = (Arc::clone(&self.folder), path.clone());
        let looking = tokio::task::spawn_blocking(move || folder.look(&path, now));
        looking.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }

    /// 304 or 412, what the volume has, or the head alone.
    fn answer_without_file(&self, request: &Parts, form: &Form, now: SystemTime) -> Option<Response<Body>> {
        let (role, code) = (Role::Origin, StatusCode::OK);
        if let Some(response) = reply::without_content(role, request, code, &form.fields, now) {
            return Some(response);
        }
        if let Some(found) = self.store.find(&self.key(form))
            && found.head.kind == Kind::File(form.stamp)
        {
            let fields = with_status(form.fields.clone(), &CacheStatus::hit());
            return Some(reply::representation(role, request, code, fields, now, &found.value()));
        }
        (request.method == Method::HEAD).then(|| {
            let fields = with_status(form.fields.clone(), &CacheStatus::forwarded(Forward::UriMiss).detail("head"));
            reply::representation_of(role, request, code, fields, now, form.stamp.bytes, |_| Body::empty())
        })
    }

    async fn answer_file(&self, request: &Parts, form: &Form, file: File, now: SystemTime) -> Response<Body> {
        let why = if self.store.has_failed() {
            "volume-failed"
        } else if form.stamp.bytes > self.store.entry_bytes_max() {
            "too-large"
        } else if form.stamp.may_still_change(now) {
            "just-changed"
        } else {
            return self.load(request, form, file, now).await;
        };
        let fields = with_status(form.fields.clone(), &CacheStatus::forwarded(Forward::UriMiss).detail(why));
        let body = |stretches| content::stream(file, stretches);
        reply::representation_of(Role::Origin, request, StatusCode::OK, fields, now, form.stamp.bytes, body)
    }

    /// Reads a file as a whole, stores it, and answers with what was read.
    async fn load(&self, request: &Parts, form: &Form, file: File, now: SystemTime) -> Response<Body> {
        let (store, key, stamp) = (Arc::clone(&self.store), self.key(form), form.stamp);
        let head = Head { kind: Kind::File(stamp), status: StatusCode::OK, fields: form.fields.clone() };
        let begun = store.epoch();
        let reading = tokio::task::spawn_blocking(move || {
            let (value, is_whole) = content::read(file, &stamp)?;
            let value = Bytes::from(value);
            if is_whole {
                store.keep(&key, &head, std::slice::from_ref(&value), Times::FOR_GOOD, &[], begun);
            }
            Ok((value, is_whole))
        });
        let miss = CacheStatus::forwarded(Forward::UriMiss);
        let (fields, value) = match reading.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
            Ok((value, true)) => (with_status(form.fields.clone(), &miss.stored(true)), value),
            Ok((value, false)) => {
                let mut fields = with_status(form.fields.clone(), &miss.detail("just-changed"));
                fields.remove(ETAG);
                fields.remove(LAST_MODIFIED);
                (fields, value)
            }
            Err(error) => return failed(&error),
        };
        reply::representation(Role::Origin, request, StatusCode::OK, fields, now, &value)
    }

    /// `file:` and the path with the root, so that servers of several folders can share a volume.
    fn key(&self, form: &Form) -> Vec<u8> {
        let path = self.folder.root().join(&form.path);
        [b"file:", path.as_os_str().as_bytes()].concat()
    }
}

fn with_status(mut fields: HeaderMap, status: &CacheStatus) -> HeaderMap {
    status.append_to(&mut fields, NAME);
    fields
}

fn redirect(path: &FilePath, query: Option<&str>) -> Response<Body> {
    let location = match query {
        Some(query) => format!("{}?{query}", path.folder_location()),
        None => path.folder_location(),
    };
    let mut response = reply::error(StatusCode::MOVED_PERMANENTLY, "a folder's address ends with a slash");
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

fn not_found() -> Response<Body> {
    reply::error(StatusCode::NOT_FOUND, "there is nothing at this address")
}

fn failed(error: &io::Error) -> Response<Body> {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return reply::error(StatusCode::FORBIDDEN, "the server may not read this file");
    }
    tracing::warn!(%error, "a file could not be read");
    reply::error(StatusCode::INTERNAL_SERVER_ERROR, "the file could not be read")
}

#[cfg(test)]
mod tests;
