//! The body of a response.

use std::io;
use std::pin::Pin;
use std::sync::{Mutex, Weak};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use httparse::Status;

use super::head::FIELDS_MAX;
use super::{Connection, Idle, PIECE_BYTES_MAX, READ_BYTES, give_back};

/// The most bytes of a line with the size of a chunk, and of all trailers.
const LINES_BYTES_MAX: usize = 16 << 10;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// So many bytes are left.
    Length(u64),
    Chunked(Chunk),
    /// It ends with the connection.
    UntilEnd,
}

impl Framing {
    pub(super) const CHUNKED: Self = Self::Chunked(Chunk::Size);
}

/// The next part of a body in chunks (RFC 9112, section 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    Size,
    /// So many bytes of the chunk.
    Data(u64),
    /// The end of the line behind the data.
    DataEnd,
    Trailers,
}

/// The rest of a body, with its connection.
pub(crate) struct Http1Body {
    /// Until the end of the body.
    connection: Option<Box<Connection>>,
    framing: Framing,
    /// Where the connection goes then. `None`: it is closed.
    pool: Option<Weak<Mutex<Idle>>>,
}

impl Http1Body {
    pub(super) fn new(connection: Box<Connection>, framing: Framing, pool: Option<Weak<Mutex<Idle>>>) -> Self {
        let mut body = Self { connection: Some(connection), framing, pool };
        if framing == Framing::Length(0) {
            body.end();
        }
        body
    }

    /// The body has ended. Bytes behind it belong to no response.
    fn end(&mut self) {
        let connection = self.connection.take().filter(|connection| connection.bytes.is_empty());
        if let (Some(connection), Some(pool)) = (connection, &self.pool) {
            give_back(pool, connection);
        }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Frame<Bytes>>>> {
        loop {
            let Some(connection) = &mut self.connection else { return Poll::Ready(Ok(None)) };
            let bytes = &mut connection.bytes;
            let left = match &mut self.framing {
                Framing::UntilEnd => u64::MAX,
                Framing::Length(left) | Framing::Chunked(Chunk::Data(left)) => *left,
                Framing::Chunked(chunk) => {
                    match chunk.step(bytes)? {
                        Step::Next(next) => *chunk = next,
                        Step::More => ready!(fill(connection, context, READ_BYTES, usize::MAX))?,
                        Step::End(trailers) => {
                            self.end();
                            return Poll::Ready(Ok((!trailers.is_empty()).then(|| Frame::trailers(trailers))));
                        }
                    }
                    continue;
                }
            };
            if bytes.is_empty() {
                let least = if self.framing == Framing::UntilEnd { READ_BYTES } else { PIECE_BYTES_MAX };
                let some = usize::try_from(left).unwrap_or(usize::MAX);
                // The bytes behind the data of a chunk belong to the body, too. One byte behind a length shows that there is more than
                // the response, so that the connection is closed.
                let most = if matches!(self.framing, Framing::Length(_)) { some.saturating_add(1) } else { usize::MAX };
                match ready!(fill(connection, context, some.min(least), most)) {
                    Err(error) if self.framing == Framing::UntilEnd && is_end(&error) => {
                        self.connection = None;
                        return Poll::Ready(Ok(None));
                    }
                    filled => filled?,
                }
                continue;
            }
            let taken = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let piece = bytes.split_to(taken).freeze();
            match &mut self.framing {
                Framing::Chunked(chunk) if left == taken as u64 => *chunk = Chunk::DataEnd,
                Framing::Chunked(Chunk::Data(left)) | Framing::Length(left) => *left -= taken as u64,
                Framing::Chunked(_) | Framing::UntilEnd => {}
            }
            if self.framing == Framing::Length(0) {
                self.end();
            }
            return Poll::Ready(Ok(Some(Frame::data(piece))));
        }
    }
}

impl Drop for Http1Body {
    /// Somebody may not want the rest of a body, such as that of an error. If it has come already, the connection stays.
    fn drop(&mut self) {
        if let (Framing::Length(left), Some(connection)) = (self.framing, &mut self.connection)
            && connection.bytes.len() as u64 == left
        {
            connection.bytes.clear();
            self.end();
        }
    }
}

/// The error of a connection that ended in the middle of a body.
#[derive(Debug, thiserror::Error)]
#[error("the origin closed the connection before the end of the body")]
struct Ended;

fn is_end(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Ended>())
}

/// Reads once, as [`Connection::poll_fill`] does.
fn fill(
    connection: &mut Connection,
    context: &mut Context<'_>,
    bytes: usize,
    bytes_max: usize,
) -> Poll<io::Result<()>> {
    Poll::Ready(match ready!(connection.poll_fill(context, bytes, bytes_max))? {
        0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, Ended)),
        _ => Ok(()),
    })
}

/// What a step has found.
enum Step {
    Next(Chunk),
    /// It needs more bytes.
    More,
    End(HeaderMap),
}

impl Chunk {
    /// Takes what stands around the data of chunks.
    fn step(self, bytes: &mut bytes::BytesMut) -> io::Result<Step> {
        let found = match self {
            Self::Size => match bytes.first() {
                // The parser takes a line without a digit for a size of zero.
                Some(first) if !first.is_ascii_hexdigit() => return Err(malformed()),
                _ => match httparse::parse_chunk_size(bytes).map_err(|_| malformed())? {
                    Status::Complete((length, _)) if !is_line(&bytes[..length]) => return Err(malformed()),
                    Status::Complete((length, 0)) => Some((length, Step::Next(Self::Trailers))),
                    Status::Complete((length, size)) => Some((length, Step::Next(Self::Data(size)))),
                    Status::Partial => None,
                },
            },
            Self::Data(_) => Some((0, Step::Next(self))),
            Self::DataEnd if bytes.starts_with(b"\r\n") => Some((2, Step::Next(Self::Size))),
            Self::DataEnd if bytes.is_empty() || **bytes == *b"\r" => None,
            Self::DataEnd => return Err(malformed()),
            Self::Trailers => trailers(bytes)?.map(|(length, trailers)| (length, Step::End(trailers))),
        };
        match found {
            Some((length, step)) => {
                bytes.advance(length);
                Ok(step)
            }
            None if bytes.len() > LINES_BYTES_MAX => Err(malformed()),
            None => Ok(Step::More),
        }
    }
}

/// The trailer fields, and the length of their lines.
fn trailers(bytes: &[u8]) -> io::Result<Option<(usize, HeaderMap)>> {
    let mut lines = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let parsed = httparse::parse_headers(bytes, &mut lines).map_err(|_| malformed())?;
    let Status::Complete((length, lines)) = parsed else { return Ok(None) };
    if !bytes[..length].split_inclusive(|byte| *byte == b'\n').all(is_line) {
        return Err(malformed());
    }
    let mut trailers = HeaderMap::new();
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| malformed())?;
        trailers.append(name, HeaderValue::from_bytes(line.value).map_err(|_| malformed())?);
    }
    Ok(Some((length, trailers)))
}

/// Whether it ends with CR and LF, and has no other of them: another server in front of the origin must see the same lines.
fn is_line(line: &[u8]) -> bool {
    line.strip_suffix(b"\r\n").is_some_and(|line| !line.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the chunks of the body are malformed")
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let body = self.get_mut();
        let next = ready!(body.poll_next(context));
        if next.is_err() {
            body.connection = None;
        }
        Poll::Ready(next.transpose())
    }

    fn is_end_stream(&self) -> bool {
        self.connection.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length(left) => SizeHint::with_exact(left),
            _ if self.connection.is_none() => SizeHint::with_exact(0),
            Framing::Chunked(_) | Framing::UntilEnd => SizeHint::default(),
        }
    }
}
