//! Numbers that tell what is stored of an address at one time from what is stored of it at another.

use std::time::SystemTime;

/// Any number that no other vary index or body had.
pub fn generation() -> u64 {
    let mut bits = [0; 8];
    if getrandom::fill(&mut bits).is_err() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        bits = (now.unwrap_or_default().as_nanos() as u64).to_ne_bytes();
    }
    u64::from_ne_bytes(bits)
}
