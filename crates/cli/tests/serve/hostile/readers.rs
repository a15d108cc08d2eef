//! Slow readers over HTTP/1.1: clients that take nothing of a large response. For HTTP/2, see `http2_stalled.rs`.

use std::io::Write as _;

use super::{Attacked, Way};
use crate::common::origin::Origin;

const CONNECTIONS: usize = 50;

#[test]
fn a_response_that_is_not_stored_waits_at_the_origin() {
    for way in Way::BOTH {
        let origin = Origin::answering(|asked| match asked.target.as_str() {
            "/large" => (200, "Cache-Control: no-store".to_owned(), vec![b'x'; 16 << 20]),
            _ => (200, "Cache-Control: max-age=600".to_owned(), b"page".to_vec()),
        });
        let attacked = Attacked::new(way, "", origin);
        let slow: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = attacked.reached.connect();
                stream.write_all(b"GET /large HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
                stream
            })
            .collect();
        while attacked.origin.asked().len() <= CONNECTIONS {
            std::thread::yield_now();
        }
        attacked.assert_bounded("50 readers of 16 MB that take nothing", CONNECTIONS as u64 * (512 << 10));
        drop(slow);
    }
}
