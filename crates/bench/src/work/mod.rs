//! What `bench-engine` measures. Each part records its rows.

pub mod crashed;
pub mod fill;
pub mod open;
pub mod overhead;
pub mod processes;
pub mod purge;
pub mod put;
pub mod stream;
pub mod tagged;
pub mod verify;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::contender::Contender;
use crate::error::Result;
use crate::load::Population;
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Files, Peer, Place};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Keys asked for before the sequences of gets repeat, over all readers: more than the objects.
const KEYS_TOTAL: usize = 1 << 20;

/// Bytes of all values of gets: far more than any L2 cache.
const SET_BYTES: usize = 64 * MIB;

/// `100 B`, `10 KB`, `1 MB`: with 1024s, as sizes are named everywhere here.
fn size_name(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= MIB => format!("{} MB", bytes / MIB),
        bytes if bytes >= KIB => format!("{} KB", bytes / KIB),
        bytes => format!("{bytes} B"),
    }
}

/// The objects of `value_bytes` that make up `total_bytes` of values.
fn population(value_bytes: usize, total_bytes: usize) -> Population {
    Population { objects: (total_bytes / value_bytes) as u64, value_bytes }
}

/// A store in a scratch directory of its own, which goes with it or, full of files on a disk, at the end of the run.
struct Opened {
    store: Box<dyn Contender>,
    path: PathBuf,
    _directory: Option<TempDir>,
}

impl Opened {
    fn new(run: &Run, peer: &Peer, storage: Storage, cap_bytes: u64, value_bytes: usize) -> Result<Self> {
        let (path, directory) = if peer.name == Files::NAME && storage == Storage::Disk {
            (run.scratch_until_end(storage)?, None)
        } else {
            let directory = run.scratch(storage)?;
            (directory.path().to_owned(), Some(directory))
        };
        let store = (peer.open)(&Place::new(&path, cap_bytes, value_bytes))?;
        Ok(Self { store, path, _directory: directory })
    }

    /// Opened, filled and checked, which populates this process's map.
    fn filled(run: &Run, peer: &Peer, storage: Storage, cap_bytes: u64, population: Population) -> Result<Self> {
        let opened = Self::new(run, peer, storage, cap_bytes, population.value_bytes)?;
        opened.store.fill(population)?;
        opened.store.complete(population)?;
        opened.store.check(population)?;
        Ok(opened)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
