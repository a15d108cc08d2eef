//! A file that was found, and what a request for it gets.

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
use crate::representation::{Named, Representation};
use crate::root::is_absence;
use crate::store::{Changed, From, Store};

/// A file as it was when it was found, with the precompressed ones beside it. It is good for the requests of that moment: to find it again for the
/// next one costs little. One that was being written when it was found has no validators, and is sent as it comes.
#[derive(Clone)]
pub struct CachedFile {
    store: Arc<Store>,
    /// The plain one first.
    representations: Arc<[Arc<Opened>]>,
}

/// A representation, and its file once that is open.
pub(crate) struct Opened {
    pub(crate) representation: Arc<Representation>,
    tree: Arc<Tree>,
    /// Empty where the representation was known without a look, until it is read from: who replaces the file by another doesn't cut off who is
    /// being sent this one.
    file: OnceLock<Arc<File>>,
    /// Whether its first bytes were read into the volume for the answer to come, which is no hit therefore.
    is_fetched: AtomicBool,
}

impl Opened {
    /// The file with the representation's version. Waits.
    ///
    /// # Errors
    /// The system's; [`Changed`] also where nothing is there any more.
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

/// What a request for a file gets.
#[derive(Debug)]
pub struct Answer {
    /// 200, 206, 304, 412 or 416.
    pub status: StatusCode,
    /// Its header fields, `Content-Length` included, but for `Date`.
    pub fields: HeaderMap,
    /// Its body.
    pub body: Body,
    /// Where the content is from.
    pub source: Source,
}

/// Where the content of an answer is from: the first byte of it, since more may be read when it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// There is none: 304, 412, 416.
    None,
    /// The volume.
    Volume,
    /// The file, and it is in the volume now.
    Stored,
    /// The file alone, for this reason: `head` (nothing was to be sent), `just-changed`, `too-small`, `too-large`, `not-admitted`,
    /// `read-only`, `volume-failed`; or `not-stored`, where the volume couldn't take it.
    File(&'static str),
}

impl Source {
    /// What it is in the field `Cache-Status` (RFC 9211). `None`: the cache had no part in it.
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

/// A representation that is to be sent, but for its body.
struct Head {
    status: StatusCode,
    fields: HeaderMap,
    segments: Vec<Segment>,
}

impl CachedFile {
    /// None where it is no file that was found.
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

    /// Where it lies: an absolute path.
    pub fn path(&self) -> &Path {
        &self.plain().representation.path
    }

    /// How many bytes it has, without a coding.
    pub fn bytes(&self) -> u64 {
        self.plain().representation.version.bytes
    }

    /// When it was last modified, by what the file system says.
    pub fn modified(&self) -> SystemTime {
        let modified_ns = self.plain().representation.version.modified_ns;
        let distance = Duration::from_nanos(modified_ns.unsigned_abs());
        if modified_ns < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
    }

    /// The fields of a 200 without a coding, but for its length: `Content-Type`, `Accept-Ranges`, `Vary` where it is also there precompressed,
    /// `ETag` and `Last-Modified` once it is unchanged for long enough.
    pub fn fields(&self) -> &HeaderMap {
        &self.plain().representation.fields
    }

    /// Whether all of it, without a coding, lies in the volume. May wait for storage.
    pub fn is_cached(&self) -> bool {
        self.store.contains(&self.plain().representation)
    }

    /// All of it without a coding, for who may wait: `file.content().collect::<Result<Vec<_>, _>>()`. It counts as a request.
    pub fn content(&self) -> Body {
        let opened = self.plain();
        let number_of_bytes = opened.representation.version.bytes;
        let is_kept = self.store.why_not(&opened.representation).is_none();
        let loaded = self.store.find(&opened.representation, 0).ok().flatten();
        self.count(&opened.representation, loaded.is_some());
        let segments = vec![Segment::Bytes(0..number_of_bytes)];
        Body::of(Arc::clone(&self.store), Arc::clone(opened), is_kept, segments, loaded.map(|bytes| (0, bytes)))
    }

    /// Makes sure that [`CachedFile::answer_now`] can answer: each representation lies in the volume, or is opened and seen to be what was found. A
    /// file that is there without a coding alone has its first bytes read into the volume. Wants a runtime of Tokio.
    ///
    /// # Errors
    /// As for [`CachedFile::answer`]. [`crate::FileCache::open_prepared`] finds a changed file again.
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
        // Of several representations it isn't known yet which is wanted.
        let [plain] = &*self.representations else { return Ok(()) };
        if self.store.why_not(&plain.representation).is_none() && !self.store.has(&plain.representation, 0) {
            let (_, from) = self.store.load(&plain.representation, 0, true, || plain.file())?;
            plain.is_fetched.store(from == From::Stored, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What a request gets: by its method (GET, or HEAD), `Accept-Encoding`, conditions and ranges. Its first bytes are read before it is
    /// answered, if they aren't in the volume. Wants a runtime of Tokio.
    ///
    /// # Errors
    /// The system's. [`is_changed`] tells whether the file isn't any more what was found: then it is to be found again.
    pub async fn answer(&self, request: Request<'_>) -> io::Result<Answer> {
        let opened = self.choose(request.fields);
        let head = match arrange(&opened.representation, request) {
            Ok(head) => head,
            Err(answer) => return Ok(*answer),
        };
        let Some(number) = self.first_fragment(&head.segments) else {
            return Ok(self.head_alone(opened, head));
        };
        let why_not = self.store.why_not(&opened.representation);
        let (bytes, from) = match self.store.find(&opened.representation, number) {
            Ok(Some(bytes)) => (bytes, From::Volume),
            _ => self.load(opened, number, why_not.is_none()).await?,
        };
        self.count(&opened.representation, from == From::Volume);
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

    /// The same at once, without waiting for anything: what isn't in memory is read when the body is taken. So errors of reading are
    /// the body's, and whether it will be stored isn't known.
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
        self.with_body(opened, head, why_not.is_none(), found.map(|bytes| (number, bytes)), source)
    }

    /// The representation that the client wants most (RFC 9110, section 12.5.3).
    fn choose(&self, request: &HeaderMap) -> &Arc<Opened> {
        &self.representations
            [coding::choose(self.representations.iter().map(|opened| opened.representation.coding), request)]
    }

    /// In which fragment the first byte lies that is to be sent. None where none is.
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

/// Whether an error says that a file isn't any more what was found.
pub fn is_changed(error: &io::Error) -> bool {
    Changed::is(error)
}

/// The head of what is to be sent; or the answer, where that is 304, 412 or 416.
fn arrange(representation: &Representation, request: Request<'_>) -> Result<Head, Box<Answer>> {
    let without = |status, fields| Err(Box::new(Answer { status, fields, body: Body::empty(), source: Source::None }));
    let (now, bytes) = (SystemTime::now(), representation.version.bytes);
    match answer::arrange(Role::Origin, request, StatusCode::OK, representation.fields.clone(), now, bytes, boundary) {
        answer::Answer::NotModified(fields) => {
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
