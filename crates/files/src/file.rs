//! A found file, and the answer to a request for it.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use eyewall_http::answer;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::Request;
use eyewall_http::precondition::{self, Role};
use eyewall_http::ranges::{Boundary, Segment};
use http::{HeaderMap, StatusCode};
use tokio::task::spawn_blocking;

use crate::body::Body;
use crate::coding;
use crate::file_version::FileVersion;
use crate::folder::Tree;
use crate::open_files;
use crate::representation::{Named, Representation};
use crate::root::is_absence;
use crate::sendable::Sendable;
use crate::store::{self, Changed, From, Store};

/// A file, and the precompressed ones beside it, at the moment of the look. Use it only for requests of that
/// moment, and look it up again for the next one, which costs little. A file that was being written at the look
/// has no validators, and is sent as it is read.
#[derive(Clone)]
pub struct CachedFile {
    store: Arc<Store>,
    /// The plain representation first.
    representations: Arc<[Arc<Opened>]>,
}

/// A representation, and its file once it is open.
pub(crate) struct Opened {
    pub(crate) representation: Arc<Representation>,
    tree: Arc<Tree>,
    /// Empty, until it is read from, if the representation was known without a look. An open file stays
    /// readable after it was replaced.
    file: OnceLock<Arc<File>>,
    /// Whether its first bytes were just read into the volume for this answer, which then isn't a hit.
    is_fetched: AtomicBool,
}

impl Opened {
    /// Opens the file, which must have the representation's version. It blocks.
    ///
    /// # Errors
    /// The system's error; [`Changed`] also if the file is gone.
    pub(crate) fn file(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.file.get() {
            return Ok(Arc::clone(file));
        }
        let file = match self.tree.open(&self.representation.below) {
            Err(error) if is_absence(&error) => return Err(io::Error::other(Changed)),
            other => other?,
        };
        if FileVersion::of(&file.metadata()?) != self.representation.version {
            return Err(io::Error::other(Changed));
        }
        Ok(Arc::clone(self.file.get_or_init(|| Arc::new(file))))
    }
}

/// The answer to a request for a file.
#[derive(Debug)]
pub struct Answer {
    /// 200, 206, 304, 412 or 416.
    pub status: StatusCode,
    /// Its header fields, including `Content-Length`, except `Date`.
    pub fields: HeaderMap,
    /// Its body.
    pub body: Body,
    /// The source of its content.
    pub source: Source,
}

/// The source of the first byte of an answer. The rest may still be read when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// No content: 304, 412, 416.
    None,
    /// The volume.
    Volume,
    /// The file, which is now in the volume.
    Stored,
    /// Only the file, for this reason: `head` (nothing to be sent), `sendfile`, `just-changed`, `too-small`, `too-large`,
    /// `not-admitted`, `asked-once` (it would displace much of the volume, and is kept at the next request), `read-only`, `volume-failed`; or `not-stored` if the volume couldn't take it.
    File(&'static str),
}

impl Source {
    /// Its member of the field `Cache-Status` (RFC 9211). `None` if the cache wasn't involved.
    pub fn cache_status(self) -> Option<CacheStatus> {
        let miss = CacheStatus::forwarded(Forward::UriMiss);
        match self {
            Self::None => None,
            Self::Volume => Some(CacheStatus::hit()),
            Self::Stored => Some(miss.stored(true)),
            Self::File(why_not) => Some(miss.detail(why_not)),
        }
    }
}

/// A representation to be sent, without its body.
pub(crate) struct Head {
    status: StatusCode,
    pub(crate) fields: HeaderMap,
    segments: Vec<Segment>,
}

impl CachedFile {
    /// `None` if it isn't from a found file.
    pub(crate) fn new(store: &Arc<Store>, tree: &Arc<Tree>, named: &Named, files: Vec<File>) -> Option<Self> {
        let Named::File(representations) = named else { return None };
        let mut files = files.into_iter().map(Arc::new);
        let opened = representations.iter().map(|representation| {
            let (file, is_fetched) = (files.next().map(OnceLock::from).unwrap_or_default(), AtomicBool::new(false));
            Arc::new(Opened { representation: Arc::clone(representation), tree: Arc::clone(tree), file, is_fetched })
        });
        Some(Self { store: Arc::clone(store), representations: opened.collect() })
    }

    fn plain(&self) -> &Arc<Opened> {
        &self.representations[0]
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.plain().representation.path
    }

    /// Its length in bytes, without a coding.
    pub fn bytes(&self) -> u64 {
        self.plain().representation.version.bytes
    }

    /// Its time of modification in the file system.
    pub fn modified(&self) -> SystemTime {
        let modified_ns = self.plain().representation.version.modified_ns;
        let distance = Duration::from_nanos(modified_ns.unsigned_abs());
        if modified_ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
    }

    /// The fields of a 200 without a coding, except the length: `Content-Type` and `Accept-Ranges`; `Vary` if
    /// there are precompressed forms; `ETag` and `Last-Modified` once it has been unchanged for long enough.
    pub fn fields(&self) -> &HeaderMap {
        &self.plain().representation.fields
    }

    /// Whether the volume has all of it, without a coding. May wait for storage.
    pub fn is_cached(&self) -> bool {
        self.store.contains(&self.plain().representation)
    }

    /// Its content without a coding, for callers that may block:
    /// `file.content().collect::<Result<Vec<_>, _>>()`. It counts as a request.
    pub fn content(&self) -> Body {
        self.content_unless(self.store.why_not(&self.plain().representation))
    }

    /// The same. It is kept even if it displaces much.
    pub(crate) fn content_to_keep(&self) -> Body {
        self.content_unless(self.store.why_never(&self.plain().representation))
    }

    fn content_unless(&self, why_not: Option<&'static str>) -> Body {
        let opened = self.plain();
        let number_of_bytes = opened.representation.version.bytes;
        let is_kept = why_not.is_none();
        self.store.note_request(&opened.representation, why_not);
        let loaded = self.store.find(&opened.representation, 0).ok().flatten();
        self.count(&opened.representation, loaded.is_some());
        let segments = vec![Segment::Bytes(0..number_of_bytes)];
        Body::of(Arc::clone(&self.store), Arc::clone(opened), is_kept, segments, loaded.map(|bytes| (0, bytes)))
    }

    /// Makes sure that [`CachedFile::answer_now`] can answer: each form is in the volume, or is open and
    /// unchanged. The first bytes of a file without precompressed forms are read into the volume. It needs a
    /// Tokio runtime.
    ///
    /// # Errors
    /// As for [`CachedFile::answer`]. [`crate::FileCache::open_prepared`] looks a changed file up again.
    pub async fn prepare(&self) -> io::Result<()> {
        if self.representations.iter().all(|opened| self.store.is_likely_resident(&opened.representation)) {
            return Ok(());
        }
        let this = self.clone();
        let preparing = spawn_blocking(move || this.prepare_blocking());
        preparing.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }

    fn prepare_blocking(&self) -> io::Result<()> {
        for opened in self.representations.iter().filter(|opened| !self.store.contains(&opened.representation)) {
            opened.file()?;
        }
        // The request, which selects one of several representations, isn't known yet.
        let [plain] = &*self.representations else { return Ok(()) };
        if self.store.why_not(&plain.representation).is_none() && !self.store.has(&plain.representation, 0) {
            let (_, from) = self.store.load(&plain.representation, 0, true, || plain.file())?;
            plain.is_fetched.store(from == From::Stored, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Answers a request by its method (GET or HEAD), `Accept-Encoding`, conditions and ranges. It reads the
    /// first bytes if they aren't in the volume. It needs a Tokio runtime.
    ///
    /// # Errors
    /// The system's error. [`is_changed`] tells whether the file has changed since the look: then look it up
    /// again.
    pub async fn answer(&self, request: Request<'_>) -> io::Result<Answer> {
        self.answer_from_file(request, u64::MAX).await
    }

    /// The same for callers that can send bytes of a file themselves, by `sendfile`. If the file has at least so many bytes, and all of it
    /// or one range is to be sent, the body consists of pieces of the file ([`Body::is_from_file`]). The volume neither gets nor
    /// gives any. Files that were just changed, and those on file systems of other machines or without word of what is in memory,
    /// are sent as by [`CachedFile::answer`].
    ///
    /// # Errors
    /// As for [`CachedFile::answer`].
    pub async fn answer_from_file(&self, request: Request<'_>, bytes_min: u64) -> io::Result<Answer> {
        let opened = self.choose(request.fields);
        let head = match arrange(&opened.representation, request) {
            Ok(head) => head,
            Err(answer) => return Ok(*answer),
        };
        let Some(number) = self.first_fragment(&head.segments) else {
            return Ok(self.head_alone(opened, head));
        };
        if opened.representation.version.bytes >= bytes_min
            && matches!(head.segments[..], [Segment::Bytes(_)])
            && let Some(sendable) = self.sendable(opened).await?
        {
            self.count(&opened.representation, false);
            let Head { status, fields, segments } = head;
            let body = Body::from_file(Arc::clone(&self.store), Arc::clone(opened), segments, sendable);
            return Ok(Answer { status, fields, body, source: Source::File("sendfile") });
        }
        let why_not = self.store.why_not(&opened.representation);
        let (bytes, from) = match self.store.find(&opened.representation, number) {
            Ok(Some(bytes)) => (bytes, From::Volume),
            _ => self.load(opened, number, why_not.is_none()).await?,
        };
        self.count(&opened.representation, from == From::Volume);
        self.store.note_request(&opened.representation, why_not);
        let source = match from {
            From::Volume => Source::Volume,
            From::Stored => Source::Stored,
            // The volume may just have failed.
            From::File => {
                Source::File(why_not.or_else(|| self.store.why_not(&opened.representation)).unwrap_or("not-stored"))
            }
        };
        Ok(self.with_body(opened, head, why_not.is_none(), Some((number, bytes)), source))
    }

    /// Answers without waiting: the body reads the bytes that aren't in memory. So read errors occur in the
    /// body, and it isn't known yet whether the file will be stored.
    pub fn answer_now(&self, request: Request<'_>) -> Answer {
        let opened = self.choose(request.fields);
        let head = match arrange(&opened.representation, request) {
            Ok(head) => head,
            Err(answer) => return *answer,
        };
        let Some(number) = self.first_fragment(&head.segments) else {
            return self.head_alone(opened, head);
        };
        let why_not = self.store.why_not(&opened.representation);
        let found = self.store.find(&opened.representation, number).ok().flatten();
        let source = match &found {
            Some(_) if number == 0 && opened.is_fetched.swap(false, Ordering::Relaxed) => Source::Stored,
            Some(_) => Source::Volume,
            None => Source::File(why_not.unwrap_or("not-stored")),
        };
        self.count(&opened.representation, source == Source::Volume);
        self.store.note_request(&opened.representation, why_not);
        self.with_body(opened, head, why_not.is_none(), found.map(|bytes| (number, bytes)), source)
    }

    /// The open file, if it can be sent from itself.
    async fn sendable(&self, opened: &Arc<Opened>) -> io::Result<Option<Arc<Sendable>>> {
        let representation = &opened.representation;
        if representation.is_unsettled || representation.is_sendable.get() == Some(&false) {
            return Ok(None);
        }
        let sendable = match representation.open.find() {
            Some(open) => open,
            None => match self.open_sendable(opened).await? {
                Some(open) => open,
                None => return Ok(None),
            },
        };
        // Nothing may have told of a change since the look.
        if !store::is_current(representation, sendable.file())? {
            return Err(io::Error::other(Changed));
        }
        open_files::keep(&self.store, &sendable);
        Ok(Some(sendable))
    }

    async fn open_sendable(&self, opened: &Arc<Opened>) -> io::Result<Option<Arc<Sendable>>> {
        let to_open = Arc::clone(opened);
        let opening = spawn_blocking(move || to_open.file().map(|file| Sendable::of(&file)));
        let sendable = match opening.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
            Ok(sendable) => sendable,
            Err(error) if is_changed(&error) => return Err(error),
            // The volume may have it.
            Err(_) => return Ok(None),
        };
        let _ = opened.representation.is_sendable.set(sendable.is_some());
        Ok(sendable.map(|sendable| opened.representation.open.share(sendable)))
    }

    /// The representation that the client prefers (RFC 9110, section 12.5.3).
    fn choose(&self, request: &HeaderMap) -> &Arc<Opened> {
        &self.representations
            [coding::choose(self.representations.iter().map(|opened| opened.representation.coding), request)]
    }

    /// The fragment of the first byte to be sent. `None` if nothing is.
    fn first_fragment(&self, segments: &[Segment]) -> Option<u64> {
        segments.iter().find_map(|segment| match segment {
            Segment::Bytes(range) => Some(range.start / self.store.fragment_bytes),
            Segment::Head(_) => None,
        })
    }

    async fn load(&self, opened: &Arc<Opened>, number: u64, is_kept: bool) -> io::Result<(Bytes, From)> {
        let (store, opened) = (Arc::clone(&self.store), Arc::clone(opened));
        let loading = spawn_blocking(move || store.load(&opened.representation, number, is_kept, || opened.file()));
        loading.await.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
    }

    fn count(&self, representation: &Representation, is_hit: bool) {
        if is_hit {
            self.store.counters.count_hit(&representation.counters);
        } else {
            self.store.counters.count_miss(&representation.counters);
        }
    }

    fn head_alone(&self, opened: &Opened, head: Head) -> Answer {
        let is_there = self.store.has_resident(&opened.representation, 0);
        let source = if is_there { Source::Volume } else { Source::File("head") };
        Answer { status: head.status, fields: head.fields, body: Body::empty(), source }
    }

    fn with_body(
        &self,
        opened: &Arc<Opened>,
        head: Head,
        is_kept: bool,
        loaded: Option<(u64, Bytes)>,
        source: Source,
    ) -> Answer {
        let body = Body::of(Arc::clone(&self.store), Arc::clone(opened), is_kept, head.segments, loaded);
        Answer { status: head.status, fields: head.fields, body, source }
    }
}

/// Whether an error means that the file has changed since the look.
pub fn is_changed(error: &io::Error) -> bool {
    Changed::is(error)
}

/// The head of the representation; or the answer, if it is 304, 412 or 416.
pub(crate) fn arrange(representation: &Representation, request: Request<'_>) -> Result<Head, Box<Answer>> {
    let without = |status, fields| Err(Box::new(Answer { status, fields, body: Body::empty(), source: Source::None }));
    let (now, bytes) = (SystemTime::now(), representation.version.bytes);
    match answer::arrange(Role::Origin, request, StatusCode::OK, representation.fields.clone(), now, bytes, boundary) {
        answer::Answer::NotModified(_, fields) => {
            without(StatusCode::NOT_MODIFIED, precondition::fields_of_not_modified(&fields, &[]))
        }
        answer::Answer::PreconditionFailed => without(StatusCode::PRECONDITION_FAILED, HeaderMap::new()),
        answer::Answer::RangeNotSatisfiable(fields) => without(StatusCode::RANGE_NOT_SATISFIABLE, fields),
        answer::Answer::Head(status, fields) => Ok(Head { status, fields, segments: Vec::new() }),
        answer::Answer::Content(status, fields, segments) => Ok(Head { status, fields, segments }),
    }
}

/// `None` only if the system has no randomness: then there are no multipart answers.
fn boundary() -> Option<Boundary> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).ok()?;
    Some(Boundary::of_bits(u128::from_ne_bytes(bits)))
}

impl fmt::Debug for CachedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedFile").field("path", &self.path()).field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
