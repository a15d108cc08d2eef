//! Eyewall: one memory-mapped cache that every process on a machine shares.
//!
//! Web servers run many processes that compute and read the same pages, files and objects again and again.
//! Eyewall keeps them in one **volume**: a file of fixed size, mapped by each process that opens it. A hit
//! is found and read without a lock, a system call or a copy. A put evicts what has to go, inline; the
//! volume never grows. Processes may be killed at any instruction: the others go on.
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
//!     assert_eq!(&page[..], b"<h1>About us</h1>"); // where it lies in the map
//!     assert_eq!(page.metadata(), b"text/html");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it guarantees
//!
//! - **Hits stay as they are.** As long as a [`Hit`] lives, its bytes don't change, whatever other threads
//!   and processes put, remove or evict.
//! - **The cap is hard.** All blocks are allocated when the volume is created; index and tables lie inside.
//! - **A kill costs nothing that was published.** SIGKILL at any instruction leaves a volume that the others
//!   read on at once, and write on within milliseconds.
//! - **What was asked for is what you get.** The whole key is compared; what was written before the volume
//!   was last attached is checked against its checksum before it is used.
//! - **Power loss takes no more than what wasn't synced.** What reached storage is verified and served; what was removed or
//!   purged before the last [`Cache::sync`] stays so.
//! - **Hot entries survive floods.** Newcomers pass a small ring first (S3-FIFO); large ones must earn more.
//!
//! # What it is not
//!
//! - Not a database: anything may be evicted at any time. Power loss takes what
//!   was put since the last [`Cache::sync`].
//! - Not for untrusted writers: whoever may write the file is trusted not to change bytes that are held.
//! - Not for network file systems: the processes share memory, so they share a machine.
//!
//! # Hazards
//!
//! - **Truncation.** If somebody truncates the file, or its storage fails, reading the map raises SIGBUS, which ends
//!   the process. With [`Options::survive_sigbus`] the cache fails instead: lost bytes read as zeros, every call
//!   returns [`Error::Failed`], and [`Hit::is_intact`] says whether a hit that is held can still be trusted.
//! - **Overwritten headers.** If somebody overwrites the volume's header while it is open, the cache fails in the same way, with
//!   or without that option: puts and misses look at it now and then, [`Cache::check_header`] does at once.
//! - **Waiting.** Reading bytes that the kernel has not in memory waits for storage, inside of a hit's bytes, too. Event
//!   loops ask [`Cache::is_resident`] before.
//! - **Fork.** A child may use a [`Cache`] that its parent opened; it must not read a [`Hit`] that its
//!   parent held (this panics).
//! - **Holding.** Bytes that are held can't be evicted: drop hits when done. Beyond one eighth of a stripe,
//!   hits become heap copies; when even so no room can be made, puts return [`Error::Pinned`].
//!
//! Linux only; tested on x86-64. Written for aarch64 too (no reliance on x86 ordering), untested there. Big
//! endian machines are refused at compile time. Other Unixes lack open-file-description locks and futexes.
//!
//! # Where to go from here
//!
//! [`Cache`] has everything that you call, [`Options`] how a volume is opened. `ARCHITECTURE.md` shows how
//! it works, `docs/format.md` what the bytes mean, `docs/invariants.md` why it is right.

#[cfg(target_endian = "big")]
compile_error!("the volume format is little-endian, and its words are used in place");
#[cfg(not(target_pointer_width = "64"))]
compile_error!("volumes are mapped whole: a 64-bit address space is needed");

mod aside;
mod attach;
mod cache;
mod claim;
mod details;
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
pub use fill::{Committed, Fill, FillError, FillOptions, Filled, Filling, Flight, Follower, NotStored, Writer};
pub use hit::{Hit, Info, Lookup, OwnedHit};
pub use iter::Iter;
pub use options::{Options, Unclean};
pub use purge::{Epoch, Purge};
pub use put::{Change, Counter, PutOptions, Touch, Updated};
pub use resize::Resized;
pub use scrub::{Scrub, ScrubTurn, Scrubbed};
pub use stats::{FoundTier, Stats, TierStats, Written};
pub use transfer::{Broken, Exported, Import, ImportError, Imported};
pub use update::Claimed;
pub use verify::{Check, Repairs, Report};

/// Seams for tests: kill points, a stopped reader, a clock that moves.
#[cfg(feature = "seams")]
#[doc(hidden)]
pub mod seams {
    pub use crate::format::parse::parse;
    pub use crate::seam::armed::{die_after, pause_before_judging, pause_before_pin, stop_after, stores_since};
    pub use eyewall_region::clock::{shift_for_tests as shift_clock, shift_wall_for_tests as shift_wall_clock};
    pub use eyewall_region::memory::ignore_waiting_for_tests as ignore_waiting;
}

/// The snippets of the README and of the manual's first page, which `cargo test` compiles.
#[cfg(doctest)]
mod snippets {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/getting-started.md")]
    struct GettingStarted;
}
