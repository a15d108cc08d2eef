//! A load of requests on kept connections, which notices every failed request and every wrong byte.
//!
//! A client fails if a connection ends without a response to its request: it repeats none. It closes a connection only after a
//! response that says so.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustls::ClientConfig;

use super::https::connect_by;
use super::origin::Origin;

/// The paths whose responses are stored.
pub(crate) const PAGES: u64 = 50;
/// One request of so many is for a page that can't be stored.
const MISS_EACH: u64 = 40;
const PATIENCE: Duration = Duration::from_mins(1);
/// Failures that are told in words.
const TOLD_MAX: usize = 10;

/// A connection to the server, of any kind.
pub(crate) trait Connection: Read + Write + Send {}
impl<S: Read + Write + Send> Connection for S {}

/// Opens connections.
pub(crate) type Connect = dyn Fn() -> io::Result<Box<dyn Connection>> + Send + Sync;

/// Clients that send requests, one after the other on each connection.
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<Counts>>,
}

struct Shared {
    connect: Box<Connect>,
    has_ended: AtomicBool,
    requests: AtomicU64,
    /// The time between two requests of a client; zero for as fast as it can.
    pace: Duration,
}

/// What the clients have noticed.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    /// Stored pages, which the server had.
    pub(crate) hits: u64,
    /// Stored pages, which it had to fetch.
    pub(crate) lost_hits: u64,
    pub(crate) connections: u64,
    pub(crate) failures: u64,
    /// The first ones, in words.
    pub(crate) told: Vec<String>,
}

/// An origin of the pages: `/page/N` is stored, `/fresh/N` is not.
pub(crate) fn origin() -> Origin {
    Origin::answering(|asked| {
        let life = if asked.target.starts_with("/page/") { "max-age=3600" } else { "no-store" };
        (200, format!("Cache-Control: {life}"), body(&asked.target))
    })
}

/// The bytes of a page: of several sizes, up to some 30 KB.
pub(crate) fn body(target: &str) -> Vec<u8> {
    let lines = target.bytes().map(u64::from).sum::<u64>() % 17 * 100 + 1;
    let mut body = String::new();
    for line in 0..lines {
        let _ = writeln!(body, "{target} {line}");
    }
    body.into_bytes()
}

pub(crate) fn clear(server: SocketAddr) -> Box<Connect> {
    Box::new(move || {
        let stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Box::new(stream) as Box<dyn Connection>)
    })
}

/// Connections over TLS, for the host `test`.
pub(crate) fn tls(server: SocketAddr, config: ClientConfig) -> Box<Connect> {
    let config = Arc::new(config);
    Box::new(move || {
        let stream = connect_by(Arc::clone(&config), server, "test")?;
        stream.sock.set_nodelay(true)?;
        Ok(Box::new(stream) as Box<dyn Connection>)
    })
}

impl Counts {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            requests: self.requests + other.requests,
            hits: self.hits + other.hits,
            lost_hits: self.lost_hits + other.lost_hits,
            connections: self.connections + other.connections,
            failures: self.failures + other.failures,
            told: [self.told, other.told].concat(),
        }
    }
}

impl Load {
    /// Starts clients; all together send about `rate` requests a second, or as many as they can if that is zero.
    pub(crate) fn start(clients: u32, rate: u32, connect: Box<Connect>) -> Self {
        let pace = if rate == 0 { Duration::ZERO } else { Duration::from_secs(1) * clients / rate };
        let shared = Arc::new(Shared { connect, has_ended: AtomicBool::new(false), requests: AtomicU64::new(0), pace });
        let client = |number| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared, u64::from(number)))
        };
        let clients = (0..clients).map(client).collect();
        Self { shared, clients }
    }

    /// Waits until so many more requests have been answered, or have failed.
    pub(crate) fn wait_for(&self, requests: u64) {
        let (wanted, start) = (self.requests() + requests, Instant::now());
        while self.requests() < wanted {
            assert!(start.elapsed() < PATIENCE, "{} of {wanted} requests", self.requests());
            thread::yield_now();
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn end(self) -> Counts {
        self.shared.has_ended.store(true, Ordering::Relaxed);
        let counts = self.clients.into_iter().map(|client| client.join().expect("it doesn't panic"));
        counts.fold(Counts::default(), Counts::and)
    }
}

fn run(shared: &Shared, client: u64) -> Counts {
    let mut counts = Counts::default();
    let mut connection = None;
    // The clients begin at different pages.
    let mut number = client * 7;
    let mut due = Instant::now();
    while !shared.has_ended.load(Ordering::Relaxed) {
        number += 1;
        let is_page = !number.is_multiple_of(MISS_EACH);
        let target = if is_page { format!("/page/{}", number % PAGES) } else { format!("/fresh/{client}-{number}") };
        let (asked, kept) = exchange(shared, connection.take(), &target, &mut counts);
        connection = kept;
        counts.requests += 1;
        match asked {
            Ok(is_hit) if is_page => *(if is_hit { &mut counts.hits } else { &mut counts.lost_hits }) += 1,
            Ok(_) => {}
            Err(why) => {
                counts.failures += 1;
                if counts.told.len() < TOLD_MAX {
                    counts.told.push(format!("{target}: {why}"));
                }
            }
        }
        shared.requests.fetch_add(1, Ordering::Relaxed);
        due += shared.pace;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
    counts
}

type Kept = Option<BufReader<Box<dyn Connection>>>;

/// One request: whether the response was a hit, and the connection, unless it has to be closed.
fn exchange(shared: &Shared, kept: Kept, target: &str, counts: &mut Counts) -> (Result<bool, String>, Kept) {
    let is_kept = kept.is_some();
    let mut connection = match kept {
        Some(connection) => connection,
        None => match (shared.connect)() {
            Ok(stream) => {
                counts.connections += 1;
                BufReader::new(stream)
            }
            Err(error) => return (Err(format!("can't connect: {error}")), None),
        },
    };
    match ask(&mut connection, &format!("GET {target}"), "") {
        Ok((status, fields, bytes)) => {
            let field = |name: &str| fields.get(name).map_or("", String::as_str);
            let is_hit = field("cache-status").starts_with("Eyewall; hit");
            let answer = match status {
                200 if bytes == body(target) => Ok(is_hit),
                200 => Err(format!("{} bytes are not those of the page", bytes.len())),
                _ => Err(format!("status {status}")),
            };
            let is_last = field("connection").eq_ignore_ascii_case("close");
            (answer, (!is_last).then_some(connection))
        }
        Err(error) => {
            let what = if is_kept { "a kept connection" } else { "a new connection" };
            (Err(format!("{what}: {error}")), None)
        }
    }
}

/// The status, the fields and the body.
pub(crate) type Response = (u16, BTreeMap<String, String>, Vec<u8>);

/// One request without a body, such as `GET /`, on a connection that stays open. `fields` are whole lines.
pub(crate) fn ask(connection: &mut BufReader<impl Read + Write>, request: &str, fields: &str) -> io::Result<Response> {
    let request = format!("{request} HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    connection.get_mut().write_all(request.as_bytes())?;
    connection.get_mut().flush()?;
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_default();
    let fields: BTreeMap<_, _> = lines.iter().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let fields: BTreeMap<_, _> =
        fields.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    let mut body = Vec::new();
    if request.starts_with("HEAD ") || status == 304 {
        return Ok((status, fields, body));
    }
    match fields.get("content-length").and_then(|length| length.parse().ok()) {
        Some(length) => {
            body.resize(length, 0);
            connection.read_exact(&mut body)?;
        }
        None => read_chunks(connection, &mut body)?,
    }
    Ok((status, fields, body))
}

fn read_chunks(connection: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<()> {
    loop {
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let bytes = usize::from_str_radix(line.trim_end(), 16).map_err(io::Error::other)?;
        let begun = body.len();
        body.resize(begun + bytes, 0);
        connection.read_exact(&mut body[begun..])?;
        connection.read_line(&mut String::new())?;
        if bytes == 0 {
            return Ok(());
        }
    }
}
