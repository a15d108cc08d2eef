//! Slowloris: many connections with heads that never end.

use std::io::Write as _;

use super::{Attacked, Way, storable};

const CONNECTIONS: usize = 300;
/// Most of `header_bytes`.
const HEAD: usize = 60_000;

#[test]
fn unfinished_heads_cost_no_more_than_their_limit() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let head = format!("GET /page HTTP/1.1\r\nHost: test\r\nX-Long: {}", "v".repeat(HEAD));
        let slow: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = attacked.reached.connect();
                stream.write_all(head.as_bytes()).unwrap();
                stream
            })
            .collect();
        // A buffer grows by doubling.
        attacked.assert_bounded("300 heads of 60 KB", CONNECTIONS as u64 * (144 << 10));
        drop(slow);
    }
}

#[test]
fn silent_connections_cost_little() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let silent: Vec<_> = (0..CONNECTIONS).map(|_| attacked.reached.connect()).collect();
        attacked.assert_bounded("300 silent connections", CONNECTIONS as u64 * ((16 << 10) + way.bytes()));
        drop(silent);
    }
}
