//! Hostile clients. Eyewall closes their connections, or its memory stays bounded; and it answers a well-behaved client meanwhile.
//!
//! Each attack runs in clear text and over TLS. docs/security.md has the bounds, and the figures that were measured.

mod beside;
mod cache_busting;
mod connections;
mod continuations;
mod corpus;
mod field_compression;
mod heads;
mod memory;
mod peak;
mod pings;
mod rapid_reset;
mod readers;
mod settings;
mod uploads;
mod way;

use std::io::Read as _;

use crate::common::origin::Origin;
use crate::common::server::anonymous_bytes;
use peak::Peak;
use way::{Reached, Way, Wire};

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
    bytes_before: u64,
    /// The most bytes since then. It ends before the server.
    peak: Peak,
    reached: Reached,
    origin: Origin,
}

impl Attacked {
    /// `limits` are lines of `[server.limits]`.
    fn new(way: Way, limits: &str, origin: Origin) -> Self {
        Self::with_site(way, limits, "", origin)
    }

    /// `of_site` are lines of `[site.limits]`.
    fn with_site(way: Way, limits: &str, of_site: &str, origin: Origin) -> Self {
        let limits = format!("workers = 2\n[server.limits]\n{limits}");
        let site = format!("origins = [\"{}\"]\n[site.limits]\n{of_site}", origin.url());
        let reached = Reached::new(way, &limits, &site);
        reached.get_until_hit("/page");
        let process = reached.server.child.id();
        Self { reached, origin, bytes_before: anonymous_bytes(process), peak: Peak::of(process) }
    }

    /// Asserts that the attack has cost at most this much memory at any time, and that another client is answered. Prints the figure.
    #[track_caller]
    fn assert_bounded(&self, attack: &str, bytes_max: u64) {
        let way = self.reached.way.word();
        assert!(self.reached.get("/page").is_hit(), "{attack}, {way}: a well-behaved client is answered");
        let bytes = self.peak.bytes().saturating_sub(self.bytes_before);
        println!("{attack}, {way}: {} KiB of at most {} KiB", bytes >> 10, bytes_max >> 10);
        assert!(bytes <= bytes_max, "{attack}, {way}: {bytes} bytes, and at most {bytes_max} are allowed");
    }
}

/// An origin whose pages can be stored.
fn storable() -> Origin {
    Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), vec![b'x'; 4000]))
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
fn get(way: Way, path: &str) -> Vec<u8> {
    [&[0x82, way.scheme()][..], &literal(":path", path), &literal(":authority", "test")].concat()
}

/// The codes of GOAWAY frames that the server sends before it closes.
fn goaways(mut stream: Box<dyn Wire>) -> Vec<u32> {
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
