//! The engine under test.

use std::ops::Range;
use std::path::Path;

use eyewall::{Cache, Options, PutOptions};

use super::{Handle, Place, Store};
use crate::contender::allow_misses;
use crate::error::Result;
use crate::load;
use crate::random::{self, KEY_BYTES};

/// An Eyewall volume.
#[derive(Clone)]
pub struct Volume {
    cache: Cache,
}

impl Volume {
    /// The name in records.
    pub const NAME: &'static str = "eyewall";

    /// The volume's file in a store's directory.
    pub const FILE: &'static str = "volume";

    /// Creates a volume of `cap_bytes`, its index sized for the typical value.
    pub fn create(place: &Place<'_>) -> Result<Self> {
        let cache = Options::new()
            .size(place.cap_bytes)
            .entry_size_hint((place.value_bytes + KEY_BYTES) as u32)
            .open(place.directory.join(Self::FILE))?;
        Ok(Self { cache })
    }

    /// Opens a volume that exists.
    pub fn open(path: &Path) -> Result<Self> {
        let cache = Options::new().create(false).open(path)?;
        Ok(Self { cache })
    }

    /// The engine's own handle.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Puts the objects of these indexes, all with the same options, and once more what was dropped though there is room.
    pub fn put_all(&self, objects: Range<u64>, value_bytes: usize, options: &PutOptions<'_>) -> Result<()> {
        self.put_each(objects, value_bytes, |key, value| {
            self.cache.put_with(key, value, options)?;
            Ok(())
        })
    }

    /// As [`Volume::put_all`], by `put`, which is given each object's key and value.
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

    /// How many objects of these indexes are not there.
    pub fn count_missing(&self, mut objects: Range<u64>) -> Result<u64> {
        objects.try_fold(0, |missing, index| Ok(missing + u64::from(!self.cache.contains(random::key(index))?)))
    }
}

impl From<Cache> for Volume {
    fn from(cache: Cache) -> Self {
        Self { cache }
    }
}

impl Store for Volume {
    type Handle<'a> = &'a Cache;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> &Cache {
        &self.cache
    }

    fn populate(&self) -> Result<()> {
        Ok(self.cache.populate()?)
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
        Cache::put(self, key, value)?;
        Ok(())
    }
}
