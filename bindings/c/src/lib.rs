//! Eyewall for C. `include/eyewall.h` is generated from these sources, and is what its users read: comments here are for them.
//!
//! | file | what it holds |
//! |---|---|
//! | `status.rs` | answers, errors and their words; the border that no panic crosses |
//! | `pointers.rs` | what comes through pointers, looked at |
//! | `open.rs`, `get.rs`, `hit.rs`, `put.rs` | a cache, look-ups, entries that are held, changes |
//! | `claim.rs`, `fill.rs`, `stream.rs` | changes that take their time: under a claim, once for all that ask, piece by piece |
//! | `purge.rs`, `iter.rs`, `stats.rs`, `volume.rs` | purges, all entries, numbers, the volume as a whole |

#![expect(clippy::doc_markdown, reason = "the comments go into a header of C, where names stand as they are")]
#![expect(clippy::missing_safety_doc, reason = "the header says once, for all functions, what pointers must be")]

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

/// A duration without an end, where a result is in milliseconds.
pub const EYEWALL_FOREVER: u64 = u64::MAX;
