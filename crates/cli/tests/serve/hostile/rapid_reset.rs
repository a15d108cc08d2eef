//! Rapid reset (CVE-2023-44487): streams that are opened and reset at once don't count as concurrent ones.

use super::{Attacked, END_HEADERS, END_STREAM, HEADERS, MIB, RST_STREAM, get, is_closed, storable, write_all};
use crate::common::http2;

const STREAMS: u32 = 100_000;

#[test]
fn the_connection_is_closed_and_the_origin_is_spared() {
    let attacked = Attacked::new("", storable());
    let mut stream = attacked.connect_http2();
    let pieces = (0..STREAMS).map(|number| {
        let stream = 2 * number + 1;
        let request = http2::frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(&format!("/{number}")));
        [request, http2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes())].concat()
    });
    let taken = write_all(&mut stream, pieces);
    assert!(taken < STREAMS as usize, "the server took all of it");
    assert!(is_closed(stream));
    let asked = attacked.origin.asked().len();
    assert!(asked < 2000, "the origin got {asked} requests");
    attacked.assert_bounded("rapid reset", 16 * MIB);
}

#[test]
fn requests_that_are_given_up_a_little_later_count_too() {
    let attacked = Attacked::new("", storable());
    let mut stream = attacked.connect_http2();
    // A hundred at a time, so that the server sees each request before it is given up.
    let pieces = (0..STREAMS / 100).map(|round| {
        let streams = || (0..100).map(move |number| 2 * (100 * round + number) + 1);
        let requests = streams()
            .flat_map(|stream| http2::frame(HEADERS, END_STREAM | END_HEADERS, stream, &get(&format!("/{stream}"))));
        let resets = streams().flat_map(|stream| http2::frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
        requests.chain(resets).collect()
    });
    let taken = write_all(&mut stream, pieces);
    assert!(taken < STREAMS as usize / 100, "the server took all of it");
    assert!(is_closed(stream));
    attacked.assert_bounded("late resets", 16 * MIB);
}
