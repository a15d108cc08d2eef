//! Numbers that distinguish what is stored of an address at different times.

use std::time::SystemTime;

use crate::head::Version;

/// A random number that no other vary index or body has had.
pub(crate) fn generation() -> u64 {
    let mut bits = [0; 8];
    if getrandom::fill(&mut bits).is_err() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        bits = (now.unwrap_or_default().as_nanos() as u64).to_ne_bytes();
    }
    u64::from_ne_bytes(bits)
}

/// A random version of a body.
pub(crate) fn version() -> Version {
    Version::new(generation()).unwrap_or(Version::MIN)
}
