//! What the bytes of a volume mean: `docs/format.md` draws it, this module is its code.
//!
//! Nothing here locks, evicts or decides; it packs and unpacks words, and checks what an untrusted file
//! says against the file's own bounds.

pub(crate) mod buckets;
pub(crate) mod hash;
pub(crate) mod layout;
pub(crate) mod origin;
pub(crate) mod owner;
#[cfg(feature = "seams")]
pub(crate) mod parse;
pub(crate) mod purges;
pub(crate) mod record;
pub(crate) mod slot;
pub(crate) mod superblock;
pub(crate) mod tags;
pub(crate) mod times;

/// Positions count units of this many bytes; every record starts and ends on one.
pub(crate) const UNIT_BYTES: u64 = 8;
