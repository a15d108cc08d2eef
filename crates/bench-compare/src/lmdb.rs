//! LMDB through heed, as little durable as the engine under test.
//!
//! Flags: `NO_SYNC | NO_META_SYNC`, with and without `WRITE_MAP`; heed opens with `NO_READ_AHEAD` unset and reader
//! slots bound to threads (no `NO_TLS`), which is LMDB's faster way to begin a read. Each get is a read transaction,
//! and reads the value in place. Each put and each delete is a write transaction. LMDB does not evict, so it gets a
//! live set that fits.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use eyewall_bench::contender::Contender;
use eyewall_bench::error::{Error, Result};
use eyewall_bench::footprint;
use eyewall_bench::peer::{Attach, Kind, Open, Peer};
use eyewall_bench::store::{Handle, Place, Store, check_size};
use eyewall_bench::touch;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

const NAME: &str = "LMDB";
const NAME_WRITE_MAP: &str = "LMDB, write map";

/// The file of an environment.
const FILE: &str = "data.mdb";

/// Reader slots: more than the threads of any workload.
const READERS_MAX: u32 = 512;

/// Writes pages with `pwrite`.
pub const LMDB: Peer =
    peer(NAME, |place| create(NAME, place, EnvFlags::empty()), |place| attach(NAME, place, EnvFlags::empty()));

/// Writes pages through its map.
pub const LMDB_WRITE_MAP: Peer = peer(
    NAME_WRITE_MAP,
    |place| create(NAME_WRITE_MAP, place, EnvFlags::WRITE_MAP),
    |place| attach(NAME_WRITE_MAP, place, EnvFlags::WRITE_MAP),
);

const fn peer(name: &'static str, open: Open, attach: Open) -> Peer {
    Peer { name, kind: Kind::Other, look: || Ok(Some(version())), open, attach: Some(Attach::Lasting(attach)) }
}

fn version() -> String {
    let version = heed::lmdb_version();
    format!("{}.{}.{}", version.major, version.minor, version.patch)
}

struct Lmdb {
    name: &'static str,
    cap_bytes: u64,
    directory: PathBuf,
    environment: Env,
    database: Database<Bytes, Bytes>,
}

fn create(name: &'static str, place: &Place<'_>, flags: EnvFlags) -> Result<Box<dyn Contender>> {
    open(name, place, flags, |environment| {
        let mut transaction = environment.write_txn()?;
        let database = environment.create_database(&mut transaction, None)?;
        transaction.commit()?;
        Ok(Some(database))
    })
}

/// A process can have at most one environment at a place: opening it again is an error.
fn attach(name: &'static str, place: &Place<'_>, flags: EnvFlags) -> Result<Box<dyn Contender>> {
    if !place.directory.join(FILE).is_file() {
        return Err(missing(name, place.directory));
    }
    open(name, place, flags, |environment| {
        let transaction = environment.read_txn()?;
        let database = environment.open_database(&transaction, None)?;
        transaction.commit()?;
        Ok(database)
    })
}

fn open(
    name: &'static str,
    place: &Place<'_>,
    flags: EnvFlags,
    database: impl FnOnce(&Env) -> heed::Result<Option<Database<Bytes, Bytes>>>,
) -> Result<Box<dyn Contender>> {
    // The map is address space, not a cap. It has room for the live set, its B+tree and the pages that a commit
    // replaces.
    let map_bytes = (place.cap_bytes as usize * 4).next_multiple_of(1 << 20);
    let flags = EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC | flags;
    let environment = environment(place.directory, map_bytes, flags).map_err(failed)?;
    let database = database(&environment).map_err(failed)?.ok_or_else(|| missing(name, place.directory))?;
    let directory = place.directory.to_owned();
    Ok(Box::new(Lmdb { name, cap_bytes: place.cap_bytes, directory, environment, database }))
}

fn missing(store: &'static str, directory: &Path) -> Error {
    Error::Store { store, what: format!("there is no environment in {} to attach to", directory.display()) }
}

#[expect(unsafe_code, reason = "heed maps a file that others could change; this one is private to the run")]
fn environment(directory: &Path, map_bytes: usize, flags: EnvFlags) -> heed::Result<Env> {
    let mut options = EnvOpenOptions::new();
    options.map_size(map_bytes).max_readers(READERS_MAX);
    // SAFETY: the directory is a fresh temporary one that only this run's processes know, so every process that maps the file changes it
    // through LMDB alone, by the same flags and under the locks of LMDB's lock file, which none of them omit; heed refuses a
    // second environment of one process. Nobody truncates the file. What the flags give up is durability after a power loss,
    // which a scratch store does not need.
    unsafe {
        options.flags(flags);
        options.open(directory)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(failure: heed::Error) -> Error {
    Error::Store { store: NAME, what: failure.to_string() }
}

impl Store for Lmdb {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        self.name
    }

    fn handle(&self) -> &Self {
        self
    }

    /// Reads every value, since LMDB has no call for this sum.
    fn populate(&self) -> Result<()> {
        let transaction = self.environment.read_txn().map_err(failed)?;
        for entry in self.database.iter(&transaction).map_err(failed)? {
            let (_, value) = entry.map_err(failed)?;
            black_box(touch::page(value));
        }
        Ok(())
    }

    fn evicts(&self) -> bool {
        false
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(footprint::below(&self.directory)?.bytes))
    }
}

impl Handle for &Lmdb {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let transaction = self.environment.read_txn().map_err(failed)?;
        let Some(value) = self.database.get(&transaction, key).map_err(failed)? else {
            return Ok(false);
        };
        consumer(value);
        Ok(true)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(self.name, value, self.cap_bytes)?;
        let mut transaction = self.environment.write_txn().map_err(failed)?;
        self.database.put(&mut transaction, key, value).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let mut transaction = self.environment.write_txn().map_err(failed)?;
        let deleted = self.database.delete(&mut transaction, key).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(deleted)
    }
}
