//! Large bodies are stored in fragments of a mebibyte: Eyewall uses stored fragments, and requests only missing ones.

use crate::common::client::Reply;
use crate::common::film::bytes;
use crate::common::server::Server;

mod changed;
mod evicted;
mod filled;
mod missed;
mod together;

/// Fails if a reply isn't this range of a version with this cache status.
#[track_caller]
fn is_part(reply: &Reply, version: u64, range: std::ops::Range<u64>, cache: &str) {
    assert_eq!(reply.status, 206, "{:?}", reply.fields);
    assert!(reply.field("content-range").starts_with(&format!("bytes {}-{}/", range.start, range.end - 1)));
    assert!(reply.body == bytes(version, range), "other bytes, {} of them", reply.body.len());
    assert!(reply.cache().starts_with(cache), "{}", reply.cache());
}

#[track_caller]
fn is_whole(reply: &Reply, version: u64, length: u64, cache: &str) {
    assert_eq!((reply.status, reply.field("content-length")), (200, length.to_string().as_str()), "{:?}", reply.fields);
    assert!(reply.body == bytes(version, 0..length), "other bytes, {} of them", reply.body.len());
    assert!(reply.cache().starts_with(cache), "{}", reply.cache());
}

fn ask_range(server: &Server, range: &str) -> Reply {
    server.ask("GET", "/film", &[&format!("Range: bytes={range}")])
}
