//! `--root`: files of a folder, answered from the volume.
//!
//! Each request asks the file system for the file's stamp; a value is served from the volume only if it was read from
//! the file with exactly this stamp. So a changed file is never served stale, and a hit costs three system calls
//! beside those of the socket. They run on the thread that serves the client, since a local file system answers them
//! from memory; reading a file has threads of its own.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::range;
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use http::header::{ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc::Sender;

use super::body::{Body, Part};
use super::head::{Head, Kind};
use super::path::{FilePath, Refusal};
use super::root::{Root, is_absence};
use super::stamp::Stamp;
use super::store::{Store, Times};
use super::{NAME, reply};

const PIECE_BYTES: usize = 64 << 10;

/// A folder with a volume in front of it.
pub(crate) struct Files {
    root: Root,
    store: Arc<Store>,
}

/// What a path names.
enum Opened {
    File(File, Stamp),
    /// A folder with an index, asked for without the slash at the end.
    Folder,
    Nothing,
}

impl Files {
    pub(crate) fn new(root: Root, store: Arc<Store>) -> Self {
        Self { root, store }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) async fn answer(&self, request: &Parts) -> Response<Body> {
        let path = match FilePath::parse(request.uri.path()) {
            Ok(path) => path,
            Err(Refusal::Malformed) => return reply::error(StatusCode::BAD_REQUEST, "the path is malformed"),
            Err(Refusal::Hidden) => return not_found(),
        };
        match self.open(&path) {
            Ok(Opened::File(file, stamp)) => self.answer_file(request, &path, file, stamp).await,
            Ok(Opened::Folder) => redirect(&path, request.uri.query()),
            Ok(Opened::Nothing) => not_found(),
            Err(error) => failed(&error),
        }
    }

    fn open(&self, path: &FilePath) -> io::Result<Opened> {
        let file = match self.root.find(&path.file()) {
            Err(error) if is_absence(&error) => return Ok(Opened::Nothing),
            other => other?,
        };
        let metadata = file.metadata()?;
        if metadata.is_file() {
            Ok(Opened::File(file, Stamp::of(&metadata)))
        } else if metadata.is_dir() && !path.is_folder && self.root.find(&path.index()).is_ok() {
            Ok(Opened::Folder)
        } else {
            Ok(Opened::Nothing)
        }
    }

    async fn answer_file(&self, request: &Parts, path: &FilePath, file: File, stamp: Stamp) -> Response<Body> {
        let fields = fields(path, &stamp);
        let now = SystemTime::now();
        let current = Representation { status: StatusCode::OK, fields: &fields, received: now };
        if precondition::evaluate(Role::Origin, &request.method, &request.headers, Some(&current))
            == Outcome::NotModified
        {
            return reply::not_modified(&fields);
        }
        let key = self.key(path);
        if let Some(found) = self.store.find(&key)
            && found.head.kind == Kind::File(stamp)
        {
            return respond(request, fields, &CacheStatus::hit(), found.value());
        }
        if request.method == Method::HEAD {
            return unread(fields, &stamp, "head", Body::empty());
        }
        if self.store.has_failed() {
            return unread(fields, &stamp, "volume-failed", stream(file, stamp.bytes));
        }
        if stamp.bytes > self.store.entry_bytes_max() {
            return unread(fields, &stamp, "too-large", stream(file, stamp.bytes));
        }
        if stamp.may_still_change(SystemTime::now()) {
            return unread(fields, &stamp, "just-changed", stream(file, stamp.bytes));
        }
        self.load(request, key, fields, file, stamp).await
    }

    /// Reads a file as a whole, stores it, and answers with what was read.
    async fn load(&self, request: &Parts, key: Vec<u8>, fields: HeaderMap, file: File, stamp: Stamp) -> Response<Body> {
        let store = Arc::clone(&self.store);
        let stored_fields = fields.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let (value, is_whole) = read(file, &stamp)?;
            let value = Bytes::from(value);
            if is_whole {
                let kind = Kind::File(stamp);
                let head = Head { kind, status: StatusCode::OK, fields: stored_fields };
                store.keep(&key, &head, std::slice::from_ref(&value), Times::FOR_GOOD, &[]);
            }
            Ok((value, is_whole))
        });
        match reading.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
            Ok((value, true)) => {
                respond(request, fields, &CacheStatus::forwarded(Forward::UriMiss).stored(true), value)
            }
            Ok((value, false)) => {
                let mut fields = fields;
                drop_validators(&mut fields);
                respond(request, fields, &CacheStatus::forwarded(Forward::UriMiss).detail("just-changed"), value)
            }
            Err(error) => failed(&error),
        }
    }

    /// `file:` and the path with the root, so that servers of several folders can share a volume.
    fn key(&self, path: &FilePath) -> Vec<u8> {
        let path = self.root.path().join(path.file());
        [b"file:", path.as_os_str().as_bytes()].concat()
    }
}

fn respond(request: &Parts, mut fields: HeaderMap, status: &CacheStatus, value: Bytes) -> Response<Body> {
    fields.insert(ACCEPT_RANGES, range::BYTES);
    status.append_to(&mut fields, NAME);
    reply::representation(Role::Origin, request, StatusCode::OK, fields, SystemTime::now(), value)
}

fn fields(path: &FilePath, stamp: &Stamp) -> HeaderMap {
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, content_type(&path.file()));
    let now = SystemTime::now();
    if !stamp.may_still_change(now)
        && let Some(tag) = stamp.etag()
    {
        fields.insert(ETAG, tag);
    }
    // It has whole seconds: within its second, two versions would have the same one.
    let a_second_ago = now.checked_sub(Duration::from_secs(1)).unwrap_or(now);
    if !stamp.may_still_change(a_second_ago)
        && let Some(modified) = stamp.last_modified()
    {
        fields.insert(LAST_MODIFIED, modified);
    }
    fields
}

fn drop_validators(fields: &mut HeaderMap) {
    fields.remove(ETAG);
    fields.remove(LAST_MODIFIED);
}

/// By the name's extension; text is taken to be UTF-8.
fn content_type(path: &Path) -> HeaderValue {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    let text = if guess.type_() == "text" { format!("{guess}; charset=utf-8") } else { guess.to_string() };
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("application/octet-stream"))
}

/// Reads a file that had this stamp, and says whether it had it still afterwards.
fn read(mut file: File, stamp: &Stamp) -> io::Result<(Vec<u8>, bool)> {
    let mut value = Vec::with_capacity(stamp.bytes as usize);
    (&mut file).take(stamp.bytes).read_to_end(&mut value)?;
    let is_whole = value.len() as u64 == stamp.bytes && Stamp::of(&file.metadata()?) == *stamp;
    Ok((value, is_whole))
}

/// A response that goes past the volume.
fn unread(mut fields: HeaderMap, stamp: &Stamp, why: &'static str, body: Body) -> Response<Body> {
    fields.insert(CONTENT_LENGTH, HeaderValue::from(stamp.bytes));
    CacheStatus::forwarded(Forward::UriMiss).detail(why).append_to(&mut fields, NAME);
    reply::response(StatusCode::OK, fields, body)
}

fn stream(file: File, bytes: u64) -> Body {
    let (sender, body) = Body::pumped();
    tokio::spawn(async move {
        let last = match pump(file, bytes, &sender).await {
            Ok(()) => Part::End,
            Err(error) => Part::Failed(error),
        };
        // Nobody to tell if the client is gone.
        let _ = sender.send(last).await;
    });
    body
}

async fn pump(file: File, bytes: u64, sender: &Sender<Part>) -> io::Result<()> {
    let mut file = tokio::fs::File::from_std(file);
    let mut left = bytes;
    while left > 0 {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES.min(usize::try_from(left).unwrap_or(PIECE_BYTES)));
        if file.read_buf(&mut piece).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        left -= piece.len() as u64;
        if sender.send(Part::Piece(piece.freeze())).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
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
