//! Connection floods: `connections` bounds the memory, and idle connections make room for clients with requests.

use super::{Attacked, Way, storable};

#[test]
fn a_client_with_a_request_gets_in() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "connections = 100\nidle_timeout = \"1h\"", storable());
        let flood: Vec<_> = (0..1000).map(|_| attacked.reached.knock()).collect();
        attacked.assert_bounded("1000 connections, of which 100 are open", 100 * (16 << 10) + (4 << 20));
        drop(flood);
    }
}

#[test]
fn connections_over_http2_that_answer_nothing_make_room() {
    let attacked = Attacked::new(Way::Clear, "connections = 100\nidle_timeout = \"1h\"", storable());
    let flood: Vec<_> = (0..500).map(|_| attacked.reached.connect_http2()).collect();
    assert_eq!(attacked.reached.get("/page").status, 200);
    drop(flood);
}
