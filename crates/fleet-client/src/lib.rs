//! Fills of a volume ask the fleet's agent beside it for what other machines have made, and give it what they make.
//!
//! ```text
//! Flight of the engine ──ask, offer──> Client ──Unix socket──> agent ──> second level on Redis
//! ```
//! The client has no thread and keeps no connection, so forked processes can use it. An agent that is away or slow is left out for a second;
//! so it costs a fill at most [`WAIT`] now and then. [`protocol`] is what both say.
//!
//! # What is absent
//! Redis, and the judgement whether an object is still right: the agent does that.

#![forbid(unsafe_code)]

mod client;
pub mod protocol;

pub use client::{Client, WAIT, join, socket_of};
