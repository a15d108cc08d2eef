//! Adapters for stores with heavy dependencies. They are in a crate of their own, so that users of the engine don't
//! build them.
//!
//! The cheap stores are in `eyewall_bench::stores`; [`ALL`] has those, too. [`HYBRID`], [`REDB`], [`ROCKSDB`] (with
//! [`ROCKSDB_FIFO`]) and [`SQLITE`] take minutes to build. They are features, off by default: `foyer-hybrid`, `redb`,
//! `rocksdb`, `sqlite`, or `all-stores` for all. Without its feature, a store is listed as not available.
//!
//! ```sh
//! export ROCKSDB_LIB_DIR=/usr/lib/x86_64-linux-gnu    # without it, RocksDB itself is built, which takes by far the
//! longest cargo test -p eyewall-bench-compare --features all-stores
//! ```
//!
//! `rocksdb` needs libclang and, with `ROCKSDB_LIB_DIR`, RocksDB's library: Debian's `libclang-dev` and
//! `librocksdb-dev`.
//!
//! `bench/BIAS.md` says how each store is set up, and why. The only unsafe code is one call: heed's `open`.

#![deny(unsafe_code)]

#[cfg(feature = "foyer-hybrid")]
mod hybrid;
mod lmdb;
mod memory;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
#[cfg(feature = "sqlite")]
mod sqlite;
mod version;

use eyewall_bench::peer::Peer;
use eyewall_bench::stores;

#[cfg(feature = "foyer-hybrid")]
pub use self::hybrid::HYBRID;
pub use self::lmdb::{LMDB, LMDB_WRITE_MAP};
pub use self::memory::{FOYER, MOKA, QUICK_CACHE};
#[cfg(feature = "redb")]
pub use self::redb::REDB;
#[cfg(feature = "rocksdb")]
pub use self::rocksdb::{ROCKSDB, ROCKSDB_FIFO};
#[cfg(feature = "sqlite")]
pub use self::sqlite::SQLITE;

/// A store whose feature is off.
#[cfg(not(all(feature = "foyer-hybrid", feature = "redb", feature = "rocksdb", feature = "sqlite")))]
macro_rules! left_out {
    ($name:literal, $feature:literal) => {{
        const WHY: &str = concat!(
            "this program was built without it (cargo build -p eyewall-bench-compare --features ",
            $feature,
            ")"
        );
        Peer {
            name: $name,
            kind: eyewall_bench::peer::Kind::Other,
            look: || Err(eyewall_bench::peer::Absent(WHY.to_owned())),
            open: |_| Err(eyewall_bench::error::Error::Store { store: $name, what: WHY.to_owned() }),
            attach: None,
        }
    }};
}

/// foyer's cache in memory and on a disk; not in this build.
#[cfg(not(feature = "foyer-hybrid"))]
pub const HYBRID: Peer = left_out!("foyer, hybrid", "foyer-hybrid");

/// redb; not in this build.
#[cfg(not(feature = "redb"))]
pub const REDB: Peer = left_out!("redb", "redb");

/// RocksDB; not in this build.
#[cfg(not(feature = "rocksdb"))]
pub const ROCKSDB: Peer = left_out!("RocksDB", "rocksdb");

/// RocksDB that evicts; not in this build.
#[cfg(not(feature = "rocksdb"))]
pub const ROCKSDB_FIFO: Peer = left_out!("RocksDB, FIFO", "rocksdb");

/// SQLite; not in this build.
#[cfg(not(feature = "sqlite"))]
pub const SQLITE: Peer = left_out!("SQLite", "sqlite");

/// All stores that can be opened by name, ours and others; each name once.
pub const ALL: [Peer; 21] = {
    let [eyewall, copied, tier, tier_copied, tagged, files, memcached, redis, bare_copy, plain, nothing] =
        stores::PEERS;
    [
        eyewall,
        copied,
        tier,
        tier_copied,
        tagged,
        files,
        QUICK_CACHE,
        MOKA,
        FOYER,
        HYBRID,
        LMDB,
        LMDB_WRITE_MAP,
        REDB,
        ROCKSDB,
        ROCKSDB_FIFO,
        SQLITE,
        memcached,
        redis,
        bare_copy,
        plain,
        nothing,
    ]
};
