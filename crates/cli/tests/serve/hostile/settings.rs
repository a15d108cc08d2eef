//! SETTINGS flood: each frame must be acknowledged, and the client takes no acknowledgement.

use super::way::write_all;
use super::{Attacked, MIB, SETTINGS, Way, storable};
use crate::common::http2;

#[test]
fn acknowledgements_are_not_queued() {
    for way in Way::BOTH {
        let attacked = Attacked::new(way, "", storable());
        let mut stream = attacked.reached.connect_http2();
        let many = http2::frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0]).repeat(1000);
        // 15 MB.
        write_all(&mut *stream, (0..1000).map(|_| many.clone()));
        attacked.assert_bounded("SETTINGS flood", 4 * MIB);
    }
}
