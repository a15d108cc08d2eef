//! A volume without a server as a node of a fleet, and the purges that programs make in a volume on their way to the fleet.
//!
//! ```text
//! purge_tag of any process ──> outbox beside the volume ──passing──> Fleet::write ──> the purge log ──> all nodes
//!        the volume <── bare: Volume of eyewall-fleet-redis <── lines of the purge log
//! ```
//! A program that embeds the engine purges a volume; it knows nothing of a fleet. The engine puts the purge into the volume's outbox. Each
//! volume has one process at a time that reads it. [`Passing`] does that for a server, which is a node already. An [`Agent`] does it for a
//! volume that no server has, and also applies the purges of the others there.
//!
//! [`words`] is how purges stand in the log.
//!
//! # What is absent
//! Sites, addresses and pages: a bare volume has entries with keys and tags.

#![forbid(unsafe_code)]

mod agent;
mod bare;
mod epochs;
mod options;
mod passing;
mod sharing;
mod watch;
pub mod words;

pub use agent::{Agent, AgentSettings};
pub use options::{Options, OptionsError};
pub use passing::Passing;
