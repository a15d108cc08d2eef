//! memcached, through its meta commands, which its documentation recommends.

use super::connection::Connection;
use super::process::SOCKET;
use super::protocol::{Protocol, mebibytes};
use crate::error::{Error, Result};
use crate::store::Place;

/// The longest key in memcached's protocol.
const KEY_BYTES_MAX: usize = 250;

/// The largest item size that memcached can be set to.
const ITEM_MEBIBYTES_MAX: u64 = 1024;

pub(super) struct Memcached;

/// A key can't contain bytes that have a meaning in the protocol.
fn check_key(key: &[u8]) -> Result<()> {
    if key.is_empty() || key.len() > KEY_BYTES_MAX || key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        let what = format!("a key has 1 to {KEY_BYTES_MAX} bytes, none of them a blank or a control character");
        return Err(Error::Store { store: Memcached::NAME, what });
    }
    Ok(())
}

impl Protocol for Memcached {
    const NAME: &str = "memcached";

    const PACKAGE: &str = "memcached";

    /// A thread for each core, and items of up to half the cap, which is the largest possible setting.
    fn arguments(place: &Place<'_>) -> Vec<String> {
        let cap = mebibytes(place.cap_bytes);
        let item = (cap / 2).clamp(1, ITEM_MEBIBYTES_MAX);
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        // memcached needs the name of a user only if root runs it.
        let words = format!("-u root -s {SOCKET} -m {cap} -I {item}m -t {threads}");
        words.split(' ').map(str::to_owned).collect()
    }

    /// `memcached 1.6.18`
    fn version(printed: &str) -> Option<&str> {
        printed.split_whitespace().nth(1)
    }

    fn get(connection: &mut Connection, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        check_key(key)?;
        let line = connection.ask(&[b"mg ", key, b" v"])?;
        match connection.bytes(line.clone()) {
            b"EN" => Ok(false),
            [b'V', b'A', b' ', ..] => {
                let bytes = connection.number(line.start + 3..line.end)? as usize;
                let value = connection.body(&line, bytes)?;
                consumer(connection.bytes(value));
                Ok(true)
            }
            _ => Err(connection.unexpected(line)),
        }
    }

    fn put(connection: &mut Connection, key: &[u8], value: &[u8]) -> Result<()> {
        check_key(key)?;
        let line = connection.ask(&[b"ms ", key, format!(" {}\r\n", value.len()).as_bytes(), value])?;
        match connection.bytes(line.clone()) {
            b"HD" => Ok(()),
            // Other answers: it found no room for a value of this size, or for the rest of it, since it searches only
            // so far for items to evict.
            b"SERVER_ERROR object too large for cache"
            | b"SERVER_ERROR out of memory storing object"
            | b"SERVER_ERROR Out of memory during read" => {
                Err(Error::Refused { store: Self::NAME, value_bytes: value.len() })
            }
            _ => Err(connection.unexpected(line)),
        }
    }

    fn delete(connection: &mut Connection, key: &[u8]) -> Result<bool> {
        check_key(key)?;
        let line = connection.ask(&[b"md ", key])?;
        match connection.bytes(line.clone()) {
            b"HD" => Ok(true),
            b"NF" => Ok(false),
            _ => Err(connection.unexpected(line)),
        }
    }

    /// The memory that it has allocated for items, and its table of keys.
    fn memory_bytes(connection: &mut Connection) -> Result<u64> {
        Ok(statistic(connection, b"stats slabs", b"STAT total_malloced ")?
            + statistic(connection, b"stats", b"STAT hash_bytes ")?)
    }
}

/// The number after `name` in the answer to `request`.
fn statistic(connection: &mut Connection, request: &[u8], name: &[u8]) -> Result<u64> {
    let mut line = connection.ask(&[request])?;
    let mut found = None;
    while connection.bytes(line.clone()).starts_with(b"STAT ") {
        if connection.bytes(line.clone()).starts_with(name) {
            found = Some(connection.number(line.start + name.len()..line.end)?);
        }
        line = connection.line_after(&line)?;
    }
    found.ok_or_else(|| connection.unexpected(line))
}
