//! What may go with each entry of a replay, beside key and value.

use std::time::Duration;

use clap::{Args, ValueEnum};
use eyewall::{Cache, PutOptions};

/// Bytes of the tags of an entry: four times nine, three for their end, and the tags' own, some 16.
const TAGS_BYTES: u64 = 55;

const TTL: Duration = Duration::from_hours(365 * 24);

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Extra {
    /// Four tags
    Tags,
    /// A time to live of a year
    Ttl,
    /// A tier of a quarter of the volume before it
    Tier,
}

/// As the command line says.
#[derive(Debug, Clone, Default, Args)]
pub struct With {
    /// What goes with each entry of the replay
    #[arg(long, value_enum, value_delimiter = ',')]
    with: Vec<Extra>,
}

impl With {
    /// As part of the record's name; `None`: nothing goes with the entries.
    pub fn name(&self) -> Option<String> {
        self.extras().name().map(|name| format!("with-{}", name.replace(", ", "-")))
    }

    pub(super) fn extras(&self) -> Extras {
        let has = |extra| self.with.contains(&extra);
        Extras { tags: has(Extra::Tags), ttl: has(Extra::Ttl), tier: has(Extra::Tier) }
    }
}

/// Which of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extras {
    tags: bool,
    ttl: bool,
    pub(super) tier: bool,
}

impl Extras {
    /// For the name of a case.
    pub(super) fn name(self) -> Option<String> {
        let names = [(self.tags, "tags"), (self.ttl, "ttl"), (self.tier, "tier")];
        let names: Vec<&str> = names.into_iter().filter_map(|(has, name)| has.then_some(name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// Bytes that an entry has more by them, on average.
    pub(super) fn bytes(self) -> u64 {
        if self.tags { TAGS_BYTES } else { 0 }
    }

    /// Puts a value under the trace's key.
    pub(super) fn put(self, cache: &Cache, key: u64, value: &[u8]) -> eyewall::Result<u64> {
        let mut options = PutOptions::new();
        if self.ttl {
            options = options.ttl(TTL);
        }
        if !self.tags {
            return cache.put_with(key.to_le_bytes(), value, &options);
        }
        // From a tag of everything down to one of this object.
        let names = ["all".to_owned(), format!("s{}", key % 10), format!("p{}", key % 1_000), format!("o{key}")];
        let tags = names.each_ref().map(String::as_str);
        cache.put_with(key.to_le_bytes(), value, &options.tags(&tags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_with_an_entry_is_as_large_as_it_is_said_to_be() {
        let bytes = |with: &[Extra]| {
            let cache = eyewall::Options::new().size(8 << 20).heap().unwrap();
            let extras = With { with: with.to_vec() }.extras();
            for key in 0..1_000 {
                extras.put(&cache, key * 97, &[0; 100]).unwrap();
            }
            let stats = cache.stats().unwrap();
            (extras, stats.live_bytes / stats.entries)
        };
        let (none, plain) = bytes(&[]);
        assert_eq!((none.name(), none.bytes()), (None, 0));
        let (both, more) = bytes(&[Extra::Ttl, Extra::Tags]);
        assert_eq!(both.name().as_deref(), Some("tags, ttl"));
        // Lengths are rounded up to eight bytes.
        assert!((more - plain).abs_diff(both.bytes()) <= 8, "{plain} {more}");
    }
}
