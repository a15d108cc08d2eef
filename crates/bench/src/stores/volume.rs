//! The engine under test.

use std::ops::Range;
use std::path::Path;

use eyewall::{Cache, Options, PutOptions};

use crate::error::{Error, Result};
use crate::footprint;
use crate::load::{self, allow_misses};
use crate::random::{self, KEY_BYTES};
use crate::store::{Handle, Place, Store};

/// The largest entry that a volume accepts by default: this part of its size, and at most this many bytes.
const ENTRY_PART_DEFAULT: u64 = 16;
const ENTRY_BYTES_DEFAULT: u64 = 4 << 20;

/// Room for an entry's header and key; they take less.
const ENTRY_HEAD_BYTES_MAX: u64 = 4096;

/// The largest part of a volume's size that can be set as the limit of an entry.
const ENTRY_PART_MOST: u64 = 4;

/// An Eyewall volume.
#[derive(Clone)]
pub struct Volume {
    cache: Cache,
    name: &'static str,
}

impl Volume {
    /// The name in records.
    pub const NAME: &'static str = "eyewall";

    /// The name in records, with a tier.
    pub const NAME_TIER: &'static str = "eyewall, tier";

    /// The volume's file in a store's directory.
    pub const FILE: &'static str = "volume";

    /// Creates a volume of `cap_bytes`, with the size of the typical value as a hint, if it is known.
    pub fn create(place: &Place<'_>) -> Result<Self> {
        Ok(Self::from(options(place).open(place.directory.join(Self::FILE))?))
    }

    /// As [`Volume::create`], with a tier of `tier_bytes` in the engine's default folder.
    ///
    /// # Errors
    /// Those of [`Options::open`]; also if the size of the tier isn't given.
    pub fn create_with_tier(place: &Place<'_>) -> Result<Self> {
        if place.tier_bytes == 0 {
            let what = "the workload doesn't say how large the tier is to be".to_owned();
            return Err(Error::Store { store: Self::NAME_TIER, what });
        }
        let cache = options(place).tier(place.tier_bytes).open(place.directory.join(Self::FILE))?;
        Ok(Self { cache, name: Self::NAME_TIER })
    }

    /// Opens a volume that exists.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self::from(Options::new().create(false).open(path)?))
    }

    /// Opens the volume that already exists in a place.
    pub fn attach(place: &Place<'_>) -> Result<Self> {
        Self::open(&place.directory.join(Self::FILE))
    }

    /// The engine's own handle.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Puts the objects of these indexes, all with the same options. Then puts the objects again that the volume
    /// dropped although it has room.
    pub fn put_all(&self, objects: Range<u64>, value_bytes: usize, options: &PutOptions<'_>) -> Result<()> {
        self.put_each(objects, value_bytes, |key, value| {
            self.cache.put_with(key, value, options)?;
            Ok(())
        })
    }

    /// As [`Volume::put_all`], but calls `put` with each object's key and value.
    pub fn put_each(
        &self,
        objects: Range<u64>,
        value_bytes: usize,
        mut put: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut value = random::filler(3, value_bytes);
        let mut put = |index: u64| {
            load::stamp(&mut value, index);
            put(&random::key(index), &value)
        };
        for index in objects.clone() {
            put(index)?;
        }
        for index in objects.clone() {
            if !self.cache.contains(random::key(index))? {
                put(index)?;
            }
        }
        let missing = self.count_missing(objects.clone())?;
        allow_misses(Self::NAME, missing, objects.end - objects.start)
    }

    /// How many objects of these indexes are missing.
    pub fn count_missing(&self, mut objects: Range<u64>) -> Result<u64> {
        objects.try_fold(0, |missing, index| Ok(missing + u64::from(!self.cache.contains(random::key(index))?)))
    }
}

fn options(place: &Place<'_>) -> Options {
    if place.value_bytes == 0 {
        return Options::new().size(place.cap_bytes);
    }
    let entry_bytes = (place.value_bytes + KEY_BYTES) as u64;
    let options = Options::new().size(place.cap_bytes).entry_size_hint(entry_bytes as u32);
    let by_default = (place.cap_bytes / ENTRY_PART_DEFAULT).min(ENTRY_BYTES_DEFAULT);
    let wanted = (entry_bytes * 2).max(place.value_bytes_max as u64 + ENTRY_HEAD_BYTES_MAX);
    if wanted <= by_default {
        return options;
    }
    options.entry_bytes_max(wanted.min(place.cap_bytes / ENTRY_PART_MOST))
}

impl From<Cache> for Volume {
    fn from(cache: Cache) -> Self {
        Self { cache, name: Self::NAME }
    }
}

impl Store for Volume {
    type Handle<'a> = &'a Cache;

    fn name(&self) -> &'static str {
        self.name
    }

    fn handle(&self) -> &Cache {
        &self.cache
    }

    fn populate(&self) -> Result<()> {
        Ok(self.cache.populate()?)
    }

    /// The volume's file, and that of its tier.
    fn footprint_bytes(&self) -> Result<Option<u64>> {
        let files = [self.cache.path(), self.cache.tier_path()].into_iter().flatten();
        let blocks: Result<u64> = files.map(footprint::blocks_of).sum();
        blocks.map(Some)
    }

    fn live_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.cache.stats()?.live_bytes))
    }
}

/// The result of a put, as the result of a store.
#[inline]
pub(super) fn stored(put: eyewall::Result<u64>, value: &[u8]) -> Result<()> {
    match put {
        Ok(_) => Ok(()),
        // Readers hold the bytes that would have to be evicted.
        Err(eyewall::Error::EntryTooLarge { .. } | eyewall::Error::Pinned { .. }) => {
            Err(Error::Refused { store: Volume::NAME, value_bytes: value.len() })
        }
        Err(other) => Err(Error::Engine(other)),
    }
}

impl Handle for &Cache {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let Some(hit) = Cache::get(self, key)? else {
            return Ok(false);
        };
        consumer(&hit);
        Ok(true)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        stored(Cache::put(self, key, value), value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Ok(Cache::remove(self, key)?)
    }
}

/// A volume whose gets copy, like those of other stores: [`Cache::get_into`], into a buffer that each thread keeps.
#[derive(Clone)]
pub struct Copied(Volume);

impl Copied {
    /// The name in records.
    pub const NAME: &'static str = "eyewall, copied";

    /// The name in records, with a tier.
    pub const NAME_TIER: &'static str = "eyewall, tier, copied";
}

impl From<Volume> for Copied {
    fn from(volume: Volume) -> Self {
        Self(volume)
    }
}

impl Store for Copied {
    type Handle<'a> = CopiedHandle<'a>;

    fn name(&self) -> &'static str {
        if self.0.name == Volume::NAME_TIER { Self::NAME_TIER } else { Self::NAME }
    }

    fn handle(&self) -> CopiedHandle<'_> {
        CopiedHandle { cache: &self.0.cache, buffer: Vec::new() }
    }

    fn populate(&self) -> Result<()> {
        self.0.populate()
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        self.0.footprint_bytes()
    }

    fn live_bytes(&self) -> Result<Option<u64>> {
        self.0.live_bytes()
    }
}

/// One thread's buffer.
pub struct CopiedHandle<'a> {
    cache: &'a Cache,
    buffer: Vec<u8>,
}

impl Handle for CopiedHandle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        let found = self.cache.get_into(key, &mut self.buffer)?.is_some();
        if found {
            consumer(&self.buffer);
        }
        Ok(found)
    }

    #[inline]
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        Handle::put(&mut self.cache, key, value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Handle::delete(&mut self.cache, key)
    }
}

#[cfg(test)]
mod tests {
    use super::Volume;
    use crate::contender::Contender as _;
    use crate::error::{Error, Result};
    use crate::store::Place;

    #[test]
    fn what_finds_no_room_because_readers_hold_it_is_refused() -> Result<()> {
        const VALUE_BYTES: usize = 900_000;
        let directory = tempfile::tempdir().expect("a directory");
        let place = Place { value_bytes_max: VALUE_BYTES, ..Place::new(directory.path(), 4 << 20, VALUE_BYTES) };
        let volume = Volume::create(&place)?;
        let mut held = Vec::new();
        let refused = (0..8_u8).find_map(|number| {
            let put = volume.put_one(&[number], &vec![number; VALUE_BYTES]).err();
            held.extend(volume.cache().get([number]).ok().flatten());
            put
        });
        assert!(matches!(refused, Some(Error::Refused { .. })), "{refused:?}");
        Ok(())
    }
}
