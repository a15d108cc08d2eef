//! One connection, and how far the answer on it has come.
//!
//! ```text
//! begin -> opened: send -> Head, until the blank line -> Body, until Content-Length -> answered: send again
//! ```

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with};

use super::head::{self, Head};
use super::report::Kind;
use crate::error::Error;

/// The size of a read that looks for a head: it brings small answers whole, and copies little of large ones.
const HEAD_READ: usize = 2 << 10;
/// How much of a body is dropped in one call at most.
const DISCARD_MAX: usize = 4 << 20;
/// For a connection to be there, and each step of its first answer.
const FIRST_SECONDS: Duration = Duration::from_secs(10);

/// What all connections read into.
pub(crate) struct Buffers {
    head: Box<[u8]>,
    /// Never written to, so never backed by memory: it only says how much the kernel is to drop.
    discarded: Box<[u8]>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { head: vec![0; HEAD_READ].into(), discarded: vec![0; DISCARD_MAX].into() }
    }
}

/// A connection with a request on its way.
pub(crate) struct Connection {
    stream: TcpStream,
    /// When the request was sent, or the connection begun for its first one.
    asked_at: Instant,
    /// Whether the request waits for the connection to be there.
    opens: bool,
    /// Of the body that the request is for.
    length: u64,
    /// The bytes so far of a head that isn't whole.
    begun: Vec<u8>,
    /// The head, once it is there.
    head: Option<Head>,
    /// Of the body, still to come.
    rest: u64,
}

/// What became of the bytes that were there.
#[derive(Debug)]
pub(crate) enum Progress {
    /// There is more to come.
    Waits,
    /// The answer is whole; it had so many bytes, its head included.
    Answered { bytes: u64, closes: bool },
    /// The connection is of no use any more.
    Failed(Kind),
}

/// The fault of a first answer.
#[derive(Debug)]
pub(crate) enum Unfit {
    Kind(Kind),
    Closes,
    Io(io::Error),
}

impl Unfit {
    /// In words, with the connection's number.
    pub(crate) fn of(self, connection: usize) -> Error {
        let what = match self {
            Self::Kind(Kind::Status) => "is not 200".to_owned(),
            Self::Kind(Kind::Length) => "has another length than the reference, or none".to_owned(),
            Self::Kind(Kind::Body) => "has other bytes than the reference".to_owned(),
            Self::Kind(Kind::Read) => "ends too early".to_owned(),
            Self::Kind(_) => "is none of HTTP/1".to_owned(),
            Self::Closes => "is the last, since the server closes the connection".to_owned(),
            Self::Io(failure) => format!("did not come: {failure}"),
        };
        Error::FirstAnswer { connection, what }
    }
}

impl From<io::Error> for Unfit {
    fn from(failure: io::Error) -> Self {
        if failure.kind() == io::ErrorKind::UnexpectedEof { Self::Kind(Kind::Read) } else { Self::Io(failure) }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Connection {
    /// One that blocks, for its first answer.
    pub(crate) fn open(peer: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&peer, FIRST_SECONDS)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(FIRST_SECONDS))?;
        Ok(Self::on(stream, Instant::now(), false))
    }

    /// One that doesn't block, and is there, or refused, when an event says so.
    pub(crate) fn begin(peer: SocketAddr, now: Instant) -> io::Result<Self> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        match connect(&socket, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(refused) => return Err(refused.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self::on(stream, now, true))
    }

    fn on(stream: TcpStream, asked_at: Instant, opens: bool) -> Self {
        Self { stream, asked_at, opens, length: 0, begun: Vec::new(), head: None, rest: 0 }
    }

    pub(crate) fn no_longer_blocks(&self) -> io::Result<()> {
        self.stream.set_nonblocking(true)
    }

    /// Asks, and holds the whole answer against `reference`.
    pub(crate) fn first_answer(&mut self, request: &[u8], reference: &[u8]) -> Result<(), Unfit> {
        self.stream.write_all(request)?;
        let mut received = Vec::new();
        let head = loop {
            let mut more = [0; HEAD_READ];
            let length = self.stream.read(&mut more)?;
            if length == 0 {
                return Err(Unfit::Kind(Kind::Read));
            }
            received.extend_from_slice(&more[..length]);
            if let Some(head) = head::parse(&received, reference.len() as u64).map_err(Unfit::Kind)? {
                break head;
            }
        };
        if head.closes {
            return Err(Unfit::Closes);
        }
        let mut body = received.split_off(head.bytes);
        let there = body.len();
        if there < reference.len() {
            body.resize(reference.len(), 0);
            self.stream.read_exact(&mut body[there..])?;
        }
        if body == reference { Ok(()) } else { Err(Unfit::Kind(Kind::Body)) }
    }

    /// When the time of the request began that has no whole answer yet.
    pub(crate) fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Whether its first request waits for the connection to be there.
    pub(crate) fn opens(&self) -> bool {
        self.opens
    }

    /// Sends the first request of a connection that has come to be there; its time began with the connection.
    pub(crate) fn send_first(&mut self, request: &[u8], length: u64) -> io::Result<()> {
        self.opens = false;
        self.send(request, length, self.asked_at)
    }

    /// Sends a request for a body of `length` bytes; `now` is when.
    pub(crate) fn send(&mut self, request: &[u8], length: u64, now: Instant) -> io::Result<()> {
        (self.asked_at, self.length) = (now, length);
        // A request is far smaller than the buffer of a connection on which nothing else is on its way.
        if send(&self.stream, request, SendFlags::NOSIGNAL)? == request.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }

    /// Takes what has come of an answer.
    ///
    /// Where less came than was asked for there is no more now, and the next byte is a new event; unless the server has
    /// `ended` the connection, which is told only once.
    pub(crate) fn read(&mut self, buffers: &mut Buffers, ended: bool) -> Progress {
        match self.answer(buffers, ended) {
            Ok(Some(head)) => Progress::Answered { bytes: head.bytes as u64 + self.length, closes: head.closes },
            Ok(None) => Progress::Waits,
            Err(kind) => Progress::Failed(kind),
        }
    }

    /// The head, once the answer is whole.
    fn answer(&mut self, buffers: &mut Buffers, ended: bool) -> Result<Option<Head>, Kind> {
        if self.head.is_none() {
            let there = self.read_head(&mut buffers.head)?;
            if self.head.is_none() || (self.rest > 0 && there < HEAD_READ && !ended) {
                return Ok(None);
            }
        }
        while self.rest > 0 {
            let wanted = usize::try_from(self.rest).unwrap_or(DISCARD_MAX).min(DISCARD_MAX);
            let dropped = receive(&self.stream, &mut buffers.discarded[..wanted], RecvFlags::TRUNC)?;
            self.rest -= dropped.unwrap_or(0) as u64;
            if dropped.is_none_or(|dropped| dropped < wanted && !ended) {
                return Ok(None);
            }
        }
        Ok(self.head.take())
    }

    /// Reads until the head is there or nothing more; how much the last call brought.
    fn read_head(&mut self, buffer: &mut [u8]) -> Result<usize, Kind> {
        loop {
            let Some(received) = receive(&self.stream, buffer, RecvFlags::empty())? else { return Ok(0) };
            let there = if self.begun.is_empty() {
                &buffer[..received]
            } else {
                self.begun.extend_from_slice(&buffer[..received]);
                &self.begun
            };
            if let Some(head) = head::parse(there, self.length)? {
                // Bytes beyond the body belong to no answer.
                let of_body = (there.len() - head.bytes) as u64;
                self.rest = self.length.checked_sub(of_body).ok_or(Kind::Length)?;
                self.head = Some(head);
                self.begun.clear();
                return Ok(received);
            }
            if self.begun.is_empty() {
                self.begun.extend_from_slice(&buffer[..received]);
            }
        }
    }
}

/// How many bytes were received; none where there are none now.
fn receive(stream: &TcpStream, buffer: &mut [u8], flags: RecvFlags) -> Result<Option<usize>, Kind> {
    loop {
        return match recv(stream, &mut *buffer, flags) {
            Ok((_, 0)) => Err(Kind::Read),
            Ok((_, received)) => Ok(Some(received)),
            Err(Errno::AGAIN) => Ok(None),
            Err(Errno::INTR) => continue,
            Err(_) => Err(Kind::Read),
        };
    }
}
