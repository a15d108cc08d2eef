//! One connection to a server: a request is sent, its answer read into a buffer that is kept.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::net::UnixStream;

use crate::error::{Error, Result};

/// An answer's buffer to start with; it doubles until the answer fits.
const ANSWER_BYTES_FIRST: usize = 64 << 10;

/// Values up to this size are copied behind their request and sent with it; a system call costs more than that.
const COPIED_BYTES_MAX: usize = 16 << 10;

const LINE_END: &[u8] = b"\r\n";

/// A connection on which one request at a time is made.
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

    /// Sends `parts` in a row, and the end of a line; returns the first line of the answer.
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

    /// The line that begins at `start` of the answer, without its end.
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

    /// `bytes` of the answer behind a line, which have an end as lines do.
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

    /// The line that follows a line.
    pub(super) fn line_after(&mut self, line: &Range<usize>) -> Result<Range<usize>> {
        self.line(line.end + LINE_END.len())
    }

    /// Bytes of the answer.
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.answer[range]
    }

    /// A number in decimal digits; of an answer that is not as the protocol says it is an error.
    pub(super) fn number(&self, range: Range<usize>) -> Result<u64> {
        let text = std::str::from_utf8(self.bytes(range.clone())).ok();
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.unexpected(range))
    }

    /// The server's answer is an error, or none that the protocol has.
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
