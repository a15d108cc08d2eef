//! Connections at their limits. Time is paused: it goes on when nobody has anything to do.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyewall::Options;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::Stop;
use super::connection::{Common, converse};
use crate::config;
use crate::config::settings::Limits;
use crate::config::value::{Period, Size, Within};
use crate::serve::service::Service;
use crate::serve::shared::Shared;

const SECOND: Duration = Duration::from_secs(1);
/// Bytes between client and server.
const BETWEEN: usize = 4 << 10;

/// A server of a folder, and a connection to it.
struct Site {
    folder: TempDir,
    limits: Limits,
}

struct Connected {
    client: DuplexStream,
    server: JoinHandle<()>,
    /// Dropped, it would tell the server to stop.
    _stop: watch::Sender<Stop>,
}

impl Site {
    fn new() -> Self {
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
        let cache = Options::new().size(1 << 20).anonymous().unwrap();
        let config = config::parse(&format!("[[site]]\nroot = \"{}\"\n", self.folder.path().display())).unwrap();
        let service = Service::new(&Arc::new(Shared::new(config, &cache).unwrap()));
        let common = Common { service, limits: self.limits.clone(), log: None };
        let (client, near) = duplex(BETWEEN);
        let (stop, told) = watch::channel(Stop::NotYet);
        let server = tokio::spawn(converse(near, IpAddr::V4(Ipv4Addr::LOCALHOST), Arc::new(common), told));
        Connected { client, server, _stop: stop }
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
    let (told, after) = connected.end().await;
    assert!(told.starts_with("HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n"), "{told}");
    assert!(after <= SECOND, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_left_in_silence() {
    let (told, after) = Site::new().connect().end().await;
    assert_eq!((told.as_str(), after.as_secs()), ("", 30));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_kept_for_its_next_request_as_long_as_it_may_be_idle() {
    let mut connected = Site::new().connect();
    for _ in 0..3 {
        connected.say(HEAD).await;
        assert!(connected.head().await.starts_with("HTTP/1.1 404 "));
        sleep(29 * SECOND).await;
    }
    let (told, after) = connected.end().await;
    assert_eq!((told.as_str(), after.as_secs()), ("", 1));
}

#[tokio::test(start_paused = true)]
async fn the_second_head_has_its_time_as_the_first_had() {
    let mut connected = Site::new().connect();
    connected.say(HEAD).await;
    connected.head().await;
    sleep(25 * SECOND).await;
    connected.say("GET").await;
    let (told, after) = connected.end().await;
    assert!(told.starts_with("HTTP/1.1 408 "), "{told}");
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

#[tokio::test(start_paused = true)]
async fn heads_and_bodies_that_are_too_large_are_refused() {
    let many = "F: x\r\n".repeat(9);
    let long = format!("F: {}\r\n", "x".repeat(70_000));
    for (fields, status) in [(many, "431"), (long, "431"), ("Content-Length: 101\r\n".to_owned(), "413")] {
        let mut connected = Site::new().connect();
        // The server may close before all of it was taken.
        let request = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let _ = connected.client.write_all(request.as_bytes()).await;
        let (told, _) = connected.end().await;
        assert!(told.starts_with(&format!("HTTP/1.1 {status} ")), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_of_the_largest_size_is_taken() {
    let mut connected = Site::new().connect();
    let body = "x".repeat(100);
    connected
        .say(&format!("POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{body}"))
        .await;
    let (told, _) = connected.end().await;
    assert!(told.starts_with("HTTP/1.1 405 "), "folders take no POST: {told}");
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
