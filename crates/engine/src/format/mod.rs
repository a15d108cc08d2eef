//! The format of a volume's bytes, in code. `docs/format.md` draws it.
//!
//! Nothing here locks, evicts or decides. It packs and unpacks words, and checks the words of an untrusted file
//! against the file's own bounds.

pub(crate) mod buckets;
pub(crate) mod hash;
pub(crate) mod layout;
pub(crate) mod origin;
pub(crate) mod owner;
pub(crate) mod purges;
pub(crate) mod record;
pub(crate) mod sketch;
pub(crate) mod slot;
pub(crate) mod superblock;
pub(crate) mod tags;
pub(crate) mod times;

/// Positions count units of this many bytes. Every record starts and ends at a unit.
pub(crate) const UNIT_BYTES: u64 = 8;
/// The bits of a slot that hold a position.
const POSITION_BITS: u32 = 34;
/// The number of positions that a slot can hold.
const POSITIONS_MAX: u64 = 1 << POSITION_BITS;
