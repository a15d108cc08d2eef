//! What differs between the servers.

use super::connection::Connection;
use crate::error::Result;
use crate::store::Place;

/// A server: how to start it, and its protocol.
pub(super) trait Protocol: Send + Sync + 'static {
    /// The name in records, and of the program.
    const NAME: &str;

    /// The Debian package with the program.
    const PACKAGE: &str;

    /// The program's arguments: it runs in the foreground, listens on [`super::process::SOCKET`], and keeps nothing in
    /// files.
    fn arguments(place: &Place<'_>) -> Vec<String>;

    /// The version in the output of `--version`.
    fn version(printed: &str) -> Option<&str>;

    /// Passes the value to `consumer`; false for a miss.
    fn get(connection: &mut Connection, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool>;

    fn put(connection: &mut Connection, key: &[u8], value: &[u8]) -> Result<()>;

    fn delete(connection: &mut Connection, key: &[u8]) -> Result<bool>;

    /// The memory that the server reports.
    fn memory_bytes(connection: &mut Connection) -> Result<u64>;
}

/// The cap in whole mebibytes, at least one: memcached's unit.
pub(super) fn mebibytes(bytes: u64) -> u64 {
    (bytes >> 20).max(1)
}
