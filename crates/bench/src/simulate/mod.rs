//! Idealised eviction policies: no headers, no index, no rounding. References for the replay, not peers.

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
    /// Asks for an object and, on a miss, takes it in; true for a hit.
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

/// A policy as a record has it: no store, and nothing that can be opened.
const fn reference(name: &'static str) -> Peer {
    Peer {
        name,
        kind: Kind::Reference,
        look: || Ok(None),
        open: |_| Err(Error::Invalid("a simulated policy only replays traces".to_owned())),
        attach: None,
    }
}

/// What a replay is held against; [`hits_of`] computes it.
pub const REFERENCES: [Peer; 5] =
    [reference(LRU), reference(S3_FIFO), reference(S3_FIFO_SIZED), reference(GDSF), reference(OFFLINE)];

const LRU: &str = "LRU, simulated";
const S3_FIFO: &str = "S3-FIFO, simulated";
const S3_FIFO_SIZED: &str = "S3-FIFO by size, simulated";
const GDSF: &str = "GDSF, simulated";
const OFFLINE: &str = "offline optimum";

/// Whether that is the name of a policy that is only simulated.
pub fn is_reference(name: &str) -> bool {
    REFERENCES.iter().any(|reference| reference.name == name)
}

/// What the reference of that name reaches under a cap: object and byte hit ratio in percent. `None`: it is none.
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
