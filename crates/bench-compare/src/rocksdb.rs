//! RocksDB, with its default compaction and as a cache.
//!
//! - Both use `optimize_for_point_lookup` with a block cache as large as the cap, and no compression, since values
//!   don't compress. Writes are not logged, so nothing is synced. A get passes the value in place, in the block cache
//!   or in the memtable.
//! - By default RocksDB merges levels in the background, and evicts nothing.
//! - With FIFO compaction, which is meant for caches, it merges nothing. A file has a sixteenth of the cap. When all
//!   files together exceed the cap, it deletes the oldest. A get checks the filter of each file.
//!
//! RocksDB keeps the cap on files when it writes one. The memtables are not included.

use std::fs::File;
use std::io::{BufRead as _, BufReader};

use ::rocksdb::{DB, DBCompactionStyle, DBCompressionType, FifoCompactOptions, Options, WriteOptions};
use eyewall_bench::contender::Contender;
use eyewall_bench::error::{Error, Result};
use eyewall_bench::footprint;
use eyewall_bench::peer::{Absent, Found, Kind, Peer};
use eyewall_bench::store::{Handle, Place, Store, check_size};

const NAME: &str = "RocksDB";
const NAME_FIFO: &str = "RocksDB, FIFO";

/// Number of files of the FIFO at its cap.
const FILES: u64 = 16;

/// The default size of the memtable. A small cap makes it smaller.
const TABLE_BYTES_MAX: u64 = 64 << 20;
const TABLE_BYTES_MIN: u64 = 1 << 20;

/// How its log begins.
const VERSION: &str = "RocksDB version: ";

/// RocksDB, merging levels.
pub const ROCKSDB: Peer =
    Peer { name: NAME, kind: Kind::Other, look, open: |place| open(NAME, place, &mut levels()), attach: None };

/// RocksDB, dropping the oldest files.
pub const ROCKSDB_FIFO: Peer = Peer {
    name: NAME_FIFO,
    kind: Kind::Other,
    look,
    open: |place| open(NAME_FIFO, place, &mut fifo(place)),
    attach: None,
};

struct Rocks {
    name: &'static str,
    database: DB,
    cap_bytes: u64,
}

/// The linked library reports its version only in the log of a database.
fn look() -> Found {
    let version = || -> Option<String> {
        let directory = tempfile::tempdir().ok()?;
        let mut options = Options::default();
        options.create_if_missing(true);
        drop(DB::open(&options, directory.path()).ok()?);
        let log = BufReader::new(File::open(directory.path().join("LOG")).ok()?);
        log.lines().map_while(std::io::Result::ok).find_map(|line| Some(line.split_once(VERSION)?.1.to_owned()))
    };
    version().map(Some).ok_or_else(|| Absent("RocksDB can't open a database in the temporary directory".to_owned()))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(failure: ::rocksdb::Error) -> Error {
    Error::Store { store: NAME, what: failure.to_string() }
}

fn levels() -> Options {
    Options::default()
}

fn fifo(place: &Place<'_>) -> Options {
    let mut fifo = FifoCompactOptions::default();
    fifo.set_max_table_files_size(place.cap_bytes);
    let mut options = Options::default();
    options.set_compaction_style(DBCompactionStyle::Fifo);
    options.set_fifo_compaction_options(&fifo);
    options.set_write_buffer_size((place.cap_bytes / FILES).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX) as usize);
    options
}

fn open(name: &'static str, place: &Place<'_>, options: &mut Options) -> Result<Box<dyn Contender>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    options.create_if_missing(true);
    options.increase_parallelism(cores as i32);
    options.optimize_for_point_lookup((place.cap_bytes >> 20).max(1));
    options.set_compression_type(DBCompressionType::None);
    let database = DB::open(options, place.directory).map_err(failed)?;
    Ok(Box::new(Rocks { name, database, cap_bytes: place.cap_bytes }))
}

impl Store for Rocks {
    type Handle<'a> = RocksHandle<'a>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn handle(&self) -> RocksHandle<'_> {
        let mut writes = WriteOptions::default();
        writes.disable_wal(true);
        RocksHandle { store: self, writes }
    }

    fn evicts(&self) -> bool {
        self.name == NAME_FIFO
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(footprint::below(self.database.path())?.bytes))
    }
}

/// One thread's options.
struct RocksHandle<'a> {
    store: &'a Rocks,
    writes: WriteOptions,
}

impl Handle for RocksHandle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let Some(value) = self.store.database.get_pinned(key).map_err(failed)? else {
            return Ok(false);
        };
        consumer(&value);
        Ok(true)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(self.store.name, value, self.store.cap_bytes)?;
        self.store.database.put_opt(key, value, &self.writes).map_err(failed)
    }

    /// Writes a mark that the key is gone. Doesn't look up whether there was an entry.
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.store.database.delete_opt(key, &self.writes).map_err(failed)?;
        Ok(true)
    }
}
