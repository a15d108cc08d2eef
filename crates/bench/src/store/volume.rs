//! The engine under test.

use std::path::Path;

use eyewall::{Cache, Options};

use super::{Handle, Place, Store};
use crate::error::Result;
use crate::random::KEY_BYTES;

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
