//! The particulars of each server.

use super::connection::Connection;
use crate::error::Result;
use crate::store::Place;

/// A server: how it is started, and its language.
pub(super) trait Protocol: Send + Sync + 'static {
    /// The name in records, and of the program.
    const NAME: &str;

    /// The Debian package with the program.
    const PACKAGE: &str;

    /// The program's arguments: in the foreground, on [`super::process::SOCKET`], nothing kept in files.
    fn arguments(place: &Place<'_>) -> Vec<String>;

    /// The version out of what `--version` prints.
    fn version(printed: &str) -> Option<&str>;

    /// Shows the value to `consumer`; false for a miss.
    fn get(connection: &mut Connection, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool>;

    fn put(connection: &mut Connection, key: &[u8], value: &[u8]) -> Result<()>;

    fn delete(connection: &mut Connection, key: &[u8]) -> Result<bool>;

    /// What the server says of its memory.
    fn memory_bytes(connection: &mut Connection) -> Result<u64>;
}

/// Whole mebibytes of a cap, one at least: memcached's unit.
pub(super) fn mebibytes(bytes: u64) -> u64 {
    (bytes >> 20).max(1)
}
