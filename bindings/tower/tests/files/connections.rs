//! Real connections with slow clients, and with clients that leave.

use std::net::SocketAddr;
use std::time::Duration;

use eyewall_tower::ServeDir;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::support::{Site, bytes};

/// The smallest buffer that the kernel gives a socket.
const BUFFER_BYTES: u32 = 4096;

/// Serves until it is dropped.
struct Server {
    address: SocketAddr,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn new(dir: ServeDir) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                SockRef::from(&stream).set_send_buffer_size(BUFFER_BYTES as usize).unwrap();
                let dir = dir.clone();
                let service = service_fn(move |request| dir.clone().call(request));
                connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { address, _accepting: accepting }
    }

    /// A client that has asked, and has the head of the answer.
    async fn ask(&self, path: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER_BYTES).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        stream
    }
}

/// A site with a file of a fifth of the volume.
fn site() -> (Site, Vec<u8>) {
    let (site, whole) = (Site::new(&[]), bytes(800_000));
    site.write("film.bin", &whole);
    (site, whole)
}

#[tokio::test]
async fn a_slow_client_gets_every_byte_while_the_volume_is_used_for_others() {
    let (site, whole) = site();
    let dir = site.serve();
    site.get_until(&dir, "/film.bin", "etag").await;
    let server = Server::new(dir.clone()).await;
    let mut slow = server.ask("/film.bin").await;
    let mut taken = vec![0; 1000];
    slow.read_exact(&mut taken).await.unwrap();
    assert!(site.files.cache().stats().unwrap().pins > 0, "what is being sent is held");
    // Each is requested twice, and together they exceed the volume.
    for number in 0..300 {
        site.write(&number.to_string(), bytes(30_000 + number));
    }
    for number in [(0..300), (0..300)].into_iter().flatten() {
        assert!(site.get_until(&dir, &format!("/{number}"), "etag").await.body == bytes(30_000 + number));
    }
    slow.read_to_end(&mut taken).await.unwrap();
    assert!(taken == whole);
}

#[tokio::test]
async fn a_client_that_leaves_early_leaves_nothing_held() {
    let (site, _) = site();
    let dir = site.serve();
    site.get_until(&dir, "/film.bin", "etag").await;
    let server = Server::new(dir).await;
    for _ in 0..4 {
        let mut client = server.ask("/film.bin").await;
        client.read_exact(&mut [0; 1000]).await.unwrap();
        drop(client);
    }
    while site.files.cache().stats().unwrap().pins > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_file_that_is_written_over_while_it_is_sent_is_cut_off() {
    let (site, whole) = site();
    let server = Server::new(site.serve()).await;
    site.get_until(&site.serve(), "/film.bin", "etag").await;
    site.files.remove(site.at("film.bin")).unwrap();
    let mut client = server.ask("/film.bin").await;
    site.write("film.bin", vec![0; whole.len()]);
    let mut taken = Vec::new();
    // The connection may close or be reset: either way, the body is incomplete.
    let _ = client.read_to_end(&mut taken).await;
    assert!(taken.len() < whole.len() && taken == whole[..taken.len()], "{}", taken.len());
}
