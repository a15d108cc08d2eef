//! Idealised eviction policies, without headers, index and rounding. They are references for the replay, not peers.

mod gdsf;
mod lru;
mod offline;
mod s3fifo;

pub use gdsf::Gdsf;
pub use lru::Lru;
pub use offline::offline;
pub use s3fifo::{S3Fifo, S3FifoOptions};

use crate::error::Error;
use crate::hits::Hits;
use crate::peer::{Kind, Peer};
use crate::trace::Request;

/// A cache of names and sizes.
pub trait Policy {
    /// Requests an object and, after a miss, admits it. True for a hit.
    fn request(&mut self, request: Request) -> bool;
}

/// Replays `requests` through `policy`.
pub fn replay(policy: &mut impl Policy, requests: &[Request]) -> Hits {
    let mut hits = Hits::default();
    for &request in requests {
        hits.count(request.bytes, policy.request(request));
    }
    hits
}

/// A policy in the form of a record's store. It can't be opened.
const fn reference(name: &'static str) -> Peer {
    Peer {
        name,
        kind: Kind::Reference,
        look: || Ok(None),
        open: |_| Err(Error::Invalid("a simulated policy only replays traces".to_owned())),
        attach: None,
    }
}

/// A reference for replays; [`hits_of`] computes it.
pub const REFERENCES: [Peer; 5] =
    [reference(LRU), reference(S3_FIFO), reference(S3_FIFO_SIZED), reference(GDSF), reference(OFFLINE)];

const LRU: &str = "LRU, simulated";
const S3_FIFO: &str = "S3-FIFO, simulated";
const S3_FIFO_SIZED: &str = "S3-FIFO by size, simulated";
const GDSF: &str = "GDSF, simulated";
const OFFLINE: &str = "offline optimum";

/// Whether this is the name of a simulated policy.
pub fn is_reference(name: &str) -> bool {
    REFERENCES.iter().any(|reference| reference.name == name)
}

/// The object and byte hit ratio, in percent, of the reference of that name under a cap. `None` if there is no such
/// reference.
pub fn hits_of(name: &str, cap_bytes: u64, requests: &[Request]) -> Option<(f64, f64)> {
    let hits = match name {
        LRU => replay(&mut Lru::new(cap_bytes), requests),
        S3_FIFO => replay(&mut S3Fifo::new(S3FifoOptions::plain(cap_bytes)), requests),
        S3_FIFO_SIZED => replay(&mut S3Fifo::new(S3FifoOptions::sized(cap_bytes)), requests),
        GDSF => replay(&mut Gdsf::new(cap_bytes), requests),
        OFFLINE => return Some(offline(cap_bytes, requests)),
        _ => return None,
    };
    Some((hits.object_percent(), hits.byte_percent()))
}
