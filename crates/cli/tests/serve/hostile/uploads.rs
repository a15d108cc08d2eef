//! Bodies of requests over HTTP/2 that wait for their origin: flow control bounds them.

use super::way::write_all;
use super::{Attacked, DATA, END_HEADERS, HEADERS, Way, literal};
use crate::common::http2;
use crate::common::origin::{Origin, read, respond};

const CONNECTIONS: usize = 40;
const UPLOADS: u32 = 10;

#[test]
fn a_connection_holds_no_more_than_its_window() {
    for way in Way::BOTH {
        let origin = Origin::silent(|stream| match read(stream) {
            Some(asked) if asked.method == "GET" => respond(stream, 200, "Cache-Control: max-age=600", 4, b"page"),
            // The first upload keeps the only place until the server gives it up.
            _ => drop(std::io::copy(stream, &mut std::io::sink())),
        });
        let waiting = "origin_requests = 1\norigin_queue = 1000\norigin_wait = \"1h\"";
        let attacked = Attacked::with_site(way, "", waiting, origin);
        let post = [&[0x83, way.scheme()][..], &literal(":path", "/upload"), &literal(":authority", "test")].concat();
        let mut streams = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = attacked.reached.connect_http2();
            let numbers = || (0..UPLOADS).map(|number| 2 * number + 1);
            let heads = numbers().map(|number| http2::frame(HEADERS, END_HEADERS, number, &post));
            // 64 MB from all connections; the windows allow 10 MB of it.
            let pieces = (0..100).flat_map(|_| numbers().map(|number| http2::frame(DATA, 0, number, &[b'x'; 1600])));
            write_all(&mut *stream, heads.chain(pieces));
            streams.push(stream);
        }
        attacked.assert_bounded("40 connections with 10 uploads each", CONNECTIONS as u64 * (512 << 10));
        drop(streams);
    }
}
