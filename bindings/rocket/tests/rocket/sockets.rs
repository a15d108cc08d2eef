//! The same over real connections.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;

use eyewall_rocket::{FileCache, FileCacheOptions};
use rocket::config::Shutdown as ShutdownConfig;
use rocket::fairing::AdHoc;
use rocket::tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use rocket::tokio::net::TcpStream;
use rocket::tokio::sync::oneshot;
use rocket::tokio::task::JoinHandle;
use rocket::{Config, Ignite, Rocket, Shutdown, async_test};

use crate::support::{Site, bytes, config, volume};

/// A Rocket that listens on a socket.
struct Launched {
    address: SocketAddr,
    shutdown: Shutdown,
    running: JoinHandle<Result<Rocket<Ignite>, rocket::Error>>,
}

impl Launched {
    async fn of(site: &Site) -> Self {
        let (tell, told) = oneshot::channel();
        let tell = Mutex::new(Some(tell));
        let listening = Config {
            address: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            shutdown: ShutdownConfig {
                ctrlc: false,
                signals: HashSet::new(),
                grace: 1,
                mercy: 1,
                ..Default::default()
            },
            ..config()
        };
        let rocket = site.rocket().configure(listening).attach(AdHoc::on_liftoff("address", move |rocket| {
            Box::pin(async move {
                let port = rocket.config().port;
                tell.lock().unwrap().take().unwrap().send(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
            })
        }));
        let rocket = rocket.ignite().await.unwrap();
        let shutdown = rocket.shutdown();
        let running = rocket::tokio::spawn(rocket.launch());
        Self { address: told.await.unwrap(), shutdown, running }
    }

    /// Sends a request whose answer ends with the connection.
    async fn ask(&self, method: &str, target: &str, fields: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    async fn end(self) {
        self.shutdown.notify();
        self.running.await.unwrap().unwrap();
    }
}

/// Reads the head of an answer, byte by byte, so that no byte of the body is taken with it.
async fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().to_ascii_lowercase()
}

#[async_test]
async fn answers_are_framed_by_their_lengths() {
    let site = Site::new(FileCacheOptions::new());
    site.write("a.txt", "content");
    site.settle("a.txt");
    let launched = Launched::of(&site).await;
    let mut whole = launched.ask("GET", "/a.txt", "").await;
    let told = head(&mut whole).await;
    assert!(told.starts_with("http/1.1 200 ok\r\n") && told.contains("\r\ncontent-length: 7\r\n"), "{told}");
    assert_eq!(told.matches("content-length").count(), 1);
    let tag = told.lines().find(|line| line.starts_with("etag: ")).unwrap().strip_prefix("etag: ").unwrap().to_owned();
    for (method, fields, status, length, body) in [
        ("GET", String::new(), "200", Some(7), "content"),
        ("HEAD", String::new(), "200", Some(7), ""),
        ("HEAD", "range: bytes=0-1\r\n".to_owned(), "200", Some(7), ""),
        ("GET", format!("if-none-match: {tag}\r\n"), "304", None, ""),
        ("HEAD", format!("if-none-match: {tag}\r\n"), "304", None, ""),
        ("GET", "range: bytes=1-2\r\n".to_owned(), "206", Some(2), "on"),
        ("GET", "range: bytes=7-\r\n".to_owned(), "416", Some(0), ""),
        ("GET", "if-match: \"other\"\r\n".to_owned(), "412", Some(0), ""),
    ] {
        let mut stream = launched.ask(method, "/a.txt", &fields).await;
        let told = head(&mut stream).await;
        assert!(told.starts_with(&format!("http/1.1 {status} ")), "{method} {fields}{told}");
        let promised = length.map(|length| format!("\r\ncontent-length: {length}\r\n"));
        assert_eq!(told.contains("content-length"), length.is_some(), "{method} {fields}{told}");
        assert!(promised.is_none_or(|promised| told.contains(&promised)), "{method} {fields}{told}");
        let mut received = String::new();
        stream.read_to_string(&mut received).await.unwrap();
        assert_eq!(received, body);
    }
    launched.end().await;
}

#[async_test]
async fn a_slow_client_gets_every_byte_while_the_volume_is_overrun() {
    let site = Site::with(FileCache::new(volume(40_000_000)));
    let content = bytes(10_000_000, 5);
    site.write("large.bin", &content);
    site.settle("large.bin");
    let launched = Launched::of(&site).await;
    for target in ["/large.bin", "/named/large.bin"] {
        let mut stream = launched.ask("GET", target, "").await;
        assert!(head(&mut stream).await.contains("content-length: 10000000"));
        let mut received = Vec::new();
        let mut piece = vec![0; 1 << 20];
        let mut number = 0_u32;
        loop {
            let length = stream.read(&mut piece).await.unwrap();
            if length == 0 {
                break;
            }
            received.extend_from_slice(&piece[..length]);
            for _ in 0..4 {
                number += 1;
                site.files.cache().put(number.to_le_bytes(), vec![0xff; 1 << 20]).unwrap();
            }
        }
        assert!(received == content);
    }
    launched.end().await;
}

#[async_test]
async fn a_body_whose_file_changes_ends_early_and_is_of_one_version() {
    let site = Site::with(FileCache::new(volume(1 << 20)));
    // More than the kernel buffers for a client that doesn't read, so that the file changes before its end is read.
    let content = bytes(64 << 20, 5);
    site.write("large.bin", &content);
    site.settle("large.bin");
    let launched = Launched::of(&site).await;
    let mut stream = launched.ask("GET", "/large.bin", "").await;
    head(&mut stream).await;
    site.write("large.bin", bytes(64 << 20, 6));
    let mut received = Vec::new();
    // The connection ends early, with or without an error.
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.len() < content.len() && content.starts_with(&received));
    launched.end().await;
}
