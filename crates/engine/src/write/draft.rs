//! Drafts: entries to be stored, checked against every limit before anything is locked.

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
    /// Stored after the caller's metadata. In a copy, its origin follows the tags.
    pub(crate) tags: Vec<u8>,
    pub(crate) value: &'a [u8],
    pub(crate) lengths: Lengths,
    pub(crate) flags: Flags,
    pub(crate) created_ms: u64,
    pub(crate) times: Times,
    /// The purge epoch in which the work on the entry began. Later purges cover the entry.
    pub(crate) epoch: u32,
    /// Whether the caller has named that epoch.
    pub(crate) is_dated: bool,
    /// The serial and frequency that an entry brings from another volume.
    pub(crate) standing: Option<(u64, u64)>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(volume: &Volume, key: &'a [u8], value: &'a [u8], options: &PutOptions<'a>) -> Result<Self> {
        // First of all: a purge that comes later wins.
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

    /// A draft of a copy, in the tier `volume`, of another volume's entry, given as header, key, metadata and value.
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
            // Taken from the bytes, since the header may have been lost meanwhile.
            lengths: Lengths {
                key: key.len() as u64,
                metadata: (metadata.len() + ORIGIN_BYTES) as u64,
                value: value.len() as u64,
            },
            // Without the lap, which belongs to the other volume's ring.
            flags: header.flags.with_lap(0),
            tags: origin.bytes().to_vec(),
            created_ms: header.created_ms,
            times: header.times,
            // Nothing is purged in a tier; the purges of the other volume apply.
            epoch: volume.purges().epoch() as u32,
            is_dated: false,
            standing: Some((header.serial, 0)),
        }
    }

    /// Says that the work began in an earlier epoch. If the caller has named an epoch, that one is earlier still, and
    /// stays.
    pub(crate) fn begun_in(mut self, epoch: u32) -> Self {
        if !self.is_dated {
            self.epoch = epoch;
        }
        self
    }

    /// Turns the draft into a negative entry.
    pub(crate) fn negative(mut self) -> Self {
        self.flags = self.flags.with(Flags::NEGATIVE);
        self
    }

    pub(crate) fn with_standing(mut self, serial: u64, frequency: u64) -> Self {
        self.standing = Some((serial, frequency));
        self
    }

    /// Replaces an entry and keeps its age.
    pub(crate) fn with_age(mut self, created_ms: u64, times: Times) -> Self {
        self.created_ms = created_ms;
        self.times = times;
        self
    }

    /// The header, except MAC and generation.
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

    /// Copies key, metadata and value behind the header, and returns their checksum.
    pub(crate) fn fill(&self, volume: &Volume, record: Record<'_>) -> u32 {
        let described = self.metadata.len() + self.tags.len();
        let copy = |body: &mut [u8]| {
            let (key, rest) = body.split_at_mut(self.key.len());
            key.copy_from_slice(self.key);
            let (metadata, value) = rest.split_at_mut(described);
            if !metadata.is_empty() {
                let (own, tags) = metadata.split_at_mut(self.metadata.len());
                own.copy_from_slice(self.metadata);
                tags.copy_from_slice(&self.tags);
            }
            value.copy_from_slice(self.value);
            checksum(body)
        };
        let bytes = self.key.len() + described + self.value.len();
        // SAFETY: the space is free, or is this writer's own room, so nobody else reads or writes it.
        unsafe { volume.region.fill(record.body(), bytes, copy) }
    }

    /// Called under the stripe's lock: what do the purges since the work began mean for this entry?
    pub(crate) fn judge(&self, volume: &Volume) -> Verdict {
        // Of the metadata, a purge reads only the part for tags.
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

/// Refuses keys that no entry can have.
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
