//! The open stores of a cell, and the room of each.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::named::Named;
use crate::contender::Contender;
use crate::error::Result;
use crate::load::Population;
use crate::peer::{Open, Peer};
use crate::scratch::{Scratch, Storage};
use crate::store::Place;
use crate::stores::Files;

/// A store in a scratch directory of its own. The directory is removed with the store; but if it is full of files on a
/// disk, at the end of the run.
pub struct Entrant {
    /// The store.
    pub store: Box<dyn Contender>,
    path: PathBuf,
    directory: Option<TempDir>,
}

impl Entrant {
    /// An empty store, in a new directory.
    pub fn open(peer: &Peer, room: Room, scratch: &Scratch, storage: Storage) -> Result<Self> {
        let (path, directory) = if peer.name == Files::NAME && storage == Storage::Disk {
            (scratch.make_until_end(storage)?, None)
        } else {
            let directory = scratch.make(storage)?;
            (directory.path().to_owned(), Some(directory))
        };
        let store = (peer.open)(&room.at(&path))?;
        Ok(Self { store, path, directory })
    }

    /// The directory of its files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the store, and keeps its files.
    pub fn close(self, attach: Open, room: Room) -> Closed {
        Closed { name: self.store.name(), attach, room, path: self.path, _directory: self.directory }
    }
}

/// A closed store that can be opened again.
#[derive(Debug)]
pub struct Closed {
    name: &'static str,
    attach: Open,
    room: Room,
    path: PathBuf,
    _directory: Option<TempDir>,
}

impl Closed {
    /// The directory of its files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens it again.
    pub fn open(&self) -> Result<Box<dyn Contender>> {
        (self.attach)(&self.room.at(&self.path))
    }
}

impl Named for Closed {
    fn name(&self) -> &str {
        self.name
    }
}

/// The room of a store.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    /// The cap in bytes.
    pub cap_bytes: u64,
    /// Bytes of a typical value.
    pub value_bytes: usize,
    /// Bytes of the largest value, if it is more than twice a typical one and the store has to accept it; else 0.
    pub value_bytes_max: usize,
    /// Bytes of memory in front of its files, for stores that have such.
    pub tier_bytes: u64,
}

impl Room {
    /// The place that a store with this room gets in a directory.
    pub fn at(self, directory: &Path) -> Place<'_> {
        let Self { cap_bytes, value_bytes, value_bytes_max, tier_bytes } = self;
        Place { directory, cap_bytes, value_bytes, value_bytes_max, tier_bytes }
    }

    /// Room for a whole population.
    pub fn for_all(peer: &Peer, population: Population) -> Self {
        let is_files = peer.name == Files::NAME;
        let cap_bytes = if is_files { population.cap_in_blocks() } else { population.cap_bytes() };
        Self { cap_bytes, value_bytes: population.value_bytes, value_bytes_max: 0, tier_bytes: 0 }
    }
}

impl std::fmt::Debug for Entrant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Entrant").field("store", &self.store.name()).field("path", &self.path).finish_non_exhaustive()
    }
}
