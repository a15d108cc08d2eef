//! Compares gets of entries with tags and of entries without tags that have as many bytes, after purges and without
//! any.

use std::time::Duration;

use eyewall::{Options, Purge, PutOptions};
use serde::Deserialize;
use tempfile::TempDir;

use super::Procedure;
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::{Gets, Population, Sequences, allow_misses};
use crate::random::Random;
use crate::stores::Volume;
use crate::suite::cell::Cell;
use crate::suite::named::Named;
use crate::suite::size::Bytes;
use crate::suite::value::{Case, Value};
use crate::touch::Touch;

/// How many volumes to create until the table of one doesn't overflow: each volume hashes tags differently.
const TRIES: usize = 4;

const TAGS_OF_AN_ENTRY: usize = 4;

/// Number of distinct tags on entries.
const TAGS: u64 = 10_000;

/// Bytes of each tag.
const TAG_BYTES: usize = 8;

/// The bytes that tags take in an entry, as `PutOptions::tags` says, and three bytes for their end.
const TAGS_BYTES: usize = TAGS_OF_AN_ENTRY * (TAG_BYTES + 9) + 3;

/// Tags that are purged, and that no entry carries.
const TAGS_PURGED: u64 = 4_096;

const RULES: usize = 64;

/// The values of the parameter `entries`.
const TAGGED: &str = "4 tags";
const UNTAGGED: &str = "no tags";

/// `purged` makes cells. The procedure goes through `entries` with both volumes open.
pub(super) struct Tags;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The size of the volume. It is larger than the values need, since the table of purged tags grows with the volume,
    /// and must not overflow.
    cap: Bytes,
    /// Bytes of all values.
    set: Bytes,
    value: Bytes,
    /// Number of keys before their order repeats.
    keys: usize,
    /// The length of a volume's turn.
    milliseconds: u64,
}

/// The number of purges before the gets.
#[derive(Debug, Clone, Copy)]
enum Purged {
    Nothing,
    Tags,
    /// The number of lengths that purged prefixes have.
    Prefixes(usize),
}

impl Purged {
    fn of(case: &Case) -> Result<Self> {
        Ok(match case.text("purged")? {
            "nothing" => Self::Nothing,
            "4,096 other tags" => Self::Tags,
            "64 other prefixes of one length" => Self::Prefixes(1),
            "64 other prefixes of 8 lengths" => Self::Prefixes(8),
            _ => {
                let known = "nothing, 4,096 other tags, or 64 other prefixes of one length or of 8 lengths";
                return Err(Error::parameter("purged", case.get("purged"), known));
            }
        })
    }

    /// Purges tags and prefixes that no entry has: the keys of entries are hexadecimal digits, and their tags have
    /// other names.
    fn purge(self, store: &Volume) -> Result<()> {
        let cache = store.cache();
        match self {
            Self::Nothing => {}
            Self::Tags => {
                for number in 0..TAGS_PURGED {
                    cache.purge_tag(&format!("other-{number}"), Purge::Hard)?;
                }
            }
            Self::Prefixes(lengths) => {
                for number in 0..RULES {
                    let width = 4 + number % lengths;
                    cache.purge_prefix(format!("x{number:0width$}"), Purge::Hard)?;
                }
            }
        }
        Ok(())
    }
}

impl Procedure for Tags {
    fn within(&self) -> &'static [&'static str] {
        &["entries"]
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let purged = Purged::of(cell.case())?;
        let value_bytes = settings.value.0 as usize;
        let population = Population { objects: settings.set.0 / settings.value.0, value_bytes };
        let mut filled = Vec::new();
        for entries in [TAGGED, UNTAGGED] {
            cell.show(&format!("a volume is filled, {entries}, {}", cell.case()));
            filled.push(Filled::new(cell, &settings, population, entries, purged)?);
        }
        if let [tagged, untagged] = &filled[..]
            && tagged.entry_bytes != untagged.entry_bytes
        {
            let what = format!(
                "an entry with tags has {} bytes, one without {}: TAGS_BYTES is to be what tags take",
                tagged.entry_bytes, untagged.entry_bytes
            );
            return Err(Error::Invalid(what));
        }
        let gets = Gets {
            sequences: Sequences::random(population, 1, settings.keys, cell.seed()),
            touch: Touch::Page,
            duration: Duration::from_millis(settings.milliseconds),
        };
        cell.show(&cell.case().to_string());
        // The uncounted lap populates the map.
        cell.turns(&mut filled, |cell, filled, repetition| {
            let seconds = 1.0 / filled.store.gets(&gets)?.per_second();
            let case = cell.case().clone().with("entries", Value::Text(filled.entries.to_owned()));
            cell.sample(&case, Volume::NAME, "get", repetition, seconds)
        })
    }
}

/// A volume with a population. The purges came before the population.
struct Filled {
    store: Volume,
    entries: &'static str,
    /// Bytes of one entry, header and padding included.
    entry_bytes: u64,
    _directory: TempDir,
}

impl Named for Filled {
    fn name(&self) -> &str {
        Volume::NAME
    }
}

impl Filled {
    fn new(
        cell: &Cell<'_>,
        settings: &Settings,
        population: Population,
        entries: &'static str,
        purged: Purged,
    ) -> Result<Self> {
        for _ in 0..TRIES {
            cell.breathe()?;
            let filled = Self::attempt(cell, settings, population, entries, purged)?;
            if filled.store.cache().stats()?.purge_overflows == 0 {
                let missing = filled.store.count_missing(0..population.objects)?;
                allow_misses(Volume::NAME, missing, population.objects)?;
                filled.store.check(population)?;
                return Ok(filled);
            }
        }
        let what = format!("the notes of purges overflowed in each of {TRIES} volumes, which the cap is to prevent");
        Err(Error::Invalid(what))
    }

    fn attempt(
        cell: &Cell<'_>,
        settings: &Settings,
        population: Population,
        entries: &'static str,
        purged: Purged,
    ) -> Result<Self> {
        let directory = cell.scratch().make(cell.storage()?)?;
        // The index is sized for twice the population, not for the cap, since no bucket may be full.
        let hint = settings.cap.0 / population.objects / 2;
        let options = Options::new().size(settings.cap.0).entry_size_hint(hint as u32);
        let store = Volume::from(options.open(directory.path().join(Volume::FILE))?);
        if entries == TAGGED {
            put_tagged(&store, population, cell.seed())?;
        } else {
            let metadata = [0; TAGS_BYTES];
            let options = PutOptions::new().metadata(&metadata);
            store.put_all(0..population.objects, population.value_bytes, &options)?;
        }
        let stats = store.cache().stats()?;
        purged.purge(&store)?;
        Ok(Self { store, entries, entry_bytes: stats.live_bytes / stats.entries.max(1), _directory: directory })
    }
}

fn put_tagged(store: &Volume, population: Population, seed: u64) -> Result<()> {
    let names: Vec<String> = (0..TAGS).map(|number| format!("t{number:0width$}", width = TAG_BYTES - 1)).collect();
    let mut random = Random::new(seed);
    store.put_each(0..population.objects, population.value_bytes, |key, value| {
        let tags: [&str; TAGS_OF_AN_ENTRY] = std::array::from_fn(|_| names[random.below(TAGS) as usize].as_str());
        store.cache().put_with(key, value, &PutOptions::new().tags(&tags))?;
        Ok(())
    })
}
