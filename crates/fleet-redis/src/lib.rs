//! A node of a fleet: it writes its purges to a purge log on Redis, and applies those of the others.
//!
//! ```text
//! a purge ──> Fleet::append ──order──> node ──> Outbox ──> link ──> Redis
//!                ^ written               |                  |  lines, states
//!                └───────────────────────┤ <────────────────┘
//!                                        └──> Follower ──> apply ──> Volume
//! ```
//! `eyewall-fleet` is the protocol. This crate gives it Redis (`redis_log`, `link`), the clock (`node`), and a thread ([`FleetThread`]).
//! A [`Volume`] of the caller applies the lines. So no request of the caller waits for the log, unless it asks to.
//!
//! # What is absent
//! What a purge means, where it is stored, and where settings come from.

#![forbid(unsafe_code)]

mod access;
mod apply;
mod handle;
mod link;
mod node;
mod redis_log;
mod redis_url;
mod settings;
mod status;
mod thread;
mod unread;

pub use access::{Access, Connection, Found};
pub use handle::{Appended, Fleet, FleetError, Orders};
pub use redis_url::RedisUrl;
pub use settings::Settings;
pub use status::{FleetStatus, NodeState, NodeStatus, Said, Seen};
pub use thread::FleetThread;

use eyewall_fleet::{Gap, Line, Notes, Place};

/// What a node purges, and where it keeps its place. Its calls may wait: only the fleet's blocking threads make them, one at a time.
pub trait Volume: Send + Sync + 'static {
    /// The place that was saved last.
    fn saved(&self) -> Option<Place>;

    /// Saves the place: all lines up to it are applied.
    fn save(&self, place: &Place);

    /// Makes everything stale that is stored, or on its way into the volume. `None`: the node is blind. False: that has failed.
    fn soften(&self, gap: Option<Gap>) -> bool;

    /// Notes what a line covers ([`Notes::add`]), before it is applied. By default, nothing is known of the lines up to this one.
    fn note(&self, _line: &Line, notes: &mut Notes) {
        notes.gap();
    }

    /// Notes a line that was applied before the notes began ([`Notes::add_earlier`]), the latest first. False: no earlier line is of use.
    fn note_earlier(&self, _line: &Line, _notes: &mut Notes) -> bool {
        false
    }

    /// Applies the purge of a line. False: that has failed, which counts as a gap.
    fn apply(&self, line: &Line) -> bool;
}
