//! HPACK bombs: few bytes name a long field of the table again and again. And requests whose long fields are sent.

use super::way::{is_closed, write_all};
use super::{Attacked, CONTINUATION, END_HEADERS, END_STREAM, HEADERS, MIB, Way, get, literal, storable, text};
use crate::common::http2;
use crate::common::origin::Origin;

/// The length of the field: the table holds 4096 bytes.
const LONG: usize = 4000;

/// A literal field that the table keeps, with a value of `LONG` bytes (RFC 7541, section 6.2.1).
pub(super) fn kept() -> Vec<u8> {
    [&[0x40][..], &text("x"), &text(&"v".repeat(LONG))].concat()
}

/// A request with the field from the table this many times.
pub(super) fn bomb(way: Way, count: usize) -> Vec<u8> {
    [get(way, "/slow"), vec![0x80 | 0x3e; count]].concat()
}

#[test]
fn a_head_above_the_limit_is_refused() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let first = [get(way, "/page"), kept()].concat();
        let mut pieces = vec![http2::frame(HEADERS, END_STREAM | END_HEADERS, 1, &first)];
        // Each is 60 MB when it is decoded.
        pieces.extend(
            (1..100).map(|number| http2::frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &bomb(way, 15_000))),
        );
        write_all(&mut *stream, pieces.into_iter());
        attacked.assert_bounded("HPACK bomb", 8 * MIB);
        assert!(attacked.origin.asked().iter().all(|asked| asked.target != "/slow"));
        assert!(is_closed(stream));
    }
}

/// An origin that never answers `/slow`.
fn slow() -> Origin {
    Origin::raw(|asked, stream| {
        if asked.target == "/slow" {
            // Until the server gives up.
            let _ = std::io::copy(stream, &mut std::io::sink());
        } else {
            crate::common::origin::respond(stream, 200, "Cache-Control: max-age=600", 4, b"page");
        }
    })
}

#[test]
fn heads_below_the_limit_share_the_bytes_of_the_table() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", slow());
        let mut streams = Vec::new();
        for _ in 0..10 {
            let mut stream = attacked.reached.connect_http2();
            let first = [get(way, "/page"), kept()].concat();
            let mut pieces = vec![http2::frame(HEADERS, END_STREAM | END_HEADERS, 1, &first)];
            // 60 KB each, and 60 MB for all, when they are decoded.
            pieces.extend(
                (1..100).map(|number| http2::frame(HEADERS, END_STREAM | END_HEADERS, 2 * number + 1, &bomb(way, 15))),
            );
            write_all(&mut *stream, pieces.into_iter());
            streams.push(stream);
        }
        attacked.assert_bounded("1000 heads of 60 KB from the table", 16 * MIB);
        drop(streams);
    }
}

#[test]
fn the_heads_of_a_connection_are_limited_together() {
    for way in Way::BOTH {
        const CONNECTIONS: u64 = 10;
        let attacked = Attacked::new(way, "", slow());
        // 58 KB, in frames of at most 16 KiB.
        let fields: Vec<u8> = (0..80).flat_map(|number| literal(&format!("x-{number}"), &"v".repeat(720))).collect();
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = attacked.reached.connect_http2();
            let pieces = (0..100).flat_map(|number| {
                let stream = 2 * number + 1;
                let first = http2::frame(HEADERS, END_STREAM, stream, &get(way, "/slow"));
                let more = fields.chunks(16_000).map(move |part| http2::frame(CONTINUATION, 0, stream, part));
                let last = http2::frame(CONTINUATION, END_HEADERS, stream, &[]);
                std::iter::once(first).chain(more).chain(std::iter::once(last)).collect::<Vec<_>>()
            });
            write_all(&mut *stream, pieces);
            streams.push(stream);
        }
        // 58 MB. A megabyte of each connection waits, and is copied once on its way to the origin.
        attacked.assert_bounded("1000 requests with 58 KB of fields", CONNECTIONS * (3 << 20));
        drop(streams);
    }
}
