//! Export: writing a volume's entries as a stream.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use eyewall_region::clock;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::stream::{self, EntryHead, Whole};
use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::hit::Hit;

const BUFFER_BYTES: usize = 64 << 10;

/// What [`Cache::export`] wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Exported {
    /// Exported entries: fresh, stale and negative.
    pub entries: u64,
    /// Bytes of the whole stream.
    pub bytes: u64,
}

impl Cache {
    /// Writes all entries, fresh, stale and negative, as a stream that [`Cache::import`] reads on any machine.
    /// `docs/format.md` describes the stream. Doesn't count as use.
    ///
    /// Entries that are put or evicted meanwhile may or may not be included; damaged ones are not. The export holds
    /// one entry at a time, for as long as it takes to write it.
    ///
    /// # Errors
    /// [`Export`](Error::Export): the stream could not be written. It is incomplete, and an import notices that.
    pub fn export(&self, to: impl Write) -> Result<Exported> {
        let mut export = Export::begin(self, to)?;
        // A written entry gets a checksum of its own, which must not make damaged bytes valid.
        for hit in self.iter_all().filter(Hit::is_whole) {
            export.write(&hit)?;
        }
        // Lost bytes read as zeros. Without a trailer, nobody takes the stream for complete.
        self.volume().check_intact()?;
        export.end()
    }
}

struct Export<'a, W: Write> {
    cache: &'a Cache,
    to: BufWriter<W>,
    whole: Whole,
    bytes: u64,
    /// The volume's time at the start. The times of all entries are relative to it.
    begun_ms: u64,
}

impl<'a, W: Write> Export<'a, W> {
    fn begin(cache: &'a Cache, to: W) -> Result<Self> {
        let header = stream::header(clock::wall_ms());
        let whole = Whole::new(stream::word(&header, stream::HEADER_BYTES - stream::SUM_BYTES));
        let to = BufWriter::with_capacity(BUFFER_BYTES, to);
        let mut export = Self { cache, to, whole, bytes: 0, begun_ms: cache.volume().now_ms() };
        export.put(&header)?;
        Ok(export)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        self.to.write_all(bytes).map_err(failed)
    }

    fn write(&mut self, hit: &Hit<'_>) -> Result<()> {
        let mut tags = Vec::new();
        for tag in hit.tags() {
            tags.push(tag.len() as u8);
            tags.extend_from_slice(tag.as_bytes());
        }
        let since = self.cache.volume().now_ms().saturating_sub(self.begun_ms);
        let left = |left: Duration| (left.as_millis() as u64).saturating_add(since);
        // A stale entry has no fresh time left, whenever it became stale.
        let fresh_left = if hit.is_stale() { Some(0) } else { hit.ttl_left().map(left) };
        let head = EntryHead {
            flags: if hit.reason().is_some() { stream::NEGATIVE } else { 0 },
            key: hit.key().len() as u16,
            metadata: hit.metadata().len() as u16,
            tags: tags.len() as u16,
            value: hit.value().len() as u64,
            age: (hit.age().as_millis() as u64).saturating_sub(since),
            fresh_left,
            usable_left: hit.usable_left().map(left),
        };
        let mut sum = Xxh3::new();
        for part in [&head.bytes()[..], &tags, hit.key(), hit.metadata(), hit.value()] {
            sum.update(part);
            self.put(part)?;
        }
        let sum = sum.digest();
        self.put(&sum.to_le_bytes())?;
        self.whole.add(sum);
        Ok(())
    }

    fn end(mut self) -> Result<Exported> {
        self.put(&[stream::TRAILER])?;
        self.put(&self.whole.trailer_rest())?;
        self.to.flush().map_err(failed)?;
        Ok(Exported { entries: self.whole.entries, bytes: self.bytes })
    }
}

fn failed(source: io::Error) -> Error {
    Error::Export { source }
}
