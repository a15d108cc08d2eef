//! Requests without content share connections: each response ends where its head says, and the next request finds the rest untouched.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::client::{Reply, connect, get, parse, send};
use super::scripted::{Origin, read};
use super::{front, settings};

/// An origin that answers all requests of a connection by the same bytes, some at a time, and the number of its connections. After an
/// answer it goes on if `keeps`.
fn origin(answer: &'static [u8], piece_bytes: usize, keeps: bool) -> (Origin, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let origin = Origin::silent(move |stream: &mut TcpStream| {
        count.fetch_add(1, Ordering::SeqCst);
        stream.set_nodelay(true).unwrap();
        while read(stream).is_some() {
            if answer.chunks(piece_bytes).any(|piece| stream.write_all(piece).is_err()) || !keeps {
                return;
            }
        }
    });
    (origin, connections)
}

/// Three answers one after the other, and the number of connections that they came on.
fn three(answer: &'static [u8], piece_bytes: usize, keeps: bool) -> (Vec<Reply>, usize) {
    let (origin, connections) = origin(answer, piece_bytes, keeps);
    let front = front(settings([origin.url().as_str()]));
    let replies = (0..3).map(|_| get(front, "/")).collect();
    (replies, connections.load(Ordering::SeqCst))
}

#[test]
fn a_connection_is_used_again_after_a_whole_response() {
    for (answer, status, text) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"[..], 200, "body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\n", 304, ""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", 200, "body"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nbo\r\n002 \r\ndy\r\n0\r\n\r\n", 200, "body"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nA: 1\r\nB: 2\r\n\r\n", 200, "body"),
    ] {
        // Byte by byte, so that what has come ends anywhere.
        let (replies, connections) = three(answer, 1, true);
        for reply in &replies {
            assert_eq!((reply.status, reply.text(), reply.is_whole), (status, text, true), "{answer:?}");
        }
        assert_eq!(connections, 1, "{answer:?}");
    }
}

#[test]
fn a_connection_that_the_origin_has_closed_is_not_used_again() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\n\r\nbody",
    ] {
        let (replies, connections) = three(answer, answer.len().max(1), false);
        assert!(replies.iter().all(|reply| (reply.status, reply.text()) == (200, "body")), "{replies:?}");
        assert_eq!(connections, 3, "{answer:?}");
    }
}

#[test]
fn bytes_behind_a_response_belong_to_no_other() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbodyHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil",
    ] {
        let (replies, connections) = three(answer, answer.len(), true);
        assert!(replies.iter().all(|reply| (reply.status, reply.text()) == (200, "body")), "{replies:?}");
        assert_eq!(connections, 3, "{answer:?}");
    }
}

#[test]
fn bytes_behind_a_long_response_belong_to_no_other() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 20_000);
    let answer = [head.as_bytes(), &b"x".repeat(20_000), b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"].concat();
    let (replies, connections) = three(answer.leak(), usize::MAX, true);
    assert!(replies.iter().all(|reply| (reply.status, reply.body.len()) == (200, 20_000)), "{replies:?}");
    assert_eq!(connections, 3);
}

#[test]
fn interim_responses_have_a_greatest_number() {
    let answer = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40);
    let (replies, _) = three(answer.leak(), usize::MAX, true);
    assert!(replies.iter().all(|reply| (reply.status, reply.text()) == (502, "origin-broken")), "{replies:?}");
}

#[test]
fn a_response_that_breaks_off_or_makes_no_sense_is_not_taken_for_a_whole_one() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nbody"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbodyx\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n-1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n a\r\n\r\n",
        // Others may see other lines here.
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x\ny\r\nbody\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nA: 1\n\r\n",
    ] {
        let (origin, _) = origin(answer, 1, false);
        let mut client = connect(front(settings([origin.url().as_str()])));
        send(&mut client, "GET", "/", &[]);
        let mut bytes = Vec::new();
        // The front may have nothing to say.
        let _ = client.read_to_end(&mut bytes);
        assert!(bytes.is_empty() || !parse(&bytes, false).is_whole, "{answer:?}");
    }
    for (answer, why) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nbody"[..], "origin-broken"),
        (b"HTTP/1.1 200 OK\r\nContent-", "origin-broken"),
        (b"", "origin-broken"),
        (b"nonsense\r\n\r\n", "origin-broken"),
    ] {
        let (replies, _) = three(answer, answer.len().max(1), false);
        assert!(replies.iter().all(|reply| (reply.status, reply.text()) == (502, why)), "{replies:?}");
    }
}

#[test]
fn a_head_has_a_greatest_length() {
    let origin = Origin::raw(|_, stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\na: ");
        while stream.write_all(&[b'a'; 1024]).is_ok() {}
    });
    let reply = get(front(settings([origin.url().as_str()])), "/");
    assert_eq!((reply.status, reply.text()), (502, "origin-head-too-large"));
}
