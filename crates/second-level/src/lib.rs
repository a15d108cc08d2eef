//! A second level for caches on several machines: a store of bytes that they share, on Redis or on S3.
//!
//! ```text
//! SecondLevel::ask ───> Gate: closed? ──> thread ──> Store::get ──> the bytes
//!                          │ open: `None` at once       ^
//! SecondLevel::offer ──> bounded queue ─────────────────┴──> Store::put
//! ```
//! A cache asks after a miss, before it makes the object itself, and offers objects that were worth making. Nothing here is promised: an
//! object may be gone, an offer may be dropped, and a question may have no answer. That keeps the store from holding up its caches:
//!
//! - A question waits as long as the [`Gate`] allows, and not at all while the store is slow or down.
//! - An offer never waits. What doesn't fit into the queue is dropped.
//! - The store has a bounded size. On Redis, the least popular objects make room. On S3, rules of the bucket remove old objects.
//!
//! Each object has a time after which nobody gets it. With a secret, it is signed: then a program that can only write to the store can't
//! put an object of its own into the caches ([`Settings::secret`]).
//!
//! # What is absent
//! What keys and values mean, and whether a value is still right: its reader judges that. All work is done by one thread
//! ([`SecondLevelThread`]), so any thread may ask, with a runtime or without.

#![forbid(unsafe_code)]

mod frame;
mod gate;
mod handle;
mod offers;
mod redis_store;
mod s3_store;
mod script;
mod settings;
mod status;
mod store;
mod thread;

pub use gate::{Gate, Outcome, Turn, Why};
pub use handle::{Offered, SecondLevel};
pub use settings::{Backend, Credentials, RedisSettings, S3Settings, Settings};
pub use status::{GateState, Status};
pub use thread::{SecondLevelThread, StartError};
