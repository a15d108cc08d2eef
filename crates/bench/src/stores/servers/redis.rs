//! redis-server, by RESP 2.

use super::connection::Connection;
use super::process::SOCKET;
use super::protocol::Protocol;
use crate::error::{Error, Result};
use crate::store::Place;

pub(super) struct Redis;

/// The line before a word, with its length in bytes. The first line of a request has the number of its words.
fn announced(words: &str, bytes: usize) -> String {
    format!("{words}${bytes}\r\n")
}

impl Protocol for Redis {
    const NAME: &str = "redis-server";

    const PACKAGE: &str = "redis-server";

    /// Saves nothing. The eviction policy is the one that the documentation of Redis recommends for a cache.
    fn arguments(place: &Place<'_>) -> Vec<String> {
        let maxmemory = place.cap_bytes.to_string();
        let words = ["--port", "0", "--unixsocket", SOCKET, "--save", "", "--appendonly", "no"];
        let memory = ["--maxmemory", &maxmemory, "--maxmemory-policy", "allkeys-lru"];
        words.into_iter().chain(memory).map(str::to_owned).collect()
    }

    /// `Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=..`
    fn version(printed: &str) -> Option<&str> {
        printed.split_whitespace().find_map(|word| word.strip_prefix("v="))
    }

    fn get(connection: &mut Connection, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let head = announced("*2\r\n$3\r\nGET\r\n", key.len());
        let line = connection.ask(&[head.as_bytes(), key])?;
        match connection.bytes(line.clone()) {
            b"$-1" => Ok(false),
            [b'$', ..] => {
                let bytes = connection.number(line.start + 1..line.end)? as usize;
                let value = connection.body(&line, bytes)?;
                consumer(connection.bytes(value));
                Ok(true)
            }
            _ => Err(connection.unexpected(line)),
        }
    }

    fn put(connection: &mut Connection, key: &[u8], value: &[u8]) -> Result<()> {
        let head = announced("*3\r\n$3\r\nSET\r\n", key.len());
        let before_value = announced("\r\n", value.len());
        let line = connection.ask(&[head.as_bytes(), key, before_value.as_bytes(), value])?;
        match connection.bytes(line.clone()) {
            b"+OK" => Ok(()),
            // It can't evict enough, since connections also count against its memory.
            [b'-', b'O', b'O', b'M', ..] => Err(Error::Refused { store: Self::NAME, value_bytes: value.len() }),
            _ => Err(connection.unexpected(line)),
        }
    }

    fn delete(connection: &mut Connection, key: &[u8]) -> Result<bool> {
        let head = announced("*2\r\n$3\r\nDEL\r\n", key.len());
        let line = connection.ask(&[head.as_bytes(), key])?;
        match connection.bytes(line.clone()) {
            b":1" => Ok(true),
            b":0" => Ok(false),
            _ => Err(connection.unexpected(line)),
        }
    }

    /// All memory that it has allocated.
    fn memory_bytes(connection: &mut Connection) -> Result<u64> {
        let head = announced("*2\r\n$4\r\nINFO\r\n", "memory".len());
        let line = connection.ask(&[head.as_bytes(), b"memory"])?;
        if !connection.bytes(line.clone()).starts_with(b"$") {
            return Err(connection.unexpected(line));
        }
        let bytes = connection.number(line.start + 1..line.end)? as usize;
        let text = connection.body(&line, bytes)?;
        let name = b"used_memory:";
        let mut found = connection.line(text.start)?;
        while !connection.bytes(found.clone()).starts_with(name) {
            if found.end >= text.end {
                return Err(connection.unexpected(line));
            }
            found = connection.line_after(&found)?;
        }
        connection.number(found.start + name.len()..found.end)
    }
}
