//! Clients that send the bodies of their requests too slowly get 408, and don't block the origin. All times here are settings.

use std::convert::Infallible;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::common::client::{Reply, connect, parse};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

/// The number of slow clients, and of the requests that the origin answers at a time.
const SLOW: usize = 200;
const PLACES: usize = 4;
/// How often a slow client sends a byte.
const NOW_AND_THEN: Duration = Duration::from_millis(50);

const IMPATIENT: &str = "[server]\n[server.limits]\nbody_rate_min = 1000\nbody_grace = \"200ms\"\n";

fn server(limits: &str, origin: &Origin) -> Server {
    Server::configured(&format!("{limits}[[site]]\norigins = [\"{}\"]\n", origin.url()))
}

/// Sends a head that announces this many bytes. The client would keep the connection.
fn begin(server: &Server, method: &str, length: usize) -> TcpStream {
    begin_and(server, method, length, "keep-alive")
}

fn begin_and(server: &Server, method: &str, length: usize, then: &str) -> TcpStream {
    let mut client = connect(server.address);
    let fields = format!("Host: test\r\nContent-Type: text/plain\r\nConnection: {then}\r\nContent-Length: {length}");
    client.write_all(format!("{method} / HTTP/1.1\r\n{fields}\r\n\r\n").as_bytes()).unwrap();
    client
}

/// Sends a byte now and then until the server closes the connection, and returns the server's bytes.
fn dawdle(mut client: TcpStream) -> Reply {
    client.set_read_timeout(Some(NOW_AND_THEN)).unwrap();
    let (mut said, mut piece) = (Vec::new(), [0; 1000]);
    loop {
        match client.read(&mut piece) {
            Ok(0) => return parse(&said, false),
            Ok(count) => said.extend(&piece[..count]),
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted) => {
                // The server may have closed it, which the next read shows.
                let _ = client.write_all(b"x");
            }
            // What came before the connection was reset has been read.
            Err(_) => return parse(&said, false),
        }
    }
}

/// Reads this many bytes, or up to the end of the stream.
fn read_body(stream: &mut TcpStream, length: &str) -> u64 {
    std::io::copy(&mut stream.take(length.parse().unwrap_or(0)), &mut std::io::sink()).unwrap_or(0)
}

fn assert_refused(reply: &Reply, why: &str) {
    assert_eq!((reply.status, reply.field("connection")), (408, "close"), "{reply:?}");
    assert!(reply.text().contains(why), "{reply:?}");
}

#[test]
fn two_hundred_of_them_leave_the_origin_to_others() {
    let places = Arc::new((Mutex::new(PLACES), Condvar::new()));
    let (taken, is_taken) = channel();
    let taken = Mutex::new(taken);
    let origin = Origin::raw(move |asked, stream| {
        let (free, freed) = &*places;
        drop(freed.wait_while(free.lock().unwrap(), |free| *free == 0).map(|mut free| *free -= 1));
        if asked.method == "POST" {
            let _ = taken.lock().unwrap().send(());
        }
        read_body(stream, asked.field("content-length"));
        *free.lock().unwrap() += 1;
        freed.notify_one();
        respond(stream, 200, "", 4, b"page");
    });
    let server = server(IMPATIENT, &origin);
    let slow: Vec<_> =
        (0..SLOW).map(|_| begin(&server, "POST", 1_000_000)).map(|client| thread::spawn(|| dawdle(client))).collect();
    for _ in 0..PLACES {
        is_taken.recv().unwrap();
    }
    for number in 0..10 {
        assert_eq!(server.get(&format!("/{number}")).text(), "page");
    }
    for client in slow {
        assert_refused(&client.join().unwrap(), "slower than 1000 B a second");
    }
    assert_eq!(server.get("/again").text(), "page");
}

#[test]
fn the_whole_body_has_a_time() {
    let origin = Origin::raw(|asked, stream| {
        read_body(stream, asked.field("content-length"));
    });
    let server = server("[server]\n[server.limits]\nbody_rate_min = 0\nbody_timeout = \"300ms\"\n", &origin);
    assert_refused(&dawdle(begin(&server, "POST", 1_000_000)), "did not send the request's body within 300 ms");
}

#[test]
fn a_query_whose_content_becomes_part_of_the_key() {
    let origin = Origin::counting("");
    let server = server(IMPATIENT, &origin);
    assert_refused(&dawdle(begin(&server, "QUERY", 1000)), "slower than 1000 B a second");
    assert!(origin.asked().is_empty());
}

#[test]
fn a_client_that_is_slow_but_not_too_slow() {
    let origin = Origin::raw(|asked, stream| {
        let bytes = read_body(stream, asked.field("content-length")).to_string();
        respond(stream, 200, "", bytes.len(), bytes.as_bytes());
    });
    // Each byte earns the full time again.
    let server = server("[server]\n[server.limits]\nbody_rate_min = 1\nbody_grace = \"1m\"\n", &origin);
    let reply = dawdle(begin_and(&server, "POST", 10, "close"));
    assert_eq!((reply.status, reply.text()), (200, "10"));
}

#[test]
fn a_client_is_not_late_while_the_origin_takes_nothing() {
    const LENGTH: usize = 16 << 20;
    let (begun, has_begun) = channel();
    let (go_on, may_go_on): (Sender<()>, Receiver<()>) = channel();
    let gates = Mutex::new((begun, may_go_on));
    let origin = Origin::raw(move |asked, stream| {
        let gates = gates.lock().unwrap();
        gates.0.send(()).unwrap();
        let _ = gates.1.recv();
        let bytes = read_body(stream, asked.field("content-length")).to_string();
        respond(stream, 200, "", bytes.len(), bytes.as_bytes());
    });
    let server =
        server("[server]\n[server.limits]\nbody_rate_min = 1\nbody_grace = \"2s\"\nbody_timeout = \"2s\"\n", &origin);
    let mut client = begin_and(&server, "POST", LENGTH, "close");
    let sending = thread::spawn(move || {
        client.write_all(&vec![b'x'; LENGTH]).unwrap();
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        parse(&said, false)
    });
    has_begun.recv().unwrap();
    // More than the client may let the server wait.
    thread::sleep(Duration::from_secs(3));
    drop(go_on);
    let reply = sending.join().unwrap();
    assert_eq!((reply.status, reply.text()), (200, LENGTH.to_string().as_str()));
}

#[test]
fn an_origin_that_answers_before_the_body_is_released() {
    let (ended, has_ended) = channel();
    let ended = Mutex::new(ended);
    let origin = Origin::raw(move |asked, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf").unwrap();
        let _ = ended.lock().unwrap().send(read_body(stream, asked.field("content-length")));
    });
    let server = server(IMPATIENT, &origin);
    let reply = dawdle(begin(&server, "POST", 1_000_000));
    assert!(reply.status == 200 && !reply.is_whole, "{reply:?}");
    assert!(has_ended.recv().unwrap() < 1_000_000);
}

/// A body that never continues after its first piece.
struct Stuck(Option<Bytes>);

impl Body for Stuck {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None => Poll::Pending,
        }
    }
}

#[tokio::test]
async fn a_late_stream_of_http_2_does_not_end_the_others() {
    let origin = Origin::raw(|asked, stream| {
        if asked.method == "GET" {
            return respond(stream, 200, "", 4, b"page");
        }
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let server = server(IMPATIENT, &origin);
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let slow = Stuck(Some(Bytes::from_static(b"x"))).boxed();
    let response = sender.send_request(Request::post("http://test/").body(slow).unwrap()).await.unwrap();
    assert_eq!((response.status(), response.headers().get("connection")), (StatusCode::REQUEST_TIMEOUT, None));
    let other = Request::get("http://test/page").body(Empty::new().boxed()).unwrap();
    let other = sender.send_request(other).await.unwrap();
    assert_eq!(other.into_body().collect().await.unwrap().to_bytes(), "page");
}
