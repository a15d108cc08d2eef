//! PING flood: each frame must be answered, and the client takes no answer.

use super::way::write_all;
use super::{Attacked, MIB, PING, Way, storable};
use crate::common::http2;

#[test]
fn answers_are_not_queued() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let many = http2::frame(PING, 0, 0, b"12345678").repeat(1000);
        // 17 MB.
        write_all(&mut *stream, (0..1000).map(|_| many.clone()));
        attacked.assert_bounded("PING flood", 4 * MIB);
    }
}
