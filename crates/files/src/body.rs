//! The body of an answer. Each piece is found or read when the piece before it was taken.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eyewall_http::ranges::Segment;
use http_body::{Frame, SizeHint};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::file::Opened;
use crate::fragment;
use crate::sendable::{FilePiece, Sendable};
use crate::store::{From, Store};

/// The body of an answer, in pieces of at most a mebibyte. Pieces from the volume are its own bytes, pinned until
/// the piece is dropped. No piece is held before it is needed.
///
/// It is asynchronous, by [`http_body::Body`] and [`Body::poll_piece`], which need a Tokio runtime if a piece
/// must be read from storage. It is also an iterator, which blocks.
///
/// It ends with an error if the file can't be read, became shorter, or has changed since the head was made. The
/// body then ends short of its promised length, so the client notices the missing bytes.
pub struct Body {
    /// The stretches still to be sent.
    segments: VecDeque<Segment>,
    /// The source of bytes that may still be read, even if none are left. `None` if no bytes come from a
    /// file.
    store: Option<Arc<Store>>,
    /// `None` if no more bytes come from the file.
    drawn: Option<Box<Drawn>>,
}

/// The source of a file's bytes.
struct Drawn {
    store: Arc<Store>,
    opened: Arc<Opened>,
    /// Whether to store fragments that aren't in the volume.
    is_kept: bool,
    /// The most recent fragment and its number.
    loaded: Option<(u64, Bytes)>,
    loading: Option<JoinHandle<io::Result<(Bytes, From)>>>,
    /// If the caller sends pieces of the file itself.
    sendable: Option<Arc<Sendable>>,
}

/// How to get the next piece.
enum Next {
    Piece(Bytes),
    /// The fragment of this number must be read.
    Fragment(u64),
    End,
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self { segments: VecDeque::new(), store: None, drawn: None }
    }

    /// These segments of a file. `loaded` is a fragment that was already found.
    pub(crate) fn of(
        store: Arc<Store>,
        opened: Arc<Opened>,
        is_kept: bool,
        segments: Vec<Segment>,
        loaded: Option<(u64, Bytes)>,
    ) -> Self {
        let drawn = Drawn { store: Arc::clone(&store), opened, is_kept, loaded, loading: None, sendable: None };
        let mut body = Self { segments: segments.into(), store: Some(store), drawn: Some(Box::new(drawn)) };
        body.drop_empty();
        body
    }

    /// These segments, which are stretches of a file that the caller can send from itself.
    pub(crate) fn from_file(
        store: Arc<Store>,
        opened: Arc<Opened>,
        segments: Vec<Segment>,
        sendable: Arc<Sendable>,
    ) -> Self {
        let mut body = Self::of(store, opened, false, segments, None);
        if let Some(drawn) = &mut body.drawn {
            drawn.sendable = Some(sendable);
        }
        body
    }

    /// Whether its next bytes can be sent from the file itself: by [`Body::next_file_piece`].
    pub fn is_from_file(&self) -> bool {
        self.drawn.as_ref().is_some_and(|drawn| drawn.sendable.is_some())
    }

    /// The next piece of the file, of at most [`FilePiece::BYTES_MAX`], in place of [`Body::poll_piece`]. `None` at the end, and if the body
    /// isn't [from a file](Body::is_from_file). The caller sends the pieces in order.
    pub fn next_file_piece(&mut self) -> Option<FilePiece> {
        let (Some(Segment::Bytes(range)), Some(drawn)) = (self.segments.front_mut(), &self.drawn) else { return None };
        let (sendable, representation) = (drawn.sendable.clone()?, Arc::clone(&drawn.opened.representation));
        let next = range.start..range.end.min(range.start + FilePiece::BYTES_MAX as u64);
        range.start = next.end;
        self.drop_empty();
        Some(FilePiece::new(sendable, representation, next, self.segments.is_empty()))
    }

    /// The number of bytes still to be sent.
    pub fn bytes_left(&self) -> u64 {
        self.segments.iter().map(Segment::length).sum()
    }

    /// Whether bytes of the volume were lost under its map ([`eyewall::Options::survive_sigbus`]): bytes of a
    /// piece that were read before this call may then be zeros. For callers that copy pieces; writing them to
    /// a socket fails by itself.
    pub fn has_lost_bytes(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.has_lost())
    }

    /// The next piece; `None` at the end, and after an error.
    pub fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            let number = match self.advance() {
                Next::Piece(piece) => return Poll::Ready(Some(Ok(piece))),
                Next::End => return Poll::Ready(None),
                Next::Fragment(number) => number,
            };
            let Some(drawn) = &mut self.drawn else { return Poll::Ready(None) };
            if let Some(loading) = &mut drawn.loading {
                let loaded = ready!(Pin::new(loading).poll(context));
                drawn.loading = None;
                match loaded.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())) {
                    Ok((bytes, _)) => drawn.loaded = Some((number, bytes)),
                    Err(error) => return Poll::Ready(Some(Err(self.fail(error)))),
                }
            } else if let Ok(Some(found)) = drawn.store.find(&drawn.opened.representation, number) {
                drawn.loaded = Some((number, found));
            } else {
                let (store, opened, is_kept) = (Arc::clone(&drawn.store), Arc::clone(&drawn.opened), drawn.is_kept);
                drawn.loading =
                    Some(spawn_blocking(move || store.load(&opened.representation, number, is_kept, || opened.file())));
            }
        }
    }

    /// Takes the next piece from the stretches if no read is needed.
    fn advance(&mut self) -> Next {
        let next = match self.segments.front_mut() {
            None => return Next::End,
            Some(Segment::Head(text)) => Next::Piece(std::mem::take(text).into()),
            Some(Segment::Bytes(range)) => {
                let Some(drawn) = &mut self.drawn else { return Next::End };
                let (store, representation) = (&drawn.store, &drawn.opened.representation);
                let number = range.start / store.fragment_bytes;
                let Some((_, bytes)) = drawn.loaded.as_ref().filter(|(loaded, _)| *loaded == number) else {
                    return Next::Fragment(number);
                };
                let whole = fragment::range(number, representation.version.bytes, store.fragment_bytes);
                let end = range.end.min(whole.end);
                let piece = bytes.slice((range.start - whole.start) as usize..(end - whole.start) as usize);
                range.start = end;
                if end == whole.end {
                    // Release it, or it stays pinned while the next one is read.
                    drawn.loaded = None;
                }
                Next::Piece(piece)
            }
        };
        self.drop_empty();
        next
    }

    fn drop_empty(&mut self) {
        while self.segments.front().is_some_and(|segment| segment.length() == 0) {
            self.segments.pop_front();
        }
        if self.segments.is_empty() {
            self.drawn = None;
        }
    }

    /// Nothing follows an error.
    fn fail(&mut self, error: io::Error) -> io::Error {
        self.segments.clear();
        self.drawn = None;
        error
    }
}

/// The pieces, for callers that may block.
impl Iterator for Body {
    type Item = io::Result<Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let number = match self.advance() {
                Next::Piece(piece) => return Some(Ok(piece)),
                Next::End => return None,
                Next::Fragment(number) => number,
            };
            let drawn = self.drawn.as_mut()?;
            // Drop a pending read: after polling, then iterating, a later poll would take it for the
            // next fragment.
            drawn.loading = None;
            let opened = &drawn.opened;
            match drawn.store.load(&opened.representation, number, drawn.is_kept, || opened.file()) {
                Ok((bytes, _)) => drawn.loaded = Some((number, bytes)),
                Err(error) => return Some(Err(self.fail(error))),
            }
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.get_mut().poll_piece(context).map_ok(Frame::data)
    }

    fn is_end_stream(&self) -> bool {
        self.segments.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left())
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("bytes_left", &self.bytes_left()).finish_non_exhaustive()
    }
}
