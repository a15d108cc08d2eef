//! Connections at their limits. Time is paused, and advances when no task can run.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use bytes::Bytes;
use eyewall::{Cache, Options};
use eyewall_http::terms::{Marks, Terms};
use eyewall_tls::clock::SystemClock;
use http::header::DATE;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::accept::Served;
use super::common::Common;
use super::connection;
use super::held::Place;
use super::listener::Layers;
use super::stream_budget::StreamBudget;
use super::{Activated, Binding, ListenPlace, Sockets};
use crate::config;
use crate::config::listen::SocketMode;
use crate::config::settings::Limits;
use crate::config::value::{Period, Size, Within};
use crate::serve::admission::{ConnectionCounts, ConnectionLimits};
use crate::serve::shared::Shared;
use crate::serve::stop::Stop;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::store::Times;

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Bytes between client and server.
const BETWEEN: usize = 4 << 10;

/// A server of a folder, and a connection to it.
pub(super) struct Site {
    folder: TempDir,
    limits: Limits,
}

struct Connected {
    client: DuplexStream,
    server: JoinHandle<()>,
    /// Dropping it would stop the server.
    stop: watch::Sender<Stop>,
}

impl Site {
    pub(super) fn new() -> Self {
        let limits = Limits {
            head_timeout: Period(10 * SECOND),
            idle_timeout: Period(30 * SECOND),
            header_count: Within(8),
            body_bytes_max: Some(Size(100)),
            ..Limits::default()
        };
        Self { folder: tempfile::tempdir().unwrap(), limits }
    }

    fn connect(&self) -> Connected {
        self.connect_to(&format!("root = \"{}\"", self.folder.path().display()), 0)
    }

    /// To a site whose origin isn't there; `/ready` is stored, and has this many bytes.
    fn connect_ready(&self, bytes: usize) -> Connected {
        self.connect_to("origins = [\"http://127.0.0.1:1\"]", bytes)
    }

    fn common(&self, source: &str, bytes: usize) -> Common {
        let cache = Options::new().size(4 << 20).anonymous().unwrap();
        self.common_of(&cache, source, "http", bytes, |_| ())
    }

    /// The same with something done to the shared state; `/ready` is stored under this scheme.
    pub(super) fn common_of(
        &self,
        cache: &Cache,
        source: &str,
        scheme: &str,
        bytes: usize,
        more: impl FnOnce(&mut Shared),
    ) -> Common {
        let config = config::parse(&format!("[[site]]\n{source}\n")).unwrap();
        let mut shared = Shared::new(config, cache, Arc::new(SystemClock)).unwrap();
        more(&mut shared);
        let shared = Arc::new(shared);
        let mut fields = HeaderMap::new();
        fields.insert(DATE, HeaderValue::from_static("Sun, 22 Nov 2026 10:00:00 GMT"));
        let terms = Terms {
            received_ms: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64,
            initial_age_ms: 0,
            lifetime_seconds: 1000,
            overdue_seconds: 0,
            stale_while_revalidate_seconds: 0,
            stale_if_error_seconds: 0,
            marks: Marks::NONE,
        };
        let head = Head::new(Kind::Response(terms), StatusCode::OK, fields);
        let value = Bytes::from(vec![b'x'; bytes]);
        let kept = shared.pages.store.keep(
            format!("{scheme}://a/ready").as_bytes(),
            &head,
            &[value],
            Times::FOR_GOOD,
            &[],
            None,
        );
        assert!(kept.is_some());
        let common = Common::new(&shared, Arc::default(), Arc::new(StreamBudget::new(0)));
        Common { limits: self.limits.clone(), ..common }
    }

    fn connect_to(&self, source: &str, bytes: usize) -> Connected {
        let common = self.common(source, bytes);
        let (client, near) = duplex(BETWEEN);
        let (stop, stopping) = watch::channel(Stop::NotYet);
        let begun = Arc::new(common);
        let common = Arc::new(ArcSwap::new(Arc::clone(&begun)));
        let server =
            tokio::spawn(connection::serve(near, IpAddr::V4(Ipv4Addr::LOCALHOST), (place(), begun), common, stopping));
        Connected { client, server, stop }
    }
}

/// The place of a connection that nothing limits.
pub(super) fn place() -> Place {
    let counts: Arc<ConnectionCounts> = Arc::default();
    let entered =
        counts.enter(IpAddr::V4(Ipv4Addr::LOCALHOST), (0, 0), ConnectionLimits::default(), false).ok().unwrap();
    Place { entered, alive: mpsc::channel(1).0 }
}

/// The state for connections that the test opens itself.
pub(super) fn served() -> Served {
    let site = Site::new();
    let common = site.common(&format!("root = \"{}\"", site.folder.path().display()), 0);
    let common = Arc::new(ArcSwap::from_pointee(common));
    Served {
        common,
        stopping: watch::channel(Stop::NotYet).1,
        alive: mpsc::channel(1).0,
        address: 0,
        layers: Layers::default(),
    }
}

impl Connected {
    async fn say(&mut self, words: &str) {
        self.client.write_all(words.as_bytes()).await.unwrap();
    }

    /// All that comes until the server closes the connection, and when that is.
    async fn end(mut self) -> (String, Duration) {
        let started = Instant::now();
        let mut bytes = Vec::new();
        self.client.read_to_end(&mut bytes).await.unwrap();
        self.server.await.unwrap();
        drop(self.stop);
        (String::from_utf8(bytes).unwrap(), started.elapsed())
    }

    /// The head of a response; none has a body here.
    async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.client.read_u8().await.unwrap());
        }
        String::from_utf8(head).unwrap()
    }
}

/// A request whose response has no body.
const HEAD: &str = "HEAD /nothing HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_byte_by_byte_is_cut_off() {
    let mut connected = Site::new().connect();
    for byte in HEAD.chars().take(9) {
        connected.say(&byte.to_string()).await;
        sleep(SECOND).await;
    }
    let (response, after) = connected.end().await;
    assert!(response.starts_with("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"), "{response}");
    assert!(after <= SECOND, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_without_a_response() {
    let (response, after) = Site::new().connect().end().await;
    assert_eq!((response.as_str(), after.as_secs()), ("", 30));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_its_next_request_as_long_as_it_may_be_idle() {
    let mut connected = Site::new().connect();
    for _ in 0..3 {
        connected.say(HEAD).await;
        assert!(connected.head().await.starts_with("HTTP/1.1 404 "));
        sleep(29 * SECOND).await;
    }
    let (response, after) = connected.end().await;
    assert_eq!((response.as_str(), after.as_secs()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn the_second_head_has_its_time_as_the_first_had() {
    let mut connected = Site::new().connect();
    connected.say(HEAD).await;
    connected.head().await;
    sleep(25 * SECOND).await;
    connected.say("GET").await;
    let (response, after) = connected.end().await;
    assert!(response.starts_with("HTTP/1.1 408 "), "{response}");
    assert_eq!(after.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_taken_slowly_is_not_idle() {
    let site = Site::new();
    std::fs::write(site.folder.path().join("file"), vec![b'x'; 20_000]).unwrap();
    let mut connected = site.connect();
    connected.say("GET /file HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let mut bytes = Vec::new();
    let mut piece = [0; 1000];
    loop {
        let count = connected.client.read(&mut piece).await.unwrap();
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..count]);
        sleep(25 * SECOND).await;
    }
    assert!(bytes.ends_with(&vec![b'x'; 20_000]), "{} bytes", bytes.len());
}

/// Asks for a hit by the fast path.
const READY: &str = "GET /ready HTTP/1.1\r\nHost: a\r\n\r\n";

#[tokio::test(start_paused = true)]
async fn a_hit_of_the_fast_path_goes_in_pieces_to_a_slow_client() {
    let mut connected = Site::new().connect_ready(100_000);
    // The socket takes none of the second response before the first was read.
    connected.say(&[READY, READY].concat()).await;
    for _ in 0..2 {
        assert!(connected.head().await.ends_with("ttl=1000\r\ncontent-length: 100000\r\n\r\n"));
        let mut left = 100_000;
        while left > 0 {
            let mut piece = vec![0; left.min(9_000)];
            connected.client.read_exact(&mut piece).await.unwrap();
            assert!(piece.iter().all(|byte| *byte == b'x'));
            left -= piece.len();
            sleep(25 * SECOND).await;
        }
    }
    let (response, _) = connected.end().await;
    assert_eq!(response, "");
}

#[tokio::test(start_paused = true)]
async fn a_stopping_server_sends_hits_of_the_fast_path_to_their_end() {
    for (asked, rest) in
        [(READY, ""), ("GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "connection: close\r\n")]
    {
        let mut connected = Site::new().connect_ready(100_000);
        connected.say(asked).await;
        let head = connected.head().await;
        assert!(head.ends_with(&format!("content-length: 100000\r\n{rest}\r\n")), "{head}");
        connected.stop.send_replace(Stop::InOrder);
        sleep(SECOND).await;
        let (response, _) = connected.end().await;
        assert_eq!(response.len(), 100_000);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_of_a_hit_is_disconnected() {
    // As the first request, and after one that hyper had.
    for before in ["", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut connected = Site::new().connect_ready(100_000);
        connected.say(before).await;
        if !before.is_empty() {
            assert!(connected.head().await.starts_with("HTTP/1.1 204 "));
        }
        connected.say(READY).await;
        sleep(59 * SECOND).await;
        assert!(!connected.server.is_finished(), "{before}");
        sleep(2 * SECOND).await;
        assert!(connected.server.is_finished(), "{before}");
    }
}

#[tokio::test(start_paused = true)]
async fn http_2_does_not_begin_after_a_hit_of_the_fast_path() {
    let mut connected = Site::new().connect_ready(10);
    connected.say(&[READY, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"].concat()).await;
    let (response, after) = connected.end().await;
    assert!(response.starts_with("HTTP/1.1 200 ") && response.ends_with("\r\n\r\nxxxxxxxxxx"), "{response}");
    assert_eq!(after.as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn heads_after_a_hit_of_the_fast_path_have_the_usual_timeout() {
    let mut connected = Site::new().connect_ready(10);
    for piece in READY.as_bytes().chunks(9) {
        connected.client.write_all(piece).await.unwrap();
        sleep(SECOND).await;
    }
    connected.head().await;
    sleep(25 * SECOND).await;
    connected.say("GET").await;
    let (response, after) = connected.end().await;
    assert!(response.starts_with("xxxxxxxxxxHTTP/1.1 408 "), "{response}");
    assert_eq!(after.as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn hyper_handles_long_and_incomplete_heads() {
    let long = format!("GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\nLong: {}\r\n\r\n", "x".repeat(30_000));
    let many = format!("GET /ready HTTP/1.1\r\nHost: a\r\n{}\r\n", "F: x\r\n".repeat(9));
    for (said, expected) in [(long.as_str(), "HTTP/1.1 200 OK"), (&many, "HTTP/1.1 431 "), ("GET /ready HT", "")] {
        let mut connected = Site::new().connect_ready(10);
        connected.say(said).await;
        if expected.is_empty() {
            connected.client.shutdown().await.unwrap();
        }
        let (response, _) = connected.end().await;
        assert!(
            response.starts_with(expected) && (expected.is_empty() == response.is_empty()),
            "{expected} {response}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn heads_and_bodies_that_are_too_large_are_refused() {
    let many = "F: x\r\n".repeat(9);
    let long = format!("F: {}\r\n", "x".repeat(70_000));
    for (fields, status) in [(many, "431"), (long, "431"), ("Content-Length: 101\r\n".to_owned(), "413")] {
        let mut connected = Site::new().connect();
        // The server may close before all of it was taken.
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let _ = connected.client.write_all(request.as_bytes()).await;
        let (response, _) = connected.end().await;
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_largest_size_is_taken() {
    let mut connected = Site::new().connect();
    let body = "x".repeat(100);
    connected
        .say(&format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{body}"))
        .await;
    let (response, _) = connected.end().await;
    assert!(response.starts_with("HTTP/1.1 405 "), "folders take no POST: {response}");
}

#[tokio::test(start_paused = true)]
async fn http_2_has_the_same_limits() {
    let connected = Site::new().connect();
    let io = TokioIo::new(connected.client);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let ended = tokio::spawn(connection);
    for (bytes, fields, status) in [
        (0, 5, StatusCode::METHOD_NOT_ALLOWED),
        (0, 9, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        (101, 0, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let mut request = Request::post("http://a/");
        for number in 0..fields {
            request = request.header(format!("f{number}"), "x");
        }
        let request = request.body(Full::new(Bytes::from(vec![b'x'; bytes]))).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status);
        response.into_body().collect().await.unwrap();
    }
    let started = Instant::now();
    ended.await.unwrap().unwrap();
    connected.server.await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 30, "it answers pings, and has no request");
}

#[tokio::test(start_paused = true)]
async fn connections_do_not_keep_the_configuration_before() {
    let site = Site::new();
    let common = || site.common("origins = [\"http://127.0.0.1:1\"]", 10);
    let present = Arc::new(ArcSwap::from_pointee(common()));
    let (stop, stopping) = watch::channel(Stop::NotYet);
    let connect = || {
        let (client, near) = duplex(BETWEEN);
        let begun = (place(), present.load_full());
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        tokio::spawn(connection::serve(near, address, begun, Arc::clone(&present), stopping.clone()));
        client
    };
    let (mut http1, http2) = (connect(), connect());
    http1.write_all(READY.as_bytes()).await.unwrap();
    http1.read_exact(&mut [0; 10]).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(http2)).await.unwrap();
    let _connection = tokio::spawn(connection);
    let request = || Request::get("http://a/ready").body(Full::new(Bytes::new())).unwrap();
    let whole = async |sender: &mut http2::SendRequest<Full<Bytes>>| {
        sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap().to_bytes().len()
    };
    assert_eq!(whole(&mut sender).await, 10);
    let before = Arc::downgrade(&present.swap(Arc::new(common())));
    // An idle connection of HTTP/1 learns of it when it looks at its timeouts.
    sleep(11 * SECOND).await;
    assert!(before.upgrade().is_none(), "both are idle");
    assert_eq!(whole(&mut sender).await, 10);
    drop((http1, stop));
}

#[test]
fn all_addresses_of_both_versions_can_be_listened_at() {
    let binding = Binding { workers: 2, is_shared: false, mode: SocketMode(0o600) };
    // Another program may have the port of one version.
    for _ in 0..10 {
        let bind = |address: SocketAddr| {
            let place = ListenPlace { address: address.into(), layers: Layers::default() };
            Sockets::bind(&[place], binding, &mut Vec::new(), &mut Activated::default())
        };
        let Ok(version_6) = bind("[::]:0".parse().unwrap()) else {
            return println!("skipped: there is no IPv6 here");
        };
        let port = version_6.addresses()[0].port();
        if bind(SocketAddr::from(([0, 0, 0, 0], port))).is_ok() {
            return;
        }
    }
    panic!("IPv6 keeps IPv4 away");
}

#[tokio::test(start_paused = true)]
async fn after_a_handover_http_2_ends_and_http_1_may_ask_once_more() {
    let mut idle = Site::new().connect_ready(10);
    idle.say(READY).await;
    idle.head().await;
    let ready = Site::new().connect_ready(10);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(ready.client)).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = || Request::get("http://a/ready").body(Full::new(Bytes::new())).unwrap();
    sender.send_request(request()).await.unwrap().into_body().collect().await.unwrap();
    for stop in [&idle.stop, &ready.stop] {
        stop.send_replace(Stop::HandedOver);
    }
    ended.await.unwrap().unwrap();
    ready.server.await.unwrap();
    assert!(sender.ready().await.is_err());

    sleep(25 * SECOND).await;
    idle.say(READY).await;
    let (response, after) = idle.end().await;
    assert!(response.contains("\r\nconnection: close\r\n\r\n"), "{response}");
    assert_eq!(after.as_secs(), 0);
}
