//! A range of a response that isn't stored, or only in part: Eyewall requests the missing fragments from the origin, and no more.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{ask_range, is_part, is_whole};
use crate::common::command::eyewall;
use crate::common::film::{Film, MIB, bytes};
use crate::common::origin::{Origin, respond};
use crate::common::server::Server;

const LENGTH: u64 = 20 * MIB + 12_345;

#[test]
fn seeks_fetch_only_what_they_need_and_it_is_stored() {
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
fn a_player_that_begins_at_the_start_gets_everything_as_a_range() {
    let film = Film::of(3 * MIB + 5).run();
    let server = film.serve();
    is_part(&ask_range(&server, "0-"), 1, 0..3 * MIB + 5, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    is_whole(&server.get("/film"), 1, 3 * MIB + 5, "Eyewall; hit");
    assert_eq!(film.ranges(), ["bytes=0-"]);
}

#[test]
fn a_small_response_is_fetched_as_a_whole() {
    let film = Film { tag: "W/\"v", ..Film::of(70_000) }.run();
    let server = film.serve();
    is_part(&ask_range(&server, "100-199"), 1, 100..200, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    is_whole(&server.get("/film"), 1, 70_000, "Eyewall; hit");
    assert_eq!(film.ranges(), ["bytes=0-1048575"]);
}

#[test]
fn if_range_is_compared_with_the_fetched_response() {
    let film = Film::of(3 * MIB).run();
    let server = film.serve();
    let other = server.ask("GET", "/film", &["Range: bytes=9-10", "If-Range: \"v0\""]);
    is_whole(&other, 1, 3 * MIB, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
    assert!(film.origin.asked()[0].field("if-range").is_empty());
}

#[test]
fn an_origin_without_ranges_is_asked_once_for_everything() {
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
fn ranges_that_must_not_be_stored_or_combined_bypass_the_volume() {
    let forbidden = Film { fields: "Cache-Control: no-store\r\n", ..Film::of(3 * MIB) };
    let weak = Film { tag: "W/\"v", ..Film::of(3 * MIB) };
    for film in [forbidden, weak] {
        let film = film.run();
        let server = film.serve();
        for _ in 0..2 {
            is_part(&ask_range(&server, "9-10"), 1, 9..11, "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
        }
        // The client gets its range of the first response; the second bypasses the volume.
        assert_eq!(film.ranges(), ["bytes=0-1048575", "bytes=9-10"]);
    }
}

#[test]
fn the_origin_answers_ranges_that_do_not_exist() {
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
fn a_range_past_the_end_gets_no_bytes_although_its_fragment_has_some() {
    let film = Film::of(LENGTH).run();
    let server = film.serve();
    let reply = ask_range(&server, &format!("{LENGTH}-"));
    assert_eq!((reply.status, reply.field("content-range")), (416, &*format!("bytes */{LENGTH}")));
    // A hit, or a response that is being stored.
    is_part(&ask_range(&server, "-10"), 1, LENGTH - 10..LENGTH, "Eyewall; ");
    assert_eq!(film.ranges(), ["bytes=20971520-"], "what came is used");

    let forbidden = Film { fields: "Cache-Control: no-store\r\n", ..Film::of(3 * MIB + 5) };
    let weak = Film { tag: "W/\"v", ..Film::of(3 * MIB + 5) };
    for film in [forbidden, weak] {
        let film = film.run();
        let server = film.serve();
        for wanted in ["3145733-", "3145740-3145750"] {
            let reply = ask_range(&server, wanted);
            assert_eq!((reply.status, reply.field("content-range")), (416, "bytes */3145733"), "{wanted}");
        }
    }
}

#[test]
fn a_range_at_the_end_of_an_unknown_length_goes_to_the_origin_unchanged() {
    for wanted in [10, 12_345, 12_346, 3 * MIB] {
        let film = Film::of(LENGTH).run();
        let server = film.serve();
        let start = LENGTH - wanted;
        let is_aligned = start.is_multiple_of(MIB);
        let suffix = format!("-{wanted}");
        let miss = "Eyewall; fwd=uri-miss; fwd-status=206; ";
        let first = ask_range(&server, &suffix);
        is_part(&first, 1, start..LENGTH, miss);
        assert_eq!(first.cache().contains("stored"), is_aligned, "{}", first.cache());
        assert_eq!(film.ranges(), [format!("bytes={suffix}")]);
        // Once the length is known, Eyewall fetches whole fragments.
        is_part(
            &ask_range(&server, &format!("{start}-")),
            1,
            start..LENGTH,
            if is_aligned { "Eyewall; hit" } else { miss },
        );
        is_part(&ask_range(&server, &suffix), 1, start..LENGTH, "Eyewall; hit");
        assert_eq!(film.ranges().len(), 1 + usize::from(!is_aligned));
    }
}

/// An origin with a representation of `length` bytes, which answers each range with the range that `gives` returns for it.
fn partial(length: u64, fields: &'static str, gives: fn(Range<u64>) -> Range<u64>) -> Origin {
    Origin::raw(move |asked, stream| {
        let asked = asked.field("range").strip_prefix("bytes=").unwrap();
        let (first, last) = asked.split_once('-').unwrap();
        let end = last.parse().map_or(length, |last: u64| length.min(last + 1));
        let range = first.parse().map_or(length - end, |first| first)..end;
        let range = gives(range);
        let told = format!("{fields}ETag: \"v\"\r\nContent-Range: bytes {}-{}/{length}", range.start, range.end - 1);
        let body = bytes(1, range);
        respond(stream, 206, &told, body.len(), &body);
    })
}

/// A server with fragments of a mebibyte.
fn of_mebibytes(origin: &Origin) -> Server {
    Server::spawn(eyewall().args(["serve", "--listen", "127.0.0.1:0", "--size", "128M", "--origin", &origin.url()]))
}

const FRESH: &str = "Cache-Control: max-age=600\r\n";

#[test]
fn another_part_than_the_requested_one_is_used() {
    let length = 5 * MIB + 77;
    // More than requested: Eyewall stores whole fragments of it.
    let more = partial(length, FRESH, |range| range.start.saturating_sub(100)..range.end + 100);
    let server = of_mebibytes(&more);
    is_part(
        &ask_range(&server, "2000000-2000009"),
        1,
        2_000_000..2_000_010,
        "Eyewall; fwd=uri-miss; fwd-status=206; stored",
    );
    is_part(&ask_range(&server, "1048576-2097151"), 1, MIB..2 * MIB, "Eyewall; hit");
    is_part(&ask_range(&server, "3200000-3200009"), 1, 3_200_000..3_200_010, "Eyewall; fwd=partial");
    is_part(&ask_range(&server, "3145728-4194303"), 1, 3 * MIB..4 * MIB, "Eyewall; hit");
    assert_eq!(more.asked().len(), 2);

    // Less than requested, with all bytes for the client, or with some.
    for (wanted, given) in [("1048600-1048609", MIB + 24..MIB + 34), ("1048600-2000000", MIB + 24..MIB + 1000)] {
        let less = partial(length, FRESH, |range| range.start..range.start + 1000);
        let server = of_mebibytes(&less);
        let reply = ask_range(&server, wanted);
        is_part(&reply, 1, given.clone(), "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
        assert_eq!(reply.field("content-length"), (given.end - given.start).to_string());
        assert_eq!(less.asked().len(), 1, "{wanted}");
    }

    // Another range: the client gets it as such.
    let other = partial(length, FRESH, |_| 7..9);
    let server = of_mebibytes(&other);
    is_part(&ask_range(&server, "1048600-1048609"), 1, 7..9, "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
    assert_eq!(other.asked().len(), 1);
}

#[test]
fn a_part_that_is_not_stored_answers_conditions_too() {
    let origin = partial(5 * MIB, "Cache-Control: no-store\r\n", |range| range);
    let server = Server::over_origin(&origin.url());
    let ask = |path: &str, field: &str| server.ask("GET", path, &["Range: bytes=9-10", field]);
    let same = ask("/a", "If-Range: \"v\"");
    is_part(&same, 1, 9..11, "Eyewall; fwd=uri-miss; fwd-status=206; detail=range");
    assert_eq!(ask("/b", "If-None-Match: \"v\"").status, 304);
    assert_eq!(origin.asked().len(), 2);
}

#[test]
fn several_parts_in_one_answer_are_passed_on() {
    let parts = "--x\r\nContent-Range: bytes 0-1/9\r\n\r\nab\r\n--x--\r\n";
    let origin = Origin::raw(move |_, stream| {
        let fields = "Cache-Control: max-age=600\r\nContent-Type: multipart/byteranges; boundary=x";
        respond(stream, 206, fields, parts.len(), parts.as_bytes());
    });
    let server = Server::over_origin(&origin.url());
    let reply = ask_range(&server, "0-1");
    assert_eq!((reply.status, reply.text()), (206, parts));
    assert!(reply.field("content-type").starts_with("multipart/byteranges") && !reply.cache().contains("stored"));
    assert_eq!(origin.asked().len(), 1);
}

#[test]
fn a_range_that_reaches_past_the_end_is_cut() {
    for length in [5, 70_000, 3 * MIB] {
        let film = Film::of(length).run();
        let server = film.serve();
        is_part(&ask_range(&server, "-9999999"), 1, 0..length, "Eyewall; fwd=uri-miss; fwd-status=206; stored");
        is_whole(&server.get("/film"), 1, length, "Eyewall; hit");
    }
}

#[test]
fn several_ranges_are_fetched_one_after_the_other() {
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
fn ranges_whose_first_does_not_exist_bypass_the_volume() {
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
fn a_part_of_a_small_response_does_not_count_as_all_of_it() {
    // A volume of 8 MiB: entries have 512 KiB, fragments 256 KiB.
    for range in [280_000..280_010, 299_990..300_000] {
        let film = Film::of(300_000).run();
        let server = film.serve_sized("8M");
        let asked = format!("{}-{}", range.start, range.end - 1);
        is_part(&ask_range(&server, &asked), 1, range.clone(), "Eyewall; fwd=uri-miss; fwd-status=206; stored");
        is_part(&ask_range(&server, &asked), 1, range, "Eyewall; hit");
        is_whole(&server.get("/film"), 1, 300_000, "Eyewall; fwd=partial");
    }
}
