//! Eyewall stores a body of 20 MiB while it comes, and never holds all of it in memory.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

use super::{ask_range, is_part, is_whole};
use crate::common::client::{connect, parse, send};
use crate::common::command::eyewall;
use crate::common::film::{Film, MIB, bytes};
use crate::common::origin::Origin;
use crate::common::server::{Server, anonymous_bytes};

const LENGTH: u64 = 20 * MIB + 12_345;
/// The most memory of a server for bodies of 20 MiB.
const MEMORY_MAX: u64 = 12 * MIB;

#[test]
fn it_is_the_same_from_the_origin_and_from_the_volume() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; fwd=uri-miss; fwd-status=200; stored; ttl=3");
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; hit; ttl=3");
    assert_eq!(film.ranges(), [""]);
}

/// Notes the most memory of a server while the origin sends.
fn watched(film: Film) -> (Film, Arc<AtomicU32>, Arc<AtomicU64>) {
    let (process, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let (of, noted) = (Arc::clone(&process), Arc::clone(&most));
    let film = film.before_each_mib(move |_, _| {
        noted.fetch_max(anonymous_bytes(of.load(SeqCst)), SeqCst);
    });
    (film, process, most)
}

#[test]
fn memory_is_bounded_whether_it_is_stored_or_too_large() {
    for size in ["128M", "32M"] {
        let (film, process, most) = watched(Film::of(LENGTH));
        let film = film.run();
        let server = film.serve_sized(size);
        process.store(server.child.id(), SeqCst);
        let before = anonymous_bytes(server.child.id());
        is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; fwd=uri-miss");
        is_whole(
            &server.get("/film"),
            1,
            LENGTH,
            if size == "128M" { "Eyewall; hit" } else { "Eyewall; fwd=uri-miss" },
        );
        let most = most.load(SeqCst).max(anonymous_bytes(server.child.id()));
        assert!(most < before + MEMORY_MAX, "{most} bytes, {before} before, volume of {size}");
    }
}

#[test]
fn a_client_that_reads_nothing_delays_nobody_and_takes_little_memory() {
    let (film, process, most) = watched(Film::of(LENGTH));
    let film = film.run();
    let server = film.serve();
    process.store(server.child.id(), SeqCst);
    let before = anonymous_bytes(server.child.id());
    let mut slow = connect(server.address);
    send(&mut slow, "GET", "/film", &[]);
    let mut bytes = vec![0; 16];
    slow.read_exact(&mut bytes).unwrap();
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; ");
    let most = most.load(SeqCst).max(anonymous_bytes(server.child.id()));
    assert!(most < before + MEMORY_MAX, "{most} bytes, {before} before");
    slow.read_to_end(&mut bytes).unwrap();
    is_whole(&parse(&bytes, false), 1, LENGTH, "Eyewall; fwd=uri-miss");
    assert_eq!(film.ranges(), [""]);
}

#[test]
fn all_kinds_of_ranges_and_conditions_are_answered_from_it() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    assert_eq!(server.get("/film").body.len() as u64, LENGTH);
    for (asked, range) in [
        ("0-0", 0..1),
        ("1048575-1048576", MIB - 1..MIB + 1),
        ("3000000-9000000", 3_000_000..9_000_001),
        ("20971520-", 20 * MIB..LENGTH),
        ("-1", LENGTH - 1..LENGTH),
        ("-3000000", LENGTH - 3_000_000..LENGTH),
        ("5-99999999999", 5..LENGTH),
    ] {
        is_part(&ask_range(&server, asked), 1, range, "Eyewall; hit");
    }
    let several = ask_range(&server, "0-1,1048574-1048577,-2");
    assert_eq!(several.status, 206);
    assert_eq!(several.field("content-length"), several.body.len().to_string());
    let boundary = several.field("content-type").strip_prefix("multipart/byteranges; boundary=").unwrap();
    let mut expected = Vec::new();
    for (number, range) in [0..2, MIB - 2..MIB + 2, LENGTH - 2..LENGTH].into_iter().enumerate() {
        let line = if number == 0 { "" } else { "\r\n" };
        let (first, last) = (range.start, range.end - 1);
        let head = format!("--{boundary}\r\nContent-Type: video/mp4\r\nContent-Range: bytes {first}-{last}/{LENGTH}");
        expected.extend(format!("{line}{head}\r\n\r\n").into_bytes());
        expected.extend(bytes(1, range));
    }
    expected.extend(format!("\r\n--{boundary}--\r\n").into_bytes());
    assert!(several.body == expected);

    let beyond = ask_range(&server, "99999999-");
    assert_eq!((beyond.status, beyond.field("content-range")), (416, format!("bytes */{LENGTH}").as_str()));
    let head = server.ask("HEAD", "/film", &[]);
    assert_eq!((head.status, head.body.len(), head.field("content-length")), (200, 0, LENGTH.to_string().as_str()));
    assert!(head.is_hit(), "{}", head.cache());
    assert_eq!(server.ask("GET", "/film", &["If-None-Match: \"v1\""]).status, 304);
    let right = server.ask("GET", "/film", &["Range: bytes=5-6", "If-Range: \"v1\""]);
    is_part(&right, 1, 5..7, "Eyewall; hit");
    let wrong = server.ask("GET", "/film", &["Range: bytes=5-6", "If-Range: \"v0\""]);
    is_whole(&wrong, 1, LENGTH, "Eyewall; hit");
    assert_eq!(film.ranges(), [""]);
}

#[test]
fn a_stale_response_is_revalidated_by_its_head_alone() {
    let fields = "Cache-Control: no-cache\r\n";
    let film = Film { fields, ..Film::of(3 * MIB) }.run();
    let server = film.serve();
    assert_eq!(server.get("/film").status, 200);
    for _ in 0..2 {
        let reply = server.get("/film");
        is_whole(&reply, 1, 3 * MIB, "Eyewall; fwd=stale; fwd-status=304");
    }
    is_part(&ask_range(&server, "7-8"), 1, 7..9, "Eyewall; fwd=stale; fwd-status=304");
    assert!(film.origin.asked()[1..].iter().all(|asked| asked.field("if-none-match") == "\"v1\""));
    film.change();
    is_whole(&server.get("/film"), 2, 3 * MIB, "Eyewall; fwd=stale; fwd-status=200; stored");
    is_whole(&server.get("/film"), 2, 3 * MIB, "Eyewall; fwd=stale; fwd-status=304");
}

#[test]
fn a_response_of_unknown_length_is_stored_when_it_is_complete() {
    let origin = Origin::raw(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = stream.write_all(head.as_bytes());
        for piece in bytes(1, 0..LENGTH).chunks(100_000) {
            let _ = stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes());
            let _ = stream.write_all(piece).and_then(|()| stream.write_all(b"\r\n"));
        }
        let _ = stream.write_all(b"0\r\n\r\n");
    });
    let server = Server::spawn(eyewall().args([
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--size",
        "128M",
        "--origin",
        &origin.url(),
    ]));
    let first = server.get("/");
    assert!(first.is_whole && first.body == bytes(1, 0..LENGTH));
    is_whole(&server.get("/"), 1, LENGTH, "Eyewall; hit");
    is_part(&server.ask("GET", "/", &["Range: bytes=-9"]), 1, LENGTH - 9..LENGTH, "Eyewall; hit");
    assert_eq!(origin.asked().len(), 1);
}
