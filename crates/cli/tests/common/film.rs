//! An origin with one large representation, which it sends whole or in ranges, and which a test can change.

use std::io::Write as _;
use std::net::TcpStream;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::command::eyewall;
use super::origin::{Asked, Origin};
use super::server::Server;

pub(crate) const MIB: u64 = 1 << 20;

/// The options of a film.
pub(crate) type Before = dyn Fn(&Asked, u64) + Send + Sync;

/// How an origin sends its film.
#[derive(Clone)]
pub(crate) struct Film {
    pub(crate) length: u64,
    /// The text before the number of the version; the closing quote is added.
    pub(crate) tag: &'static str,
    pub(crate) fields: &'static str,
    pub(crate) gives_ranges: bool,
    /// Called before each MiB, with its first byte.
    pub(crate) before: Arc<Before>,
}

/// A film that runs.
pub(crate) struct Running {
    pub(crate) origin: Origin,
    version: Arc<AtomicU64>,
}

/// The bytes of a version of any film.
pub(crate) fn bytes(version: u64, range: Range<u64>) -> Vec<u8> {
    range.map(|at| (at ^ (at >> 8) ^ (at >> 16) ^ (version * 85)) as u8).collect()
}

impl Film {
    /// With a strong tag, fresh for an hour.
    pub(crate) fn of(length: u64) -> Self {
        let fields = "Cache-Control: max-age=3600\r\nContent-Type: video/mp4\r\n";
        Self { length, tag: "\"v", fields, gives_ranges: true, before: Arc::new(|_, _| {}) }
    }

    pub(crate) fn before_each_mib(self, before: impl Fn(&Asked, u64) + Send + Sync + 'static) -> Self {
        Self { before: Arc::new(before), ..self }
    }

    pub(crate) fn run(self) -> Running {
        let version = Arc::new(AtomicU64::new(1));
        let current = Arc::clone(&version);
        let origin = Origin::raw(move |asked, stream| self.answer(asked, current.load(Ordering::SeqCst), stream));
        Running { origin, version }
    }

    fn answer(&self, asked: &Asked, version: u64, stream: &mut TcpStream) {
        let tag = format!("{}{version}\"", self.tag);
        let close = "Connection: close\r\n\r\n";
        let common = format!("{}ETag: {tag}\r\n{close}", self.fields);
        if asked.field("if-none-match") == tag {
            let _ = stream.write_all(format!("HTTP/1.1 304 Not Modified\r\n{common}").as_bytes());
            return;
        }
        let if_range = asked.field("if-range");
        let is_wanted = self.gives_ranges && (if_range.is_empty() || if_range == tag);
        let range = if is_wanted { asked.field("range").strip_prefix("bytes=") } else { None };
        let length = self.length;
        let Some(range) = range else {
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{common}").as_bytes());
            return self.send(asked, version, 0..length, stream);
        };
        let (first, last) = range.split_once('-').expect("a range has a dash");
        if first.is_empty() {
            return self.answer_part(
                asked,
                version,
                length.saturating_sub(last.parse().expect("a number"))..length,
                stream,
            );
        }
        let first: u64 = first.parse().expect("a number");
        if first >= length {
            let head = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n";
            let _ = stream.write_all(format!("{head}Content-Range: bytes */{length}\r\n{close}").as_bytes());
            return;
        }
        let end = if last.is_empty() { length } else { length.min(last.parse::<u64>().expect("a number") + 1) };
        self.answer_part(asked, version, first..end, stream);
    }

    fn answer_part(&self, asked: &Asked, version: u64, range: Range<u64>, stream: &mut TcpStream) {
        let (Range { start, end }, length) = (range.clone(), self.length);
        let content = format!("Content-Length: {}\r\nContent-Range: bytes {start}-{}/{length}", end - start, end - 1);
        let common = format!("{}ETag: {}{version}\"\r\nConnection: close\r\n\r\n", self.fields, self.tag);
        let _ = stream.write_all(format!("HTTP/1.1 206 Partial Content\r\n{content}\r\n{common}").as_bytes());
        self.send(asked, version, range, stream);
    }

    fn send(&self, asked: &Asked, version: u64, range: Range<u64>, stream: &mut TcpStream) {
        let mut at = range.start;
        while at < range.end && asked.method != "HEAD" {
            (self.before)(asked, at);
            let end = range.end.min(at + MIB);
            if stream.write_all(&bytes(version, at..end)).is_err() {
                return;
            }
            at = end;
        }
    }
}

impl Running {
    /// The origin has another version from now on.
    pub(crate) fn change(&self) {
        self.version.fetch_add(1, Ordering::SeqCst);
    }

    /// The `Range` of each GET, in order; an empty text for the whole.
    pub(crate) fn ranges(&self) -> Vec<String> {
        let asked = self.origin.asked();
        asked.iter().filter(|asked| asked.method == "GET").map(|asked| asked.field("range").to_owned()).collect()
    }

    /// A server with a volume in memory, of 128 MiB: bodies of up to 32 MiB are stored, in fragments of 1 MiB.
    pub(crate) fn serve(&self) -> Server {
        self.serve_sized("128M")
    }

    pub(crate) fn serve_sized(&self, size: &str) -> Server {
        let words = ["serve", "--listen", "127.0.0.1:0", "--size", size, "--origin", &self.origin.url()];
        Server::spawn(eyewall().args(words))
    }
}
