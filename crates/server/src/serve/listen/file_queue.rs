//! Files that the kernel sends itself (`sendfile`), below hyper.
//!
//! ```text
//! body ── a piece of a file ──────────────> [queue of the connection]
//!   │                                                │ the same piece
//!   └── as many bytes of a stand-in ──> hyper ──> fast path ── sendfile ──> socket
//! ```
//! Hyper makes the head, counts the bytes and keeps the order of responses, as for any body. But it gets bytes of a stand-in, which
//! nobody ever reads. The fast path knows them by their address, and has the kernel send the piece in their place.
//!
//! # Invariants
//! - Hyper never copies bytes of a body on a stream that takes several slices at once, and only such streams send files.
//! - The queue has the pieces in the order of their stand-ins, since hyper writes bodies in the order in which it takes them.
//! - If both don't fit, the connection ends: no byte of a stand-in is written.
//! - The last bytes of a response leave after a check, from memory. So a client never has the whole body of a file that changed before.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use eyewall_files::FilePiece;
use rustix::io::retry_on_intr;
use rustix::net::SendFlags;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// As long as the longest piece. It takes addresses, and no memory, since nobody touches it.
static STAND_IN: LazyLock<Box<[u8]>> = LazyLock::new(|| vec![0; FilePiece::BYTES_MAX].into_boxed_slice());

/// The pieces of files that a connection has to send.
#[derive(Debug, Default)]
pub(crate) struct FileQueue(Mutex<VecDeque<FilePiece>>);

impl FileQueue {
    /// Adds a piece, and returns the stand-in that is to be written at its place.
    ///
    /// # Errors
    /// The piece is too long.
    pub(super) fn push(&self, piece: FilePiece) -> io::Result<Bytes> {
        let range = piece.range();
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let stand_in = STAND_IN.get(..length).ok_or_else(|| io::Error::other("the piece of a file is too long"))?;
        self.pieces().push_back(piece);
        Ok(Bytes::from_static(stand_in))
    }

    /// Sends `head`, and then so many bytes of the first piece, at most, once they are in memory. Returns the number of bytes of both that
    /// have left.
    pub(super) fn poll_send<S: SendFile>(
        &self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        (head, bytes_max): (&[u8], usize),
    ) -> Poll<io::Result<usize>> {
        let mut pieces = self.pieces();
        let Some(piece) = pieces.front_mut() else {
            return Poll::Ready(Err(io::Error::other("there is no file for the bytes of a stand-in")));
        };
        let resident = ready!(piece.poll_resident(context))?;
        let bytes_max = bytes_max.min(usize::try_from(resident).unwrap_or(usize::MAX));
        let sent = ready!(stream.poll_send_file(context, (head, bytes_max), piece))?;
        piece.advance(sent.saturating_sub(head.len()) as u64);
        if piece.range().is_empty() {
            pieces.pop_front();
        }
        Poll::Ready(Ok(sent))
    }

    fn pieces(&self) -> MutexGuard<'_, VecDeque<FilePiece>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether these bytes are those of a stand-in.
pub(super) fn is_stand_in(bytes: &[u8]) -> bool {
    STAND_IN.as_ptr_range().contains(&bytes.as_ptr())
}

/// A stream that may send bytes of files.
pub(super) trait SendFile {
    /// Whether it does.
    fn sends_files(&self) -> bool {
        false
    }

    /// Sends `head`, and then so many bytes of the piece, at most. Returns the number of bytes of both that have left.
    fn poll_send_file(
        self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        _head_and_bytes_max: (&[u8], usize),
        _piece: &FilePiece,
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

impl SendFile for TcpStream {
    fn sends_files(&self) -> bool {
        true
    }

    fn poll_send_file(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: (&[u8], usize),
        piece: &FilePiece,
    ) -> Poll<io::Result<usize>> {
        let attempt = || self.try_io(Interest::WRITABLE, || send(&*self, bytes, piece));
        poll_when_writable(|| self.poll_write_ready(context), attempt)
    }
}

impl SendFile for UnixStream {
    fn sends_files(&self) -> bool {
        true
    }

    fn poll_send_file(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: (&[u8], usize),
        piece: &FilePiece,
    ) -> Poll<io::Result<usize>> {
        let attempt = || self.try_io(Interest::WRITABLE, || send(&*self, bytes, piece));
        poll_when_writable(|| self.poll_write_ready(context), attempt)
    }
}

#[cfg(test)]
impl SendFile for tokio::io::DuplexStream {}

/// Makes attempts until one doesn't find the socket full.
fn poll_when_writable(
    mut is_writable: impl FnMut() -> Poll<io::Result<()>>,
    attempt: impl Fn() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(is_writable())?;
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
    }
}

fn send(socket: impl AsFd, (head, bytes_max): (&[u8], usize), piece: &FilePiece) -> io::Result<usize> {
    let socket = socket.as_fd();
    if !head.is_empty() {
        // Head and body share a segment.
        let flags = SendFlags::MORE | SendFlags::NOSIGNAL;
        let sent = retry_on_intr(|| rustix::net::send(socket, head, flags))?;
        if sent < head.len() {
            return Ok(sent);
        }
    }
    let sent = send_piece(socket, bytes_max, piece);
    if sent.as_ref().is_err_and(eyewall_files::is_changed) {
        // The client needn't get what the kernel still has: TCP drops it, and resets the connection. Unix sockets don't.
        let _ = rustix::net::sockopt::set_socket_linger(socket, Some(Duration::ZERO));
    }
    or_full(sent, head.len())
}

/// Sends some of a piece, which is in memory. No call gives a client the end of a file that has changed before.
fn send_piece(socket: BorrowedFd<'_>, bytes_max: usize, piece: &FilePiece) -> io::Result<usize> {
    let before_end = usize::try_from(piece.bytes_before_end()).unwrap_or(usize::MAX);
    if before_end == 0 {
        return send_end(socket, bytes_max, piece);
    }
    let sent = send_file(socket, before_end.min(bytes_max), piece)?;
    if sent < before_end || bytes_max == before_end {
        // The kernel read the bytes during the call, so the check comes after it. If the file has ended early, the check says so, too.
        piece.check()?;
        return if sent == 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(sent) };
    }
    or_full(send_end(socket, bytes_max - before_end, piece), sent)
}

/// A socket that is full after some bytes has taken these.
fn or_full(sent: io::Result<usize>, before: usize) -> io::Result<usize> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock && before > 0 => Ok(before),
        sent => sent.map(|sent| before + sent),
    }
}

#[expect(clippy::disallowed_methods, reason = "decision 0036: these bytes are those of a file, not of the volume")]
fn send_file(socket: BorrowedFd<'_>, count: usize, piece: &FilePiece) -> io::Result<usize> {
    let mut offset = piece.range().start;
    Ok(retry_on_intr(|| rustix::fs::sendfile(socket, piece.file(), Some(&mut offset), count))?)
}

/// The last bytes of a response, without which it isn't whole. The check before them is also for the bytes that were sent before.
fn send_end(socket: BorrowedFd<'_>, bytes_max: usize, piece: &FilePiece) -> io::Result<usize> {
    let mut room = [0; FilePiece::END_BYTES];
    let end = piece.read_end(&mut room)?;
    let end = &end[..end.len().min(bytes_max)];
    Ok(retry_on_intr(|| rustix::net::send(socket, end, SendFlags::NOSIGNAL))?)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;

    use eyewall::Options;
    use eyewall_files::{Answered, Body, FileCache, FilePath, Folder, FolderOptions};
    use eyewall_http::message::Request;
    use http::{HeaderMap, Method};
    use tokio::net::TcpListener;

    use super::super::connection_state::ConnectionState;
    use super::super::write_timeout::WriteTimeout;
    use super::*;

    /// The body of a file of so many bytes.
    async fn body(folder: &tempfile::TempDir, bytes: u64) -> Option<Body> {
        std::fs::File::create(folder.path().join("file")).unwrap().set_len(bytes).unwrap();
        let cache = FileCache::new(Options::new().size(1 << 20).anonymous().unwrap());
        let served = Folder::open(folder.path(), &cache, FolderOptions::default()).unwrap();
        let (path, fields) = (FilePath::parse("/file", false).unwrap(), HeaderMap::new());
        loop {
            let request = Request { method: &Method::GET, fields: &fields };
            let Answered::File(answer) = served.answer_from_file(&path, request, 1).await.unwrap() else { panic!() };
            if answer.body.is_from_file() {
                return Some(answer.body);
            }
            // Otherwise it has only just changed.
            if answer.fields.contains_key("etag") {
                println!("skipped: the file system doesn't tell what is in memory");
                return None;
            }
        }
    }

    fn push(queue: &FileQueue, body: &mut Body) -> Option<Bytes> {
        Some(queue.push(body.next_file_piece()?).unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_disconnected() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut body) = body(&folder, 256 << 20).await else { return };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::new(ConnectionState::new());
        let (queue, mut stream) = (FileQueue::default(), WriteTimeout::new(stream, Arc::clone(&state)));
        assert!(stream.sends_files());
        let error = loop {
            let stand_in = push(&queue, &mut body).expect("the client takes nothing");
            assert!(is_stand_in(&stand_in));
            let mut left = stand_in.len();
            let ended = loop {
                match poll_fn(|context| queue.poll_send(Pin::new(&mut stream), context, (b"", left))).await {
                    Ok(sent) if sent == left => break None,
                    Ok(sent) => left -= sent,
                    Err(error) => break Some(error),
                }
            };
            if let Some(error) = ended {
                break error;
            }
        };
        assert_eq!((error.kind(), state.is_blocked()), (io::ErrorKind::TimedOut, true));
    }

    #[tokio::test]
    async fn a_stand_in_without_its_file_is_never_written() {
        let (mut near, _far) = tokio::io::duplex(100);
        let queue = FileQueue::default();
        assert!(poll_fn(|context| queue.poll_send(Pin::new(&mut near), context, (b"head", 5))).await.is_err());
        let folder = tempfile::tempdir().unwrap();
        let Some(mut body) = body(&folder, 5).await else { return };
        push(&queue, &mut body).unwrap();
        // This stream can't send files.
        assert!(poll_fn(|context| queue.poll_send(Pin::new(&mut near), context, (b"head", 5))).await.is_err());
        assert!(!is_stand_in(b"head") && push(&queue, &mut body).is_none());
    }
}
