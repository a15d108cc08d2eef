//! CONTINUATION flood (CVE-2024-27316): a head that never ends.

use super::way::{is_closed, write_all};
use super::{Attacked, CONTINUATION, END_STREAM, HEADERS, MIB, Way, get, goaways, literal, storable};
use crate::common::http2;

const FRAMES: usize = 10_000;

#[test]
fn many_large_ones() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let fields: Vec<u8> = (0..200).flat_map(|number| literal(&format!("x-{number}"), &"v".repeat(60))).collect();
        let first = http2::frame(HEADERS, END_STREAM, 1, &get(way, "/page"));
        let more = (0..FRAMES).map(|_| http2::frame(CONTINUATION, 0, 1, &fields));
        let taken = write_all(&mut *stream, std::iter::once(first).chain(more));
        assert!(taken < FRAMES, "the server took all of it");
        attacked.assert_bounded("CONTINUATION flood", 4 * MIB);
        assert!(is_closed(stream));
    }
}

#[test]
fn many_empty_ones() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let first = http2::frame(HEADERS, END_STREAM, 1, &get(way, "/page"));
        let more = (0..FRAMES).map(|_| http2::frame(CONTINUATION, 0, 1, &[]));
        write_all(&mut *stream, std::iter::once(first).chain(more));
        attacked.assert_bounded("empty CONTINUATION frames", 4 * MIB);
        let codes = goaways(stream);
        // The client may not see the frame, because more bytes of it arrived after the server closed.
        assert!(codes.iter().all(|code| *code != 0), "{codes:?}");
    }
}
