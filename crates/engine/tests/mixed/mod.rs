//! The parts of the mixed storm.
//!
//! | file | what it holds |
//! |---|---|
//! | `ground.rs` | the board: what all processes of a storm see, and what they count |
//! | `keys.rs` | the keys, and the ledger of what may be found under them |
//! | `worker.rs`, `fills.rs`, `streams.rs` | a process of the storm: what it does, and what it checks |
//! | `weather.rs` | the parent: kills, stops, purges, resizes |
//! | `aftermath.rs` | what must hold when all is over |

#![allow(unreachable_pub, reason = "the modules use each other")]

pub mod aftermath;
pub mod fills;
pub mod ground;
pub mod keys;
pub mod streams;
pub mod weather;
pub mod worker;

use std::path::Path;

use eyewall::Options;

pub const WORKERS: u64 = 6;

/// A volume in a storm.
pub struct Site {
    pub name: &'static str,
    /// It begins with the first of these sizes, and is resized to any of them.
    pub sizes: [u64; 3],
    pub on_disk: bool,
    pub erases: bool,
    pub tier: Option<u64>,
    /// Keys with one writer each.
    pub own: u64,
}

const MIB: u64 = 1 << 20;

pub const SITES: [Site; 4] = [
    Site { name: "small", sizes: [MIB, 2 * MIB, 768 << 10], on_disk: false, erases: false, tier: None, own: 240 },
    Site { name: "disk", sizes: [12 * MIB, 16 * MIB, 8 * MIB], on_disk: true, erases: false, tier: None, own: 2400 },
    Site { name: "erasing", sizes: [2 * MIB, 3 * MIB, MIB], on_disk: false, erases: true, tier: None, own: 480 },
    Site {
        name: "tiered",
        sizes: [4 * MIB, 6 * MIB, 3 * MIB],
        on_disk: false,
        erases: false,
        tier: Some(MIB),
        own: 960,
    },
];

impl Site {
    /// How a process opens it: with `tier`, a folder, through the tier. Some processes do and some don't.
    pub fn options(&self, tier: Option<&Path>) -> Options {
        let options = Options::new();
        match (tier, self.tier) {
            (Some(folder), Some(bytes)) => options.tier(bytes).tier_folder(folder),
            _ => options,
        }
    }
}
