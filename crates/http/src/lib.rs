//! The rules of a shared HTTP cache, as functions of messages and times.
//!
//! No sockets, no store, no clock of its own: whoever calls says what time it is. So every rule can be tested by a table, and
//! a history of years takes no time.

#![forbid(unsafe_code)]

pub mod field;
pub mod invalidation;
pub mod partial;
pub mod precondition;
pub mod ranges;
pub mod strong;
pub mod update;
