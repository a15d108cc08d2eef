//! A budget for memory: attacks stay below it, hits are answered meanwhile, and other requests are answered again afterwards.

use std::fs;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::way::{Way, Wire, write_all};
use super::{Attacked, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, MIB, get, literal};
use crate::common::http2;
use crate::common::origin::{Origin, respond};

/// The smallest budget for these limits: 50 MB for requests, and 50 MB for connections.
const BUDGET: u64 = 140 * MIB;
const LIMITS: &str = "memory = \"140M\"\nstream_bytes = \"8M\"";
const PATIENCE: Duration = Duration::from_mins(1);

/// An origin that answers no path below `/slow`.
fn slow() -> Origin {
    Origin::raw(|asked, stream| {
        if asked.target.starts_with("/slow") {
            let _ = std::io::copy(stream, &mut std::io::sink());
        } else {
            respond(stream, 200, "Cache-Control: max-age=600", 4, b"page");
        }
    })
}

/// A path that nobody has asked for, so that it is a miss.
fn fresh(path: &str) -> String {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    format!("{path}?{}", LAST.fetch_add(1, Ordering::Relaxed))
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

/// Asserts that a miss is answered, once the server has noticed that the attacker is gone.
fn assert_recovers(attacked: &Attacked) {
    until("a miss is answered again", || attacked.reached.get(&fresh("/other")).status == 200);
}

#[test]
fn requests_over_http1_beyond_it_are_refused() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, LIMITS, slow());
        let long = "v".repeat(60_000);
        let mut waiting: Vec<Box<dyn Wire>> = Vec::new();
        // 50 MB are enough for 133 requests of 384 KB, and for 100 over TLS.
        let refused = (0..200).find_map(|_| {
            let mut stream = attacked.reached.connect();
            write!(stream, "GET {} HTTP/1.1\r\nHost: test\r\nX-Long: {long}\r\n\r\n", fresh("/slow")).unwrap();
            waiting.push(stream);
            let mut other = attacked.reached.connect();
            write!(other, "GET {} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n", fresh("/other")).unwrap();
            let mut said = String::new();
            let _ = other.read_to_string(&mut said);
            said.starts_with("HTTP/1.1 503 ").then_some(said)
        });
        let refused = refused.expect("a request is refused").to_ascii_lowercase();
        assert!(
            refused.contains("\r\nretry-after: 1\r\n") && refused.contains("\r\nconnection: close\r\n"),
            "{refused}"
        );
        attacked.assert_bounded("requests over HTTP/1.1 up to the budget", BUDGET);
        drop(waiting);
        assert_recovers(&attacked);
    }
}

#[test]
fn requests_over_http2_beyond_it_are_refused() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, LIMITS, slow());
        // 10 KB; a request counts 104 KB, so 50 MB are enough for about 490.
        let fields: Vec<u8> = (0..14).flat_map(|number| literal(&format!("x-{number}"), &"v".repeat(680))).collect();
        let mut streams = Vec::new();
        for _ in 0..10 {
            let mut stream = attacked.reached.connect_http2();
            let pieces = (0..100).map(|number| {
                let first = http2::frame(HEADERS, END_STREAM, 2 * number + 1, &get(way, &fresh("/slow")));
                [first, http2::frame(CONTINUATION, END_HEADERS, 2 * number + 1, &fields)].concat()
            });
            write_all(&mut *stream, pieces);
            streams.push(stream);
        }
        until("the budget is used up", || attacked.reached.get(&fresh("/other")).status == 503);
        let asked = attacked.origin.asked().iter().filter(|asked| asked.target.starts_with("/slow")).count();
        assert!(asked <= 500, "the origin got {asked} of 1000 requests");
        attacked.assert_bounded("1000 requests over HTTP/2, of which half are above the budget", BUDGET);
        drop(streams);
        assert_recovers(&attacked);
    }
}

#[test]
fn connections_beyond_it_make_room() {
    let limits = format!("{LIMITS}\nidle_timeout = \"1h\"");
    let attacked = Attacked::new(Way::Clear, &limits, slow());
    // 50 MB are enough for 426 connections of 120 KB.
    let flood: Vec<_> = (0..1000).map(|_| attacked.reached.connect()).collect();
    attacked.assert_bounded("1000 connections, and a budget for 426", BUDGET);
    let descriptors = format!("/proc/{}/fd", attacked.reached.server.child.id());
    until("idle connections are closed", || fs::read_dir(&descriptors).unwrap().count() < 500);
    drop(flood);
    assert_recovers(&attacked);
}

#[test]
fn a_connection_over_http2_costs_no_more_than_its_bound() {
    const CONNECTIONS: u64 = 10;
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", slow());
        // All of the fields and the bodies that a connection may have, in requests that go to the origin at once.
        let fields: Vec<u8> = (0..14).flat_map(|number| literal(&format!("x-{number}"), &"v".repeat(680))).collect();
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = attacked.reached.connect_http2();
            let pieces = (0..100).map(|number| {
                let post =
                    [&[0x83, way.scheme()][..], &literal(":path", &fresh("/slow")), &literal(":authority", "test")];
                let first = http2::frame(HEADERS, 0, 2 * number + 1, &post.concat());
                let more = http2::frame(CONTINUATION, END_HEADERS, 2 * number + 1, &fields);
                [first, more, http2::frame(DATA, 0, 2 * number + 1, &[b'x'; 2500])].concat()
            });
            write_all(&mut *stream, pieces);
            streams.push(stream);
        }
        let slow = || attacked.origin.asked().iter().filter(|asked| asked.target.starts_with("/slow")).count();
        until("the origin has all requests", || slow() == 100 * CONNECTIONS as usize);
        attacked
            .assert_bounded("10 HTTP/2 connections with 100 uploads and 1 MB of fields each", CONNECTIONS * 11 * MIB);
        drop(streams);
    }
}
