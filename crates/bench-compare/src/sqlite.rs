//! SQLite, built in by rusqlite: a table of keys and values.
//!
//! - `journal_mode=WAL`, `synchronous=OFF`: SQLite never syncs. It reads the file through a map of twice the cap.
//! - Each reader has a connection. The writers share one behind a lock, since connections that wait for each other
//!   inside SQLite sleep. Each connection prepares each statement once. Each get, put and delete is a transaction of
//!   its own.
//! - If an entry is smaller than a twentieth of a page, the table is `WITHOUT ROWID` and pages have 4 KiB. Otherwise
//!   the table has row numbers and an index, and pages have 16 KiB. The documentation recommends this ("Clustered
//!   Indexes and the WITHOUT ROWID Optimization"; "Internal Versus External BLOBs").
//!
//! It does not evict.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use eyewall_bench::error::{Error, Result};
use eyewall_bench::footprint;
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::random::KEY_BYTES;
use eyewall_bench::store::{Handle, Place, Store, check_size};
use rusqlite::Connection;

const NAME: &str = "SQLite";

/// The size of pages for small entries, and for others.
const PAGE_BYTES: usize = 4 << 10;
const PAGE_BYTES_LARGE: usize = 16 << 10;

/// An entry of at most this part of a page is small.
const PAGE_PART: usize = 20;

const GET: &str = "SELECT value FROM entries WHERE key = ?1";
const PUT: &str =
    "INSERT INTO entries (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const DELETE: &str = "DELETE FROM entries WHERE key = ?1";

/// SQLite, its log never synced.
pub const SQLITE: Peer = Peer {
    name: NAME,
    kind: Kind::Other,
    look: || Ok(Some(rusqlite::version().to_owned())),
    open: |place| Ok(Box::new(Sqlite::create(place)?)),
    attach: None,
};

struct Sqlite {
    writer: Mutex<Connection>,
    path: PathBuf,
    cap_bytes: u64,
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(failure: rusqlite::Error) -> Error {
    Error::Store { store: NAME, what: failure.to_string() }
}

/// A connection to the file. The first connection creates the file.
fn connect(path: &Path, cap_bytes: u64, page_bytes: usize) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    // An existing file keeps its page size and journal mode.
    connection.pragma_update(None, "page_size", page_bytes as i64)?;
    connection.pragma_update_and_check(None, "mmap_size", cap_bytes as i64 * 2, |_| Ok(()))?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    Ok(connection)
}

impl Sqlite {
    fn create(place: &Place<'_>) -> Result<Self> {
        let is_small = place.value_bytes + KEY_BYTES <= PAGE_BYTES / PAGE_PART;
        let page_bytes = if is_small { PAGE_BYTES } else { PAGE_BYTES_LARGE };
        let table = "CREATE TABLE entries (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL)";
        let path = place.directory.join("entries.sqlite");
        let writer = connect(&path, place.cap_bytes, page_bytes).map_err(failed)?;
        let table = format!("{table}{}", if is_small { " WITHOUT ROWID" } else { "" });
        writer.execute(&table, ()).map_err(failed)?;
        Ok(Self { writer: Mutex::new(writer), path, cap_bytes: place.cap_bytes })
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Sqlite {
    type Handle<'a> = SqliteHandle<'a>;

    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&self) -> SqliteHandle<'_> {
        let reader = connect(&self.path, self.cap_bytes, PAGE_BYTES).map_err(|failure| failure.to_string());
        SqliteHandle { store: self, reader }
    }

    fn evicts(&self) -> bool {
        false
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        let directory = self.path.parent().unwrap_or(&self.path);
        Ok(Some(footprint::below(directory)?.bytes))
    }
}

/// One thread's connection for reading, or the error of connecting, which the first operation returns.
struct SqliteHandle<'a> {
    store: &'a Sqlite,
    reader: std::result::Result<Connection, String>,
}

impl Handle for SqliteHandle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let reader = self.reader.as_ref().map_err(|what| Error::Store { store: NAME, what: what.clone() })?;
        let mut statement = reader.prepare_cached(GET).map_err(failed)?;
        let mut rows = statement.query([key]).map_err(failed)?;
        let Some(row) = rows.next().map_err(failed)? else {
            return Ok(false);
        };
        let value = row.get_ref(0).map_err(failed)?;
        consumer(value.as_blob().map_err(|failure| failed(failure.into()))?);
        Ok(true)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(NAME, value, self.store.cap_bytes)?;
        let writer = self.store.writer();
        let mut statement = writer.prepare_cached(PUT).map_err(failed)?;
        statement.execute([key, value]).map_err(failed)?;
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let writer = self.store.writer();
        let mut statement = writer.prepare_cached(DELETE).map_err(failed)?;
        Ok(statement.execute([key]).map_err(failed)? > 0)
    }
}
