//! The engine with tags and a time to live on each entry. They cost space.

use std::time::Duration;

use eyewall::{Cache, PutOptions};

use super::volume::Volume;
use super::volume::stored;
use crate::error::Result;
use crate::store::{Handle, Place, Store};

/// Bytes of the tags of an entry: nine for each of the four tags, three for their end, and the tags themselves.
const TAGS_BYTES: usize = 65;

/// Longer than any run: nothing expires.
const TTL: Duration = Duration::from_hours(365 * 24);

/// A volume whose entries each carry a time to live and four tags, from a tag that all entries have to a tag of the
/// entry's own.
#[derive(Clone)]
pub struct Tagged(Volume);

impl Tagged {
    /// The name in records.
    pub const NAME: &'static str = "eyewall, tags";

    /// Creates a volume of the cap, its index sized for the typical value with its tags.
    pub fn create(place: &Place<'_>) -> Result<Self> {
        Volume::create(&Place { value_bytes: place.value_bytes + TAGS_BYTES, ..*place }).map(Self)
    }

    /// Opens the volume that already exists in a place.
    pub fn attach(place: &Place<'_>) -> Result<Self> {
        Volume::attach(place).map(Self)
    }
}

impl Store for Tagged {
    type Handle<'a> = TaggedHandle<'a>;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> TaggedHandle<'_> {
        TaggedHandle(self.0.cache())
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

/// A volume, for puts with tags.
pub struct TaggedHandle<'a>(&'a Cache);

impl Handle for TaggedHandle<'_> {
    #[inline]
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        Handle::get(&mut self.0, key, consumer)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let own = key.escape_ascii().to_string();
        let end = |letters: usize| &own[own.len().saturating_sub(letters)..];
        let names = ["all".to_owned(), format!("s{}", end(1)), format!("p{}", end(3)), format!("o{own}")];
        let tags = names.each_ref().map(String::as_str);
        stored(self.0.put_with(key, value, &PutOptions::new().ttl(TTL).tags(&tags)), value)
    }

    #[inline]
    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        Handle::delete(&mut self.0, key)
    }
}

#[cfg(test)]
mod tests {
    use eyewall::Options;

    use super::*;
    use crate::random;

    #[test]
    fn the_tags_of_an_entry_take_as_much_as_is_said() {
        let entry_bytes = |put: &dyn Fn(&Cache, &[u8])| {
            let cache = Options::new().size(8 << 20).heap().unwrap();
            (0..1_000).for_each(|index| put(&cache, &random::key(index)));
            let stats = cache.stats().unwrap();
            stats.live_bytes / stats.entries
        };
        let plain = entry_bytes(&|cache, key| {
            cache.put(key, [0; 100]).unwrap();
        });
        let tagged = entry_bytes(&|cache, key| TaggedHandle(cache).put(key, &[0; 100]).unwrap());
        // Lengths are rounded up to eight bytes.
        assert!((tagged - plain).abs_diff(TAGS_BYTES as u64) <= 8, "{plain} {tagged}");
    }
}
