//! A range of what isn't stored, or not all of it: the origin is asked for the fragments that are missing, and no more.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ask_range, is_part, is_whole};
use crate::common::film::{Film, MIB, bytes};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const LENGTH: u64 = 20 * MIB + 12_345;

#[test]
fn seeks_ask_for_what_they_need_and_what_came_is_there() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    let miss = "Eyewall; fwd=uri-miss; fwd-status=206; stored; ttl=3";
    is_part(&ask_range(&server, "5000000-5000009"), 1, 5_000_000..5_000_010, miss);
    is_part(&ask_range(&server, "5000000-5000009"), 1, 5_000_000..5_000_010, "Eyewall; hit");
    is_part(&ask_range(&server, "4194304-5242879"), 1, 4 * MIB..5 * MIB, "Eyewall; hit");
    is_part(&ask_range(&server, "15000000-17000000"), 1, 15_000_000..17_000_001, "Eyewall; fwd=partial; ttl=3");
    is_part(&ask_range(&server, "-10"), 1, LENGTH - 10..LENGTH, "Eyewall; fwd=partial");
    is_part(&ask_range(&server, "4194300-5242890"), 1, 4 * MIB - 4..5 * MIB + 11, "Eyewall; fwd=partial");
    let expected = [
        "bytes=4194304-5242879",
        "bytes=14680064-17825791",
        "bytes=20971520-20983864",
        "bytes=3145728-4194303",
        "bytes=5242880-6291455",
    ];
    assert_eq!(film.ranges(), expected);
    assert_eq!(film.origin.asked()[1].field("if-range"), "\"v1\"");
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; fwd=partial");
    assert_eq!(film.ranges()[5..], ["bytes=0-3145727", "bytes=6291456-14680063", "bytes=17825792-20971519"]);
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; hit");
}

#[test]
fn a_player_that_begins_at_the_start_gets_all_as_a_range() {
    let film = Film::of(3 * MIB + 5).run();
    let server = film.serve();
    is_part(&ask_range(&server, "0-"), 1, 0..3 * MIB + 5, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    is_whole(&server.get("/film"), 1, 3 * MIB + 5, "Eyewall; hit");
    assert_eq!(film.ranges(), ["bytes=0-"]);
}

#[test]
fn a_small_one_comes_as_a_whole() {
    let film = Film { tag: "W/\"v", ..Film::of(70_000) }.run();
    let server = film.serve();
    is_part(&ask_range(&server, "100-199"), 1, 100..200, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    is_whole(&server.get("/film"), 1, 70_000, "Eyewall; hit");
    assert_eq!(film.ranges(), ["bytes=0-1048575"]);
}

#[test]
fn if_range_is_held_against_what_comes() {
    let film = Film::of(3 * MIB).run();
    let server = film.serve();
    let other = server.ask("GET", "/film", &["Range: bytes=9-10", "If-Range: \"v0\""]);
    is_whole(&other, 1, 3 * MIB, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    assert!(film.origin.asked()[0].field("if-range").is_empty());
}

#[test]
fn an_origin_that_gives_no_ranges_is_asked_once_for_all() {
    let film = Film { gives_ranges: false, ..Film::of(LENGTH) }.run();
    let server = film.serve();
    is_part(
        &ask_range(&server, "12000000-12000009"),
        1,
        12_000_000..12_000_010,
        "Eyewall; fwd=uri-miss; fwd-status=200",
    );
    is_part(&ask_range(&server, "-5"), 1, LENGTH - 5..LENGTH, "Eyewall; ");
    is_whole(&server.get("/film"), 1, LENGTH, "Eyewall; ");
}

#[test]
fn what_must_not_be_stored_or_combined_goes_past_the_volume() {
    let forbidden = Film { fields: "Cache-Control: no-store\r\n", ..Film::of(3 * MIB) };
    let weak = Film { tag: "W/\"v", ..Film::of(3 * MIB) };
    for film in [forbidden, weak] {
        let film = film.run();
        let server = film.serve();
        for _ in 0..2 {
            is_part(&ask_range(&server, "9-10"), 1, 9..11, "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
        }
        assert_eq!(film.ranges(), ["bytes=0-1048575", "bytes=9-10", "bytes=9-10"]);
    }
}

#[test]
fn ranges_that_are_not_there_are_told_so_by_the_origin() {
    let film = Film::of(3 * MIB).run();
    let server = film.serve();
    let reply = ask_range(&server, "4000000-");
    assert_eq!((reply.status, reply.field("content-range")), (416, "bytes */3145728"));
    is_part(
        &ask_range(&server, "3145727-3145730"),
        1,
        3_145_727..3_145_728,
        "Eyewall; fwd=uri-miss; fwd-status=206; stored",
    );
    assert_eq!(ask_range(&server, "3145728-").status, 416);
    assert_eq!(film.ranges().len(), 2, "its length is known by now");
}

#[test]
fn the_end_of_what_has_no_known_length_is_stored_from_a_fragment_on() {
    let miss = "Eyewall; fwd=uri-miss; fwd-status=206; stored";
    for (wanted, first_stored) in [(10, 20 * MIB), (12_345, 20 * MIB), (12_346, 19 * MIB), (3 * MIB, 17 * MIB)] {
        let film = Film::of(LENGTH).run();
        let server = film.serve();
        let start = LENGTH - wanted;
        is_part(&ask_range(&server, &format!("-{wanted}")), 1, start..LENGTH, miss);
        is_part(&ask_range(&server, &format!("{start}-")), 1, start..LENGTH, "Eyewall; hit");
        is_part(&ask_range(&server, &format!("{first_stored}-")), 1, first_stored..LENGTH, "Eyewall; hit");
        assert_eq!(film.ranges(), [format!("bytes=-{}", wanted + MIB - 1)]);
        let before = first_stored - 1;
        is_part(&ask_range(&server, &format!("{before}-")), 1, before..LENGTH, "Eyewall; fwd=partial");
    }
}

#[test]
fn more_than_there_is_at_the_end_is_all() {
    for length in [5, 70_000, 3 * MIB] {
        let film = Film::of(length).run();
        let server = film.serve();
        is_part(&ask_range(&server, "-9999999"), 1, 0..length, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
        is_whole(&server.get("/film"), 1, length, "Eyewall; hit");
    }
}

#[test]
fn several_ranges_are_asked_for_one_after_the_other() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    let reply = ask_range(&server, "5000000-5000009,-10,9-10");
    assert_eq!(reply.status, 206);
    assert!(reply.field("content-type").starts_with("multipart/byteranges"), "{:?}", reply.fields);
    let mut rest = &reply.body[..];
    for range in [5_000_000..5_000_010, LENGTH - 10..LENGTH, 9..11] {
        let part = bytes(1, range.clone());
        let at = rest.windows(part.len()).position(|window| window == part);
        rest = &rest[at.unwrap_or_else(|| panic!("no {range:?}"))..];
    }
    assert_eq!(film.ranges(), ["bytes=4194304-5242879", "bytes=20971520-20983864", "bytes=0-1048575"]);
    assert!(ask_range(&server, "5000000-5000009,-10,9-10").is_hit());
    assert_eq!(film.ranges().len(), 3);
}

#[test]
fn ranges_of_which_the_first_is_not_there_go_past_the_volume() {
    let count = AtomicUsize::new(0);
    let origin = Origin::raw(move |asked, stream| {
        let (status, fields, body) = match count.fetch_add(1, Ordering::SeqCst) {
            0 => (416, "Content-Range: bytes */3000000", &b""[..]),
            _ => (206, "Content-Range: bytes 0-1/3000000", &b"ab"[..]),
        };
        assert_eq!(asked.field("range").contains(','), status == 206);
        respond(stream, status, fields, body.len(), body);
    });
    let server = Server::over_origin(&origin.url());
    let reply = ask_range(&server, "9999999-,0-1");
    assert_eq!((reply.status, reply.text()), (206, "ab"));
    let many = ask_range(&server, "0-1,3-4,6-7,9-10,12-13,15-16,18-19,21-22,24-25");
    assert!(many.cache().ends_with("detail=range"), "nine are too many: {many:?}");
}

#[test]
fn a_part_of_what_would_be_one_entry_is_not_taken_for_all_of_it() {
    // Of 8 MiB: entries have 512 KiB, fragments 256.
    for range in [280_000..280_010, 299_990..300_000] {
        let film = Film::of(300_000).run();
        let server = film.serve_sized("8M");
        let asked = format!("{}-{}", range.start, range.end - 1);
        is_part(&ask_range(&server, &asked), 1, range.clone(), "Eyewall; fwd=uri-miss; fwd-status=206; stored");
        is_part(&ask_range(&server, &asked), 1, range, "Eyewall; hit");
        is_whole(&server.get("/film"), 1, 300_000, "Eyewall; fwd=partial");
    }
}
