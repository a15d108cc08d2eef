//! SETTINGS flood: each frame must be acknowledged, and the client takes no acknowledgement.

use super::{Attacked, MIB, SETTINGS, storable, write_all};
use crate::common::http2;

#[test]
fn acknowledgements_are_not_queued() {
    let attacked = Attacked::new("", storable());
    let mut stream = attacked.connect_http2();
    let many = http2::frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 16, 0]).repeat(1000);
    // 15 MB.
    write_all(&mut stream, (0..1000).map(|_| many.clone()));
    attacked.assert_bounded("SETTINGS flood", 4 * MIB);
}
