//! redb: a B+tree in a file, in Rust.
//!
//! Each get is a read transaction, and reads the value in place in redb's page cache. Each put and each delete is a
//! write transaction that is never made durable (`Durability::None`, which syncs nothing, and frees the pages of
//! replaced values). The page cache is as large as the cap, since redb reads its file by system calls. It does not
//! evict.

use std::path::PathBuf;

use ::redb::{Database, Durability, ReadableDatabase as _, TableDefinition, WriteTransaction};
use eyewall_bench::error::{Error, Result};
use eyewall_bench::footprint;
use eyewall_bench::peer::{Kind, Peer};
use eyewall_bench::store::{Handle, Place, Store, check_size};

use crate::version;

const NAME: &str = "redb";

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

/// redb, never durable.
pub const REDB: Peer = Peer {
    name: NAME,
    kind: Kind::Other,
    look: || Ok(version::of_crate("redb")),
    open: |place| Ok(Box::new(Redb::create(place)?)),
    attach: None,
};

struct Redb {
    database: Database,
    cap_bytes: u64,
    directory: PathBuf,
}

fn failed(failure: impl Into<::redb::Error>) -> Error {
    Error::Store { store: NAME, what: failure.into().to_string() }
}

impl Redb {
    fn create(place: &Place<'_>) -> Result<Self> {
        let database = Database::builder()
            .set_cache_size(place.cap_bytes as usize)
            .create(place.directory.join("entries.redb"))
            .map_err(failed)?;
        let store = Self { database, cap_bytes: place.cap_bytes, directory: place.directory.to_owned() };
        // Makes the table, so that a read before the first put finds it.
        let transaction = store.begin()?;
        transaction.open_table(TABLE).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(store)
    }

    fn begin(&self) -> Result<WriteTransaction> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(Durability::None).map_err(failed)?;
        Ok(transaction)
    }
}

impl Store for Redb {
    type Handle<'a> = &'a Self;

    fn name(&self) -> &'static str {
        NAME
    }

    fn handle(&self) -> &Self {
        self
    }

    fn evicts(&self) -> bool {
        false
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(footprint::below(&self.directory)?.bytes))
    }
}

impl Handle for &Redb {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let transaction = self.database.begin_read().map_err(failed)?;
        let table = transaction.open_table(TABLE).map_err(failed)?;
        let Some(value) = table.get(key).map_err(failed)? else {
            return Ok(false);
        };
        consumer(value.value());
        Ok(true)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        check_size(NAME, value, self.cap_bytes)?;
        let transaction = self.begin()?;
        transaction.open_table(TABLE).map_err(failed)?.insert(key, value).map_err(failed)?;
        transaction.commit().map_err(failed)
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        let transaction = self.begin()?;
        let deleted = transaction.open_table(TABLE).map_err(failed)?.remove(key).map_err(failed)?.is_some();
        transaction.commit().map_err(failed)?;
        Ok(deleted)
    }
}
