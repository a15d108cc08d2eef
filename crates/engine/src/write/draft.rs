//! What is to be stored, checked against every limit before anything is locked.

use crate::error::{Error, Result};
use crate::format::hash::checksum;
use crate::format::origin::{ORIGIN_BYTES, Origin};
use crate::format::record::{Flags, HEADER_BYTES, Header, KEY_BYTES_MAX, Lengths, METADATA_BYTES_MAX, Record};
use crate::format::tags::{self, TAGS_MAX};
use crate::format::times::Times;
use crate::purge::{self, Subject, Verdict};
use crate::put::PutOptions;
use crate::volume::Volume;

/// An entry that is to be stored.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) metadata: &'a [u8],
    /// Behind the caller's metadata; of a copy, its origin, which stands behind the tags.
    pub(crate) tags: Vec<u8>,
    pub(crate) value: &'a [u8],
    pub(crate) lengths: Lengths,
    pub(crate) flags: Flags,
    pub(crate) created_ms: u64,
    pub(crate) times: Times,
    /// The purge epoch as the work on the entry began: what is purged from then on means it, too.
    pub(crate) epoch: u32,
    /// Whether the caller has said when that was.
    pub(crate) is_dated: bool,
    /// What an entry brings along from another volume: its serial, and its frequency.
    pub(crate) standing: Option<(u64, u64)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(volume: &Volume, key: &'a [u8], value: &'a [u8], options: &PutOptions<'a>) -> Result<Self> {
        // Before anything else: a purge that comes later than this wins.
        let epoch = options.begun.map_or(volume.purges().epoch() as u32, |begun| begun.of(volume));
        check_key(volume, key)?;
        let tags = write_tags(volume, options.tags)?;
        let metadata = options.metadata.len() + tags.len();
        if metadata > METADATA_BYTES_MAX {
            return Err(Error::MetadataTooLong { bytes: metadata, max: METADATA_BYTES_MAX });
        }
        let created_ms = volume.now_ms();
        volume.look_in_time(created_ms)?;
        let draft = Self {
            key,
            metadata: options.metadata,
            value,
            lengths: Lengths { key: key.len() as u64, metadata: metadata as u64, value: value.len() as u64 },
            flags: if tags.is_empty() { Flags::default() } else { Flags::TAGGED },
            tags,
            created_ms,
            times: Times::new(options.ttl, options.stale),
            epoch,
            is_dated: options.begun.is_some(),
            standing: None,
        };
        let (bytes, max) = (draft.lengths.record_bytes(), volume.layout.entry_bytes_max);
        if bytes > max {
            return Err(Error::EntryTooLarge { bytes, max });
        }
        Ok(draft)
    }

    /// A copy, in the tier `volume`, of another volume's entry: its header, key, metadata and value.
    pub(crate) fn copy_of(
        volume: &Volume,
        header: &Header,
        [key, metadata, value]: [&'a [u8]; 3],
        origin: &Origin,
    ) -> Self {
        Self {
            key,
            metadata,
            value,
            // Those of the bytes: the header's may have been lost since.
            lengths: Lengths {
                key: key.len() as u64,
                metadata: (metadata.len() + ORIGIN_BYTES) as u64,
                value: value.len() as u64,
            },
            // Not the lap, which is that of the other volume's ring.
            flags: header.flags.with_lap(0),
            tags: origin.bytes().to_vec(),
            created_ms: header.created_ms,
            times: header.times,
            // Nothing is purged in a tier: the other volume's purges are.
            epoch: volume.purges().epoch() as u32,
            is_dated: false,
            standing: Some((header.serial, 0)),
        }
    }

    /// As if the work on it had begun in an earlier epoch, unless the caller has named one, which is earlier still.
    pub(crate) fn begun_in(mut self, epoch: u32) -> Self {
        if !self.is_dated {
            self.epoch = epoch;
        }
        self
    }

    /// A draft that says why there is nothing.
    pub(crate) fn negative(mut self) -> Self {
        self.flags = self.flags.with(Flags::NEGATIVE);
        self
    }

    pub(crate) fn with_standing(mut self, serial: u64, frequency: u64) -> Self {
        self.standing = Some((serial, frequency));
        self
    }

    /// In place of an entry whose age it keeps.
    pub(crate) fn with_age(mut self, created_ms: u64, times: Times) -> Self {
        self.created_ms = created_ms;
        self.times = times;
        self
    }

    /// All of the header but MAC and generation.
    pub(crate) fn header(&self, serial: u64, checksum: u32) -> Header {
        Header {
            serial,
            flags: self.flags,
            lengths: self.lengths,
            mac: 0,
            checksum,
            created_ms: self.created_ms,
            times: self.times,
            generation: 0,
            epoch: self.epoch,
        }
    }

    /// Copies key, metadata and value behind the header; returns their checksum.
    pub(crate) fn fill(&self, volume: &Volume, record: Record<'_>) -> u32 {
        let mut at = record.body();
        for part in [self.key, self.metadata, &self.tags, self.value] {
            // SAFETY: the space is free, or this writer's own room: nobody else reads or writes it.
            unsafe { volume.region.store(at, part) };
            at += part.len();
        }
        // SAFETY: as above.
        checksum(unsafe { volume.region.bytes(record.body(), at - record.body()) })
    }

    /// Under the stripe's lock: what the purges mean for it that came since the work on it began.
    pub(crate) fn judge(&self, volume: &Volume) -> Verdict {
        // Of the metadata, only the tags' part is looked at.
        let subject = Subject { epoch: self.epoch, flags: self.flags, key: self.key, metadata: &self.tags };
        purge::judge_late(volume, &subject)
    }
}

fn write_tags(volume: &Volume, names: &[&str]) -> Result<Vec<u8>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if names.len() > TAGS_MAX {
        return Err(Error::TooManyTags { count: names.len(), max: TAGS_MAX });
    }
    for name in names {
        purge::check_tag(name)?;
    }
    let mut part = Vec::with_capacity(tags::bytes(names));
    tags::write(&volume.secret, names, &mut part);
    Ok(part)
}

/// Refuses keys that can't be any entry's.
pub(crate) fn check_key(volume: &Volume, key: &[u8]) -> Result<()> {
    let max = KEY_BYTES_MAX.min((volume.layout.entry_bytes_max - HEADER_BYTES) as usize);
    if key.is_empty() {
        return Err(Error::KeyEmpty);
    }
    if key.len() > max {
        return Err(Error::KeyTooLong { bytes: key.len(), max });
    }
    Ok(())
}
