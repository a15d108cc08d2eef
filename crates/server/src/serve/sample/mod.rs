//! A sample of the requests, by which the server gives advice (`../advice`) and shows its hottest and slowest paths.
//!
//! ```text
//! worker ──> part: a hash of host and path below the limit? ──> its records, bounded       one part for each worker
//!                                                                  └──> snapshot: all parts, at one limit
//! ```
//! The sample is spatial (Waldspurger et al., "Efficient MRC Construction with SHARDS", FAST 2015): a path is in it if its // tidy: word
//! hash is below a limit, and then all of its requests are, with all queries and variants. If a part is full, it halves its limit, and
//! drops the paths above it. If what is left is still too much, or more than an hour old, it forgets the older half.
//!
//! # What it costs
//! A request that isn't in the sample costs two hashes of short texts and a comparison. A part has a bounded number of records,
//! some twenty mebibytes for all workers of a machine. Without an administration there is no sample, because nobody could
//! ask for it.
//!
//! # What it holds
//! Paths, whether a query has parameters of trackers, and names of header fields in `Vary`. No values of queries, no fields of clients.

mod keys;
mod names;
mod part;
mod record;
mod slowest;
mod snapshot;

pub(crate) use keys::Candidate;
pub(crate) use part::Part;
pub(crate) use record::{Recent, Record, WITH_LIFETIME, WITH_TRACKERS};
pub(crate) use slowest::{SlowPath, slowest};
pub(crate) use snapshot::Snapshot;
