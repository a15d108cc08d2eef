//! A connection, and the progress of its response.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};

use super::head::{self, Head};
use super::report::Kind;
use super::stream::Stream;
use super::tls::Tls;
use crate::error::Error;

/// The size of the first read: small responses arrive with it completely, and of large ones little is copied.
const HEAD_READ: usize = 2 << 10;
/// The maximum of a body that one call drops.
const DISCARD_MAX: usize = 4 << 20;
/// The timeout of a connection, and of each step of its first response.
const FIRST_SECONDS: Duration = Duration::from_secs(10);

/// The buffers of all connections.
pub(crate) struct Buffers {
    head: Box<[u8]>,
    /// Without TLS never written, so never backed by memory: its length tells the kernel how much to drop.
    discarded: Box<[u8]>,
}

impl Buffers {
    pub(crate) fn new() -> Self {
        Self { head: vec![0; HEAD_READ].into(), discarded: vec![0; DISCARD_MAX].into() }
    }
}

/// A connection with a request in progress.
pub(crate) struct Connection {
    stream: Stream,
    /// When the request was sent, or, for the first one, when the connection was begun.
    asked_at: Instant,
    /// Whether the request waits for the connection to be established.
    opens: bool,
    /// The number of the requested body.
    length: u64,
    /// The part of an incomplete head.
    begun: Vec<u8>,
    /// The head, once it is complete.
    head: Option<Head>,
    /// The bytes of the body still to come.
    rest: u64,
}

/// The result of reading.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The response is incomplete.
    Waits,
    /// The response is complete; its bytes, including the head.
    Answered { bytes: u64, closes: bool },
    /// The connection is unusable.
    Failed(Kind),
}

/// The error in a first response.
#[derive(Debug)]
pub(crate) enum Unfit {
    Kind(Kind),
    Closes,
    Io(io::Error),
}

impl Unfit {
    /// As a message, with the connection's number.
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
    /// Opens a blocking connection, for the first response.
    pub(crate) fn open(peer: SocketAddr, tls: Option<&Tls>) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&peer, FIRST_SECONDS)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(FIRST_SECONDS))?;
        Ok(Self::on(Stream::new(stream, tls)?, Instant::now(), false))
    }

    /// Opens a nonblocking connection; an event reports that it is established or refused.
    pub(crate) fn begin(peer: SocketAddr, tls: Option<&Tls>, now: Instant) -> io::Result<Self> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, None)?;
        match connect(&socket, &peer) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(refused) => return Err(refused.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self::on(Stream::new(stream, tls)?, now, true))
    }

    fn on(stream: Stream, asked_at: Instant, opens: bool) -> Self {
        Self { stream, asked_at, opens, length: 0, begun: Vec::new(), head: None, rest: 0 }
    }

    pub(crate) fn no_longer_blocks(&self) -> io::Result<()> {
        self.stream.no_longer_blocks()
    }

    /// Sends a request, and compares the whole response with `reference`.
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

    /// The start time of the request that is still unanswered.
    pub(crate) fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Whether its handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.stream.is_resumed()
    }

    /// Whether its first request waits for the connection to be established.
    pub(crate) fn opens(&self) -> bool {
        self.opens
    }

    /// Sends the first request of an established connection; its time began with the connection.
    pub(crate) fn send_first(&mut self, request: &[u8], length: u64) -> io::Result<()> {
        self.opens = false;
        self.send(request, length, self.asked_at)
    }

    /// Sends a request for a body of `length` bytes; `now` is when.
    pub(crate) fn send(&mut self, request: &[u8], length: u64, now: Instant) -> io::Result<()> {
        (self.asked_at, self.length) = (now, length);
        // A request is far smaller than the socket's empty buffer.
        self.stream.send(request)
    }

    /// Reads the response as far as it has arrived.
    ///
    /// If less arrives than requested, there is no more now, and the next byte is a new event; unless the
    /// server has `ended` the connection, which is reported only once.
    pub(crate) fn read(&mut self, buffers: &mut Buffers, ended: bool) -> Progress {
        match self.answer(buffers, ended) {
            Ok(Some(head)) => Progress::Answered { bytes: head.bytes as u64 + self.length, closes: head.closes },
            Ok(None) => Progress::Waits,
            Err(kind) => Progress::Failed(kind),
        }
    }

    /// The head, once the response is complete.
    fn answer(&mut self, buffers: &mut Buffers, ended: bool) -> Result<Option<Head>, Kind> {
        if self.head.is_none() {
            let there = self.read_head(&mut buffers.head)?;
            if self.head.is_none() || (self.rest > 0 && there < HEAD_READ && !ended) {
                return Ok(None);
            }
        }
        while self.rest > 0 {
            let wanted = usize::try_from(self.rest).unwrap_or(DISCARD_MAX).min(DISCARD_MAX);
            let dropped = self.stream.discard(&mut buffers.discarded[..wanted])?;
            self.rest -= dropped.unwrap_or(0) as u64;
            if dropped.is_none_or(|dropped| dropped < wanted && !ended) {
                return Ok(None);
            }
        }
        Ok(self.head.take())
    }

    /// Reads until the head is complete or nothing is left; returns the bytes of the last call.
    fn read_head(&mut self, buffer: &mut [u8]) -> Result<usize, Kind> {
        loop {
            let Some(received) = self.stream.receive(buffer)? else { return Ok(0) };
            let there = if self.begun.is_empty() {
                &buffer[..received]
            } else {
                self.begun.extend_from_slice(&buffer[..received]);
                &self.begun
            };
            if let Some(head) = head::parse(there, self.length)? {
                // Bytes after the body belong to no response.
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
