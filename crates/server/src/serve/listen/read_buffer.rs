//! Bytes of a client that nobody has read yet.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Room for heads. Hyper handles longer ones, and has its own limit.
const BUFFER_BYTES: usize = 16 << 10;

thread_local! {
    // Connections share them: most have nothing to keep between two requests.
    static BUFFER: Cell<Box<[u8]>> = Cell::default();
    static HEAD: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    static COPY: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Bytes in the order in which they came.
#[derive(Default)]
pub(super) struct ReadBuffer {
    /// [`BUFFER_BYTES`], or none if there is nothing to keep.
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether it is full.
    pub(super) fn is_full(&self) -> bool {
        self.end - self.start == BUFFER_BYTES
    }

    /// Reads once from the client, if there is room. Returns the number of bytes, 0 at the end of the stream.
    pub(super) fn poll_fill(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.buffer.is_empty() {
            self.buffer = BUFFER.take();
            if self.buffer.is_empty() {
                self.buffer = vec![0; BUFFER_BYTES].into_boxed_slice();
            }
        }
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        let read = Pin::new(stream).poll_read(context, &mut room);
        let count = room.filled().len();
        self.end += count;
        self.let_go();
        ready!(read)?;
        Poll::Ready(Ok(count))
    }

    /// Gives at most this many bytes to a reader: as many as there are, and as the reader has room for.
    pub(super) fn give(&mut self, reader: &mut ReadBuf<'_>, bytes_max: u64) -> u64 {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let count = self.bytes().len().min(reader.remaining()).min(bytes_max);
        reader.put_slice(&self.bytes()[..count]);
        self.consume(count);
        count as u64
    }

    /// Replaces some of its bytes by others, which are not longer.
    pub(super) fn rewrite(&mut self, range: Range<usize>, with: &[u8]) {
        let (from, to) = (self.start + range.start, self.start + range.end);
        self.buffer[from..from + with.len()].copy_from_slice(with);
        self.buffer.copy_within(to..self.end, from + with.len());
        self.end -= range.len() - with.len();
    }

    /// The first bytes were used.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        // While a slow client takes its response, other connections can use the buffer.
        self.let_go();
    }

    fn let_go(&mut self) {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            BUFFER.set(std::mem::take(&mut self.buffer));
        }
    }
}

/// An empty vector for the head of a response. Another connection may have used it.
pub(super) fn spare_head() -> Vec<u8> {
    HEAD.take()
}

/// The most bytes of [`with_copy`]: as many as rustls encrypts before the socket takes them.
const COPY_BYTES_MAX: usize = 64 << 10;

/// Passes a copy of the beginning of both to a function.
pub(super) fn with_copy<T>(head: &[u8], value: &[u8], pass: impl FnOnce(&[u8]) -> T) -> T {
    let mut copy = COPY.take();
    copy.clear();
    for bytes in [head, value] {
        copy.extend_from_slice(&bytes[..bytes.len().min(COPY_BYTES_MAX - copy.len())]);
    }
    let passed = pass(&copy);
    COPY.set(copy);
    passed
}

/// Keeps one for [`spare_head`].
pub(super) fn keep_head(head: Vec<u8>) {
    HEAD.set(head);
}
