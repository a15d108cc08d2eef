//! Gets of entries with tags against entries of the same bytes without, with and without purges to judge them by.

use std::time::Duration;

use eyewall::{Options, Purge, PutOptions};
use tempfile::TempDir;

use super::{KEYS_TOTAL, MIB, SET_BYTES, population};
use crate::contender::{Contender as _, allow_misses};
use crate::error::{Error, Result};
use crate::load::{Gets, Population, Sequences};
use crate::random::Random;
use crate::record::{Ask, Row};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::Volume;
use crate::touch::Touch;

const VALUE_BYTES: usize = 100;

/// More than is needed: the table of purged tags grows with the volume, and is not to overflow.
const CAP_BYTES: u64 = 256 * MIB as u64;

/// Volumes that are made until the table of one doesn't overflow: each hashes tags in its own way.
const TRIES: usize = 4;

const TAGS_OF_AN_ENTRY: usize = 4;

/// Tags that entries carry, all together.
const TAGS: u64 = 10_000;

/// Bytes of each tag.
const TAG_BYTES: usize = 8;

/// What the tags of an entry take in it, as `PutOptions::tags` says, and three bytes for their end.
const TAGS_BYTES: usize = TAGS_OF_AN_ENTRY * (TAG_BYTES + 9) + 3;

/// Purged, and carried by no entry.
const TAGS_PURGED: u64 = 4_096;

const RULES: usize = 64;

const TAGGED: &str = "4 tags";
const UNTAGGED: &str = "no tags";

/// The purges before the gets.
#[derive(Debug, Clone, Copy)]
enum Purged {
    Nothing,
    Tags,
    /// Prefixes of so many lengths.
    Prefixes(usize),
}

impl Purged {
    fn name(self) -> String {
        match self {
            Self::Nothing => "nothing was purged".to_owned(),
            Self::Tags => format!("{TAGS_PURGED} other tags were purged"),
            Self::Prefixes(1) => format!("{RULES} other prefixes of one length were purged"),
            Self::Prefixes(lengths) => format!("{RULES} other prefixes of {lengths} lengths were purged"),
        }
    }

    fn ask(self) -> Ask {
        match self {
            Self::Tags => Ask::at_most(1.2).aim(1.05),
            _ => Ask::NOTHING,
        }
    }

    /// Purges what no entry has: keys are hexadecimal digits, and tags have other names.
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

/// Measures new volumes for each kind of purge.
pub fn run(run: &mut Run) -> Result<()> {
    let population = population(VALUE_BYTES, run.pick(SET_BYTES, SET_BYTES / 4));
    if run.lacks_space(Storage::Shm, 3 * CAP_BYTES, "tagged")? {
        return Ok(());
    }
    for purged in [Purged::Nothing, Purged::Tags, Purged::Prefixes(1), Purged::Prefixes(8)] {
        let [tagged, untagged] = [true, false].map(|tagged| Filled::new(run, population, tagged, purged));
        let (tagged, untagged) = (tagged?, untagged?);
        if tagged.entry_bytes != untagged.entry_bytes {
            let what = format!(
                "an entry with tags has {} bytes, one without {}: TAGS_BYTES is to be what tags take",
                tagged.entry_bytes, untagged.entry_bytes
            );
            return Err(Error::Invalid(what));
        }
        let row = measure(run, population, &tagged.store, &untagged.store, &purged.name())?;
        run.push(row.ratio(TAGGED, UNTAGGED, purged.ask()));
    }
    Ok(())
}

/// A volume full of a population, before which something was purged.
struct Filled {
    store: Volume,
    /// Of one entry, header and padding included.
    entry_bytes: u64,
    _directory: TempDir,
}

impl Filled {
    fn new(run: &Run, population: Population, tagged: bool, purged: Purged) -> Result<Self> {
        for _ in 0..TRIES {
            let filled = Self::attempt(run, population, tagged, purged)?;
            if filled.store.cache().stats()?.purge_overflows == 0 {
                let missing = filled.store.count_missing(0..population.objects)?;
                allow_misses(Volume::NAME, missing, population.objects)?;
                return Ok(filled);
            }
        }
        let what = format!("the notes of purges overflowed in each of {TRIES} volumes, which CAP_BYTES is to prevent");
        Err(Error::Invalid(what))
    }

    fn attempt(run: &Run, population: Population, tagged: bool, purged: Purged) -> Result<Self> {
        let directory = run.scratch(Storage::Shm)?;
        // The index is sized for twice the population, not for the cap: no bucket is to be full.
        let hint = CAP_BYTES / population.objects / 2;
        let options = Options::new().size(CAP_BYTES).entry_size_hint(hint as u32);
        let store = Volume::from(options.open(directory.path().join(Volume::FILE))?);
        if tagged {
            put_tagged(&store, population)?;
        } else {
            let metadata = [0; TAGS_BYTES];
            store.put_all(0..population.objects, VALUE_BYTES, &PutOptions::new().metadata(&metadata))?;
        }
        let stats = store.cache().stats()?;
        purged.purge(&store)?;
        Ok(Self { store, entry_bytes: stats.live_bytes / stats.entries.max(1), _directory: directory })
    }
}

fn put_tagged(store: &Volume, population: Population) -> Result<()> {
    let names: Vec<String> = (0..TAGS).map(|number| format!("t{number:0width$}", width = TAG_BYTES - 1)).collect();
    let mut random = Random::new(SEED);
    store.put_each(0..population.objects, VALUE_BYTES, |key, value| {
        let tags: [&str; TAGS_OF_AN_ENTRY] = std::array::from_fn(|_| names[random.below(TAGS) as usize].as_str());
        store.cache().put_with(key, value, &PutOptions::new().tags(&tags))?;
        Ok(())
    })
}

/// Nanoseconds of a get by one thread, both volumes in turn; a first lap that populates the map is not counted.
fn measure(run: &Run, population: Population, tagged: &Volume, untagged: &Volume, case: &str) -> Result<Row> {
    let gets = Gets {
        sequences: Sequences::random(population, 1, KEYS_TOTAL, SEED),
        touch: Touch::Page,
        duration: Duration::from_millis(run.pick(600, 60)),
    };
    let mut samples = [Vec::new(), Vec::new()];
    for store in [tagged, untagged] {
        store.check(population)?;
    }
    for repetition in 0..=run.repetitions() {
        for (store, samples) in [tagged, untagged].into_iter().zip(&mut samples) {
            let lap = store.gets(&gets)?;
            if repetition > 0 {
                samples.push(1e9 / lap.per_second());
            }
        }
    }
    let name = format!("100 B, 1 thread, {}: {case}", run.storage_name(Storage::Shm));
    let [tagged, untagged] = samples;
    Ok(Row::new("tagged", name, "ns a get").series(TAGGED, &tagged).series(UNTAGGED, &untagged))
}
