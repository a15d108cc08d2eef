//! Eyewall: one memory-mapped cache that all processes of a machine share.
//!
//! Web servers run many processes. Each of them computes and reads the same pages, files and objects. Eyewall keeps
//! one copy of these in a **volume**: a file of fixed size that every process maps into its memory.
//!
//! - A **hit** reads the value where it lies in the map. It takes no lock, makes no system call and copies nothing.
//! - A **put** makes room for itself: it evicts entries before it writes. The volume never grows, and no background
//!   thread runs.
//! - A **crash** of one process doesn't stop the others. A process may be killed at any instruction.
//!
//! # One minute
//!
//! ```
//! use std::time::Duration;
//! use eyewall::{Options, PutOptions};
//!
//! let folder = tempfile::tempdir()?;
//! let cache = Options::new().size(16 << 20).open(folder.path().join("pages"))?;
//!
//! let options = PutOptions::new().ttl(Duration::from_secs(60)).metadata(b"text/html");
//! cache.put_with("/about", "<h1>About us</h1>", &options)?;
//!
//! if let Some(page) = cache.get("/about")? {
//!     assert_eq!(&page[..], b"<h1>About us</h1>"); // read in the map, without a copy
//!     assert_eq!(page.metadata(), b"text/html");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Another process that opens the same path finds the page, too.
//!
//! # What it guarantees
//!
//! - **Hits don't change.** While a [`Hit`] lives, its bytes stay as they are, even if other threads or processes
//!   replace, remove or evict the entry.
//! - **The size is a hard cap.** Creating a volume allocates all of its blocks. Index and tables lie inside.
//! - **A kill loses nothing that was stored.** After a SIGKILL at any instruction, the other processes read on at
//!   once. They write again within milliseconds.
//! - **A key gets its own value.** A look-up compares the whole key. An entry that was written before the volume was
//!   last attached is checked against its checksum before its first use.
//! - **Power loss takes only what wasn't synced.** Entries that reached storage are verified and served again. An
//!   entry that was removed or purged before the last [`Cache::sync`] stays removed.
//! - **Hot entries survive floods.** New entries first pass through a small ring (the S3-FIFO policy). Large entries
//!   need more hits to stay.
//!
//! # What it is not
//!
//! - It is not a database. Any entry may be evicted at any time, and power loss takes what was put since the last
//!   [`Cache::sync`].
//! - It is not for untrusted writers. Every process that may write the file can also change bytes that others hold,
//!   and must not.
//! - It is not for network file systems. The processes share memory, so they run on one machine.
//!
//! # What else it can do
//!
//! - [`Cache::get_or_fill`] collapses requests: one caller over all processes makes an absent entry, the others wait.
//! - [`Cache::purge_tag`] and [`Cache::purge_prefix`] purge any number of entries in the time of a few stores.
//! - [`Cache::lookup`] also returns stale entries, and negative ones, which say that there is nothing.
//! - [`Cache::writer`] stores a value piece by piece, and [`Cache::follow`] reads it while it is being written.
//! - [`Cache::update`] and [`Cache::increment`] change an entry, one process at a time.
//! - [`Options::tier`] puts shared memory in front of a volume on a slow disk.
//! - [`Cache::resize`], [`Cache::export`], [`Cache::verify_with`] and [`Cache::scrub`] are for operations.
//!
//! # Hazards
//!
//! - **Truncation.** If somebody truncates the file, or its storage fails, a read of the map raises SIGBUS and ends
//!   the process. [`Options::survive_sigbus`] makes the cache fail instead: lost bytes read as zeros, every call
//!   returns [`Error::Failed`], and [`Hit::is_intact`] says whether a held hit can still be trusted.
//! - **Overwritten headers.** If somebody overwrites the header of an open volume, the cache fails in the same way,
//!   with or without that option. Puts and misses check the header now and then; [`Cache::check_header`] checks it at
//!   once.
//! - **Page faults.** Reading bytes that are not in memory waits for storage. This also holds for the bytes of a hit.
//!   Event loops ask [`Cache::is_resident`] first.
//! - **Fork.** A forked child may use a [`Cache`] that its parent opened. It must not read a [`Hit`] that its parent
//!   held; reading one panics.
//! - **Long-held hits.** Bytes that a hit holds can't be evicted, so drop hits as soon as you are done. A
//!   volume consists of up to 16 independent stripes. When readers hold more than one eighth of a stripe, its further
//!   hits are copies on the heap. When a put still finds no room, it returns [`Error::Pinned`].
//!
//! # Platforms
//!
//! Eyewall runs on Linux and is tested on x86-64. The code is also written for aarch64 (it doesn't rely on the memory
//! order of x86), where it is untested. Big-endian and 32-bit targets fail to compile. Other Unixes lack
//! open-file-description locks and futexes.
//!
//! # Where to go from here
//!
//! Start with [`Cache`], which has all operations, and [`Options`], which opens volumes. In the repository,
//! `ARCHITECTURE.md` shows how the engine works, `docs/format.md` describes the bytes of a volume, and
//! `docs/invariants.md` argues why it is correct.

#[cfg(target_endian = "big")]
compile_error!("the volume format is little-endian, and its words are used in place");
#[cfg(not(target_pointer_width = "64"))]
compile_error!("volumes are mapped whole: a 64-bit address space is needed");

mod aside;
mod attach;
mod cache;
mod claim;
mod details;
mod displacement;
mod error;
mod extents;
mod failure;
mod fill;
mod format;
mod hit;
mod iter;
mod lock;
mod mapped;
mod options;
mod paging;
#[cfg(feature = "seams")]
mod parse;
mod peek;
mod policy;
mod process;
#[doc(hidden)]
pub mod protocol;
mod purge;
mod put;
mod read;
mod recently_resident;
mod residency;
mod resize;
mod scrub;
mod seam;
mod shared_memory;
mod sketch;
mod stats;
mod stripe;
mod thread;
mod tier;
mod transfer;
mod update;
mod verify;
mod volume;
mod write;

pub use cache::Cache;
pub use details::{Details, Hot, ProcessDetails, RingDetails, SizeClass, StripeDetails};
pub use error::{Error, Result};
pub use extents::{Extent, ExtentKind, RingKind};
pub use fill::{
    Committed, Fill, FillError, FillOptions, Filled, Filling, Flight, Follower, Foreign, Made, NotStored, SecondLevel,
    Writer,
};
pub use hit::{Hit, Info, Lookup, OwnedHit};
pub use iter::Iter;
pub use options::{Options, Unclean};
pub use purge::{Epoch, Outbox, Purge, PurgeOf};
pub use put::{Change, Counter, PutOptions, Touch, Updated};
pub use resize::Resized;
pub use scrub::{Scrub, ScrubTurn, Scrubbed};
pub use stats::{FoundTier, Stats, TierStats, Written};
pub use transfer::{Broken, Exported, Import, ImportError, Imported};
pub use update::Claimed;
pub use verify::{Check, Repairs, Report};

/// Hooks for tests: kill points, a reader that can be stopped, a clock that can be moved.
#[cfg(feature = "seams")]
#[doc(hidden)]
pub mod seams {
    pub use crate::parse::parse;
    pub use crate::seam::armed::{die_after, pause_before_judging, pause_before_pin, stop_after, stores_since};
    pub use eyewall_region::clock::{shift_for_tests as shift_clock, shift_wall_for_tests as shift_wall_clock};
    pub use eyewall_region::memory::ignore_waiting_for_tests as ignore_waiting;
}

/// The snippets of the README and of the manual's first page, so that `cargo test` compiles them.
#[cfg(doctest)]
mod snippets {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/getting-started.md")]
    struct GettingStarted;
}
