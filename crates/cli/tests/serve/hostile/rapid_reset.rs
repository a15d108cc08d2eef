//! Rapid reset (CVE-2023-44487): streams that are opened and reset at once don't count as concurrent ones.

use super::way::{is_closed, write_all};
use super::{Attacked, END_HEADERS, END_STREAM, HEADERS, MIB, RST_STREAM, Way, get, storable};
use crate::common::http2;

const STREAMS: u32 = 100_000;

#[test]
fn the_connection_is_closed_and_the_origin_is_spared() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let pieces = (0..STREAMS).map(|number| {
            let stream = 2 * number + 1;
            let request = http2::frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(way, &format!("/{number}")));
            [request, http2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
        });
        let taken = write_all(&mut *stream, pieces);
        assert!(taken < STREAMS as usize, "the server took all of it");
        assert!(is_closed(stream));
        let asked = attacked.origin.asked().len();
        assert!(asked < 2000, "the origin got {asked} requests");
        attacked.assert_bounded("rapid reset", 16 * MIB);
    }
}

#[test]
fn requests_that_are_given_up_a_little_later_count_too() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        // A hundred at a time, so that the server sees each request before it is given up.
        let pieces = (0..STREAMS / 100).map(|round| {
            let streams = || (0..100).map(move |number| 2 * (100 * round + number) + 1);
            let requests = streams().flat_map(|stream| {
                http2::frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(way, &format!("/{stream}")))
            });
            let resets = streams().flat_map(|stream| http2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            requests.chain(resets).collect()
        });
        let taken = write_all(&mut *stream, pieces);
        assert!(taken < STREAMS as usize / 100, "the server took all of it");
        assert!(is_closed(stream));
        attacked.assert_bounded("late resets", 16 * MIB);
    }
}
