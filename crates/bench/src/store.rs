//! What a store must do to be measured, and those that cost nothing to build.

mod copy;
mod files;
mod touched;
mod volume;

pub use copy::BareCopy;
pub use files::Files;
pub use volume::Volume;

use std::path::Path;

use crate::contender::Contender;
use crate::error::Result;

/// A cache or store under measurement, shared by all threads of this process.
pub trait Store: Send + Sync {
    /// What one thread works with: buffers, connections, or nothing but a reference.
    type Handle<'a>: Handle
    where
        Self: 'a;

    /// The name in records.
    fn name(&self) -> &'static str;

    /// A handle for one thread.
    fn handle(&self) -> Self::Handle<'_>;

    /// Maps all of it into this process, where the store offers that.
    fn populate(&self) -> Result<()> {
        Ok(())
    }

    /// Makes room by itself. Others are given the same live set by overwriting entries they hold.
    fn evicts(&self) -> bool {
        true
    }
}

/// One thread's way to a store.
pub trait Handle {
    /// Shows the value's bytes to `consumer`, in place where the store can; false for a miss.
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool>;

    /// Stores a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// An empty directory of its own; stores in main memory ignore it.
    pub directory: &'a Path,
    /// Bytes that it may hold.
    pub cap_bytes: u64,
    /// Bytes of a typical value.
    pub value_bytes: usize,
}

/// A kind of store that a workload can open.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The name in records.
    pub name: &'static str,
    /// Opens an empty store.
    pub open: fn(&Place<'_>) -> Result<Box<dyn Contender>>,
}

/// The engine under test.
pub const EYEWALL: Peer = Peer { name: Volume::NAME, open: |place| Ok(Box::new(Volume::create(place)?)) };

/// One file for each entry.
pub const FILES: Peer =
    Peer { name: Files::NAME, open: |place| Ok(Box::new(Files::create(place.directory, place.cap_bytes)?)) };

/// A copy of each value, and nothing else.
pub const BARE_COPY: Peer = Peer { name: BareCopy::NAME, open: |place| Ok(Box::new(BareCopy::new(place))) };
