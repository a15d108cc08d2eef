//! One connection to a server. It sends a request, and reads the answer into a buffer that it keeps.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::net::UnixStream;

use crate::error::{Error, Result};

/// The first size of the answer's buffer. It doubles until the answer fits.
const ANSWER_BYTES_FIRST: usize = 64 << 10;

/// Values up to this size are copied to the end of their request and sent with it, since a second system call would
/// cost more.
const COPIED_BYTES_MAX: usize = 16 << 10;

const LINE_END: &[u8] = b"\r\n";

/// A connection with one request at a time.
#[derive(Debug)]
pub(super) struct Connection {
    store: &'static str,
    stream: UnixStream,
    request: Vec<u8>,
    answer: Vec<u8>,
    filled: usize,
}

impl Connection {
    pub(super) fn new(store: &'static str, stream: UnixStream) -> Self {
        Self { store, stream, request: Vec::new(), answer: vec![0; ANSWER_BYTES_FIRST], filled: 0 }
    }

    /// Sends `parts`, one after the other, and the end of a line. Returns the first line of the answer.
    pub(super) fn ask(&mut self, parts: &[&[u8]]) -> Result<Range<usize>> {
        self.request.clear();
        self.filled = 0;
        for part in parts {
            if part.len() > COPIED_BYTES_MAX {
                self.stream.write_all(&self.request).map_err(self.failed("write to"))?;
                self.stream.write_all(part).map_err(self.failed("write to"))?;
                self.request.clear();
            } else {
                self.request.extend_from_slice(part);
            }
        }
        self.request.extend_from_slice(LINE_END);
        self.stream.write_all(&self.request).map_err(self.failed("write to"))?;
        self.line(0)
    }

    /// The line that begins at `start` in the answer, without its line end.
    pub(super) fn line(&mut self, start: usize) -> Result<Range<usize>> {
        let mut looked = start;
        loop {
            let found = self.answer[looked..self.filled].windows(LINE_END.len()).position(|bytes| bytes == LINE_END);
            if let Some(position) = found {
                return Ok(start..looked + position);
            }
            looked = self.filled.saturating_sub(1).max(start);
            self.read()?;
        }
    }

    /// So many `bytes` of the answer after a line. A line end follows them.
    pub(super) fn body(&mut self, line: &Range<usize>, bytes: usize) -> Result<Range<usize>> {
        let body = line.end + LINE_END.len()..line.end + LINE_END.len() + bytes;
        let end = body.end + LINE_END.len();
        while self.filled < end {
            if self.answer.len() < end {
                self.answer.resize(end.next_power_of_two(), 0);
            }
            self.read()?;
        }
        Ok(body)
    }

    /// The line after a line.
    pub(super) fn line_after(&mut self, line: &Range<usize>) -> Result<Range<usize>> {
        self.line(line.end + LINE_END.len())
    }

    /// Bytes of the answer.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.answer[range]
    }

    /// A number in decimal digits; an error if the answer breaks the protocol.
    pub(super) fn number(&self, range: Range<usize>) -> Result<u64> {
        let text = std::str::from_utf8(self.bytes(range.clone())).ok();
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected(range))
    }

    /// The error for an answer that is an error, or that breaks the protocol.
    pub(super) fn unexpected(&self, line: Range<usize>) -> Error {
        Error::Store { store: self.store, what: String::from_utf8_lossy(self.bytes(line)).into_owned() }
    }

    fn read(&mut self) -> Result<()> {
        if self.filled == self.answer.len() {
            self.answer.resize(self.filled * 2, 0);
        }
        let read = self.stream.read(&mut self.answer[self.filled..]).map_err(self.failed("read from"))?;
        if read == 0 {
            return Err(self.failed("read from")(io::ErrorKind::UnexpectedEof.into()));
        }
        self.filled += read;
        Ok(())
    }

    fn failed(&self, verb: &str) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::io(format!("{verb} {}", self.store))
    }
}
