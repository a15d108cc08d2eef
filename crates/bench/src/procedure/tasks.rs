//! The tasks for which a procedure starts this program again: measurements that need a process of their own.

use clap::Subcommand;

use super::{opening, oversized, single_flight, streaming_in};
use crate::error::Result;
use crate::peer::Peer;
use crate::readers;

/// The work of a child.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Gets from a store that other processes have open, too
    Gets(readers::Task),
    /// Opens a volume, gets and puts once
    Open(opening::Open),
    /// Puts values until it is killed
    Puts(opening::Puts),
    /// Requests cold keys together with other processes
    Fill(single_flight::Task),
    /// Stores large values
    Stream(streaming_in::Task),
    /// Does a mix with little memory
    Oversized(oversized::Task),
}

impl Task {
    /// Does the work; a task that names a store uses one of these.
    pub fn run(&self, peers: &[Peer]) -> Result<()> {
        match self {
            Self::Gets(task) => task.run(peers),
            Self::Open(task) => task.run(),
            Self::Puts(task) => task.run(),
            Self::Fill(task) => task.run(),
            Self::Stream(task) => task.run(),
            Self::Oversized(task) => task.run(),
        }
    }
}
