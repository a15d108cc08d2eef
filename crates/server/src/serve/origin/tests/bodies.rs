//! Bodies of requests are streamed to the origin once, and trailers pass in both directions.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::client::{Reply, ask, connect, parse};
use super::scripted::{Origin, nobody, respond};
use super::{front, settings};

/// Reads up to the end of these bytes.
fn read_until(stream: &mut TcpStream, end: &[u8]) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

fn finish(mut client: TcpStream) -> Reply {
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    parse(&bytes, false)
}

#[test]
fn a_piece_is_at_the_origin_before_the_next_is_sent() {
    let (sender, receiver) = channel();
    let sender = Mutex::new(sender);
    let origin = Origin::raw(move |_, stream| {
        sender.lock().unwrap().send(read_until(stream, b"first")).unwrap();
        sender.lock().unwrap().send(read_until(stream, b"second")).unwrap();
        respond(stream, 200, "", 4, b"done");
    });
    let mut client = connect(front(settings([origin.url().as_str()])));
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 11\r\n\r\nfirst").unwrap();
    assert_eq!(receiver.recv().unwrap(), "first");
    client.write_all(b"second").unwrap();
    assert_eq!(receiver.recv().unwrap(), "second");
    assert_eq!(finish(client).text(), "done");
    assert_eq!(origin.asked()[0].field("content-length"), "11");
}

#[test]
fn a_client_that_expects_100_continue_gets_it() {
    let origin = Origin::raw(|_, stream| {
        read_until(stream, b"body");
        respond(stream, 200, "", 4, b"done");
    });
    let mut client = connect(front(settings([origin.url().as_str()])));
    let head = "PUT / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    client.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_until(&mut client, b"\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").unwrap();
    assert_eq!(finish(client).text(), "done");
    assert_eq!(origin.asked()[0].field("expect"), "");
}

#[test]
fn trailers_that_were_announced_come_through() {
    let origin = Origin::raw(|_, stream| {
        let sent = read_until(stream, b"\r\n\r\n");
        let body = format!("{:x}\r\n{sent}\r\n0\r\nX-Sum: 2\r\n\r\n", sent.len());
        let head = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        let _ = stream.write_all(format!("{head}{body}").as_bytes());
    });
    let mut client = connect(front(settings([origin.url().as_str()])));
    let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTE: trailers\r\nTrailer: X-Sum\r\n";
    client
        .write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n").as_bytes())
        .unwrap();
    let mut reply = String::new();
    client.read_to_string(&mut reply).unwrap();
    let reply = reply.to_ascii_lowercase();
    assert!(reply.contains("4\r\nbody\r\n0\r\nx-sum: 1\r\n\r\n"), "{reply}");
    assert!(reply.ends_with("0\r\nx-sum: 2\r\n\r\n"), "{reply}");
}

#[test]
fn requests_with_a_body_or_an_effect_are_sent_once() {
    for (method, length, times) in [("POST", "0", 1), ("PATCH", "0", 1), ("DELETE", "4", 1), ("DELETE", "0", 2)] {
        let origin = Origin::raw(|_, _| {});
        let mut client = connect(front(settings([origin.url().as_str()])));
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        let _ = client.write_all(&b"body"[..length.parse().unwrap()]);
        assert_eq!(finish(client).status, 502);
        assert_eq!(origin.asked().len(), times, "{method}, {length} bytes");
    }
}

#[test]
fn a_post_that_reached_no_origin_fails() {
    let origin = Origin::counting("");
    let dead = format!("http://{}", nobody());
    let server = front(settings([dead.as_str(), &origin.url()]));
    let statuses = [(); 2].map(|()| ask(server, "POST", "/", &["Content-Length: 0"]).status);
    assert_eq!((statuses, origin.asked().len()), ([502, 200], 1));
}

#[test]
fn a_client_that_stops_sending_is_to_blame_and_not_the_origin() {
    let origin = Origin::raw(|_, stream| {
        // Until the server closes.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let mut settings = settings([origin.url().as_str()]);
    settings.timeouts.head = Duration::from_millis(50);
    let mut client = connect(front(settings));
    client.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 11\r\n\r\nfirst").unwrap();
    let reply = finish(client);
    assert_eq!((reply.status, reply.text()), (408, "client-late"));
}

#[test]
fn a_body_that_turns_out_too_large_is_refused() {
    for (chunks, status) in [("5\r\nfirst\r\n0\r\n\r\n", 200), ("5\r\nfirst\r\n1\r\nx\r\n0\r\n\r\n", 413)] {
        let origin = Origin::raw(|_, stream| {
            // It ends early if the server closes.
            let mut bytes = Vec::new();
            let mut byte = [0];
            while !bytes.ends_with(b"\r\n0\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count > 0) {
                bytes.extend(byte);
            }
            respond(stream, 200, "", 4, b"done");
        });
        let mut client = connect(front(settings([origin.url().as_str()])));
        let head = "POST /limited HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.write_all(format!("{head}{chunks}").as_bytes()).unwrap();
        let reply = finish(client);
        assert_eq!((reply.status, reply.text()), (status, if status == 200 { "done" } else { "body-too-large" }));
    }
}
