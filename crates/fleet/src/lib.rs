//! The purge log of a fleet: how a purge at one node reaches all others, and how a node notices that it has missed some.
//!
//! ```text
//! a purge ──> Outbox ──write──> the log: line 7, line 8, line 9 ... ──read──> Follower ──> Apply, SoftenAll
//!               ^  kept until the log has it                                     ^ state: who writes the log, how long it is
//! ```
//! The log is one list of numbered lines on a server that everybody can reach, such as Redis. Each node follows it. This crate is
//! the protocol alone: [`Follower`] and [`Outbox`] take what arrived and the time, and return what to do. A driver has the sockets
//! and the volume. So the simulation in `tests/simulation` runs the same code over a network that loses, delays, doubles and reorders
//! messages.
//!
//! # Reigns
//! A server that is replaced may have lost the last lines, and its successor may use their numbers again. So each line carries the
//! [`Reign`] in which it was written: a word that is new whenever another server, or another list, takes over. Within a reign, a number
//! means one line. Two logs that have the same line, by number and reign, have the same lines before it, because replicas copy in order.
//! Each line also carries the reign of the line before it. That is how a reader knows that both lines come from one log.
//!
//! # What is promised
//! Once the log has a purge, no node answers from what was stored before it, without asking the origin, later than `max_blind` after.
//! These invariants lead to it; `docs/invariants.md` says which assumptions they need.
//!
//! - **N1** A node applies the lines of one log in order, without leaving one out. Otherwise it has a *gap*.
//! - **N2** A node answers a gap by making everything stale that it has stored so far. Then it goes on at the log's end.
//! - **N3** A change of the reign is a gap, unless the operator says that no acknowledged line is ever lost (`is_durable`). Then it is
//!   one if the node's last line isn't in the new log.
//! - **N4** A node is *confirmed* up to the moment at which it asked for the log's state, once it has applied all lines of that state. With
//!   replicas, the state counts only if enough of them have acknowledged it, so that a server that was replaced confirms nobody.
//! - **N5** A node that isn't confirmed for 3/4 of `max_blind` is *blind*. It makes everything stale now, and again after each half of
//!   `max_blind`, until it is confirmed.
//! - **N6** A purge stays with its node until the log has it, and is written again when the reign changes. Applying it twice does no harm.
//!
//! # Responses of others
//! Nodes may also take stored responses from each other, or from a store that they share ([`Notes`], [`home`]). Three more invariants keep
//! the promise then:
//!
//! - **N8** A response carries the number of the last line that its maker had applied before it was made ([`AsOf`]). A node takes it only
//!   if no line after that, of the same history, covers it.
//! - **N9** A node notes a line before it applies it, and judges a foreign response after it has marked the state of its purges.
//! - **N10** A node applies its own purge when it is made, and again when it reads it in the log. The purge counts as done only then.
//!
//! # What is absent
//! What a purge means, and what a cache does with it. A place is saved after its lines were applied, and loaded by the driver.

#![forbid(unsafe_code)]

mod follower;
pub mod home;
mod log;
mod notes;
mod outbox;

pub use follower::{Action, Follower, Gap, Settings};
pub use log::{Line, Place, Reign, State};
pub use notes::{AsOf, Covers, Notes, Subject};
pub use outbox::{Full, Limits, Outbox, Ticket, Unwritten};
