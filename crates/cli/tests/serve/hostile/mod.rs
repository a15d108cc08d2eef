//! Hostile clients. Eyewall closes their connections, or its memory stays bounded; and it answers a well-behaved client meanwhile.
//!
//! docs/security.md has the bounds, and the figures that were measured.

mod cache_busting;
mod connections;
mod continuations;
mod corpus;
mod field_compression;
mod heads;
mod pings;
mod rapid_reset;
mod readers;
mod settings;
mod uploads;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::common::client::{Reply, connect};
use crate::common::http2;
use crate::common::origin::Origin;
use crate::common::server::{Server, anonymous_bytes};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const MIB: u64 = 1 << 20;

/// A server that is attacked, with a stored `/page`.
struct Attacked {
    server: Server,
    origin: Origin,
    bytes_before: u64,
}

impl Attacked {
    /// `limits` are lines of `[server.limits]`.
    fn new(limits: &str, origin: Origin) -> Self {
        Self::with_site(limits, "", origin)
    }

    /// `of_site` are lines of `[site.limits]`.
    fn with_site(limits: &str, of_site: &str, origin: Origin) -> Self {
        let limits = format!("[server]\nworkers = 2\n[server.limits]\n{limits}\n");
        let site = format!("[[site]]\norigins = [\"{}\"]\n[site.limits]\n{of_site}\n", origin.url());
        let server = Server::configured(&(limits + &site));
        server.get_until("/page", Reply::is_hit);
        let bytes_before = anonymous_bytes(server.child.id());
        Self { server, origin, bytes_before }
    }

    fn connect(&self) -> TcpStream {
        connect(self.server.address)
    }

    /// A connection that has begun to speak HTTP/2.
    fn connect_http2(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(http2::PREFACE).unwrap();
        stream.write_all(&http2::frame(SETTINGS, 0, 0, &[])).unwrap();
        stream
    }

    /// Asserts that the attack has cost at most this much memory, and that another client is answered. Prints the figure.
    #[track_caller]
    fn assert_bounded(&self, attack: &str, bytes_max: u64) {
        assert!(self.server.get("/page").is_hit(), "{attack}: a well-behaved client is answered");
        let bytes = anonymous_bytes(self.server.child.id()).saturating_sub(self.bytes_before);
        println!("{attack}: {} KiB of at most {} KiB", bytes >> 10, bytes_max >> 10);
        assert!(bytes <= bytes_max, "{attack}: {bytes} bytes, and at most {bytes_max} are allowed");
    }
}

/// An origin whose pages can be stored.
fn storable() -> Origin {
    Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), vec![b'x'; 4000]))
}

/// Writes pieces until the server closes, takes nothing for a while, or all are written. Returns the number of pieces that it took.
fn write_all(stream: &mut TcpStream, pieces: impl Iterator<Item = Vec<u8>>) -> usize {
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut count = 0;
    for piece in pieces {
        if stream.write_all(&piece).is_err() {
            break;
        }
        count += 1;
    }
    count
}

/// Whether the server closes a connection to which nothing more is sent. What it has sent before is read.
fn is_closed(mut stream: TcpStream) -> bool {
    let _ = stream.shutdown(Shutdown::Write);
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// A literal field without indexing (RFC 7541, section 6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    [&[0][..], &text(name), &text(value)].concat()
}

/// A text with its length (RFC 7541, sections 5.1 and 5.2).
fn text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if text.len() < 127 {
        bytes.push(text.len() as u8);
    } else {
        let mut rest = text.len() - 127;
        bytes.push(127);
        while rest >= 128 {
            bytes.push((rest & 127) as u8 | 128);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }
    bytes.extend(text.as_bytes());
    bytes
}

/// The fields of a GET of this path.
fn get(path: &str) -> Vec<u8> {
    [&[0x82, 0x86][..], &literal(":path", path), &literal(":authority", "test")].concat()
}

/// The codes of GOAWAY frames that the server sends before it closes.
fn goaways(mut stream: TcpStream) -> Vec<u32> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let (mut rest, mut codes) = (&bytes[..], Vec::new());
    while let Some(head) = rest.get(..9) {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let Some(payload) = rest.get(9..9 + length) else { break };
        if head[3] == 7 {
            codes.push(u32::from_be_bytes([payload[4], payload[5], payload[6], payload[7]]));
        }
        rest = &rest[9 + length..];
    }
    codes
}
