//! Eyewall for C. `make header` generates `include/eyewall.h` from these sources. Users read that header, so the
//! doc comments here address them.
//!
//! | file | what it holds |
//! |---|---|
//! | `status.rs` | statuses, error messages, and the boundary that no panic crosses |
//! | `pointers.rs` | checks of the pointers that callers pass |
//! | `open.rs`, `get.rs`, `hit.rs`, `put.rs` | opening a cache, look-ups, held entries, changes |
//! | `claim.rs`, `fill.rs`, `stream.rs` | changes in several calls: under a claim, by a flight, piece by piece |
//! | `purge.rs`, `iter.rs`, `stats.rs`, `volume.rs` | purges, iteration, statistics, the volume as a whole |

#![expect(clippy::doc_markdown, reason = "the comments go into a C header, which doesn't use Markdown")]
#![expect(clippy::missing_safety_doc, reason = "the top of the header states the rules of pointers for all functions")]

pub mod claim;
pub mod fill;
pub mod get;
pub mod hit;
pub mod iter;
pub mod open;
pub mod pointers;
pub mod purge;
pub mod put;
pub mod stats;
pub mod status;
pub mod stream;
pub mod volume;

/// An infinite duration, in results that are in milliseconds.
pub const EYEWALL_FOREVER: u64 = u64::MAX;
