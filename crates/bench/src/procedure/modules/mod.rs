//! The module comparison: the rows of Eyewall in Rust, beside those of the drivers in other languages
//! (bench/drivers/README.md).

mod values;

use std::collections::BTreeMap;
use std::time::Duration;

use eyewall::{Cache, Options, PutOptions};
use serde::Deserialize;

use self::values::{Act, Amounts, Record, Values};
use super::Procedure;
use crate::clock::now_ns;
use crate::error::{Error, Result};
use crate::peer::Peer;
use crate::scratch::Storage;
use crate::stores::{EYEWALL, Volume};
use crate::suite::cell::Cell;

/// The number of gets to repeat without timing, to check that they give what was stored.
const CHECKED: usize = 64;

/// All stores of a case take turns: ours, and those of the drivers.
pub(super) struct Modules;

#[derive(Debug, Deserialize)]
struct Settings {
    #[serde(flatten)]
    amounts: Amounts,
    /// How often each step is done, so that it lasts long enough to be timed.
    rounds: usize,
    seconds: f64,
    configurations: BTreeMap<String, Configuration>,
}

/// The configuration of a cache. The drivers also derive the pages of modules from it.
#[derive(Debug, Clone, Copy, Deserialize)]
struct Configuration {
    bytes: u64,
    expiry_seconds: Option<u64>,
}

impl Procedure for Modules {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        cell.turns_of_all(measure_ours)
    }
}

fn measure_ours(cell: &mut Cell<'_>, peer: &Peer, repetition: usize) -> Result<()> {
    if peer.name != EYEWALL.name {
        return Err(Error::Invalid("its rows are the drivers'".to_owned()));
    }
    let settings: Settings = cell.settings()?;
    let case = cell.case().clone();
    let name = case.text("configuration")?;
    let configuration = settings.configurations.get(name).copied().ok_or_else(|| {
        Error::parameter("configuration", case.get("configuration"), "one of the settings' configurations")
    })?;
    let values = Values::of(&case, &settings.amounts, cell.seed())?;
    let directory = cell.scratch().make(Storage::Shm)?;
    let cache = Options::new().size(configuration.bytes / 4096 * 4096).open(directory.path().join(Volume::FILE))?;
    let expiry = configuration.expiry_seconds.map(Duration::from_secs);
    let store = Module::new(cache, expiry, &values, &settings.amounts, cell.seed());
    for (measure, value) in store.figures(&settings)? {
        cell.sample(&case, peer.name, measure, repetition, value)?;
    }
    Ok(())
}

/// A volume, used with the keys of the comparison.
struct Module<'a> {
    cache: Cache,
    expiry: Option<Duration>,
    keys: Vec<String>,
    values: &'a Values,
    seed: u64,
}

impl<'a> Module<'a> {
    fn new(cache: Cache, expiry: Option<Duration>, values: &'a Values, amounts: &Amounts, seed: u64) -> Self {
        let keys = (0..2 * amounts.keys).map(|index| values::key(index, seed)).collect();
        Self { cache, expiry, keys, values, seed }
    }

    /// Measures Set, Get and Mix, one after the other.
    fn figures(&self, settings: &Settings) -> Result<Vec<(&'static str, f64)>> {
        let amounts = &settings.amounts;
        let timed = |acts: &[Act], asked: &mut Asked| {
            timed(acts.len() * settings.rounds, settings.seconds, &mut |number| {
                self.act(acts[number % acts.len()], asked)
            })
        };
        let sets: Vec<Act> = (0..amounts.keys).map(Act::Set).collect();
        let (done, seconds) = timed(&sets, &mut Asked::default())?;
        let stored = done.min(amounts.keys);
        let mut found = vec![("set", done as f64 / seconds), ("stored", stored as f64)];

        let gets = values::gets(amounts, stored, self.seed);
        let mut asked = Asked::default();
        let (done, seconds) = timed(&gets, &mut asked)?;
        found.extend([("get", done as f64 / seconds), ("get_hits", asked.hit_percent())]);
        self.check(&gets, stored)?;

        let mix = values::mix(amounts, stored, self.seed);
        let mut asked = Asked::default();
        let (done, seconds) = timed(&mix, &mut asked)?;
        found.extend([("mix", done as f64 / seconds), ("mix_hits", asked.hit_percent())]);
        Ok(found)
    }

    fn act(&self, act: Act, asked: &mut Asked) -> Result<()> {
        match act {
            Act::Set(index) => self.set(index),
            Act::Get(index) => {
                asked.gets += 1;
                asked.hits += u64::from(self.get(index)?.is_some());
                Ok(())
            }
        }
    }

    fn set(&self, index: usize) -> Result<()> {
        let key = &self.keys[index];
        match self.values {
            Values::Binary(values) => self.put(key, &values[index % values.len()]),
            Values::Structured(records) => {
                let value =
                    serde_json::to_vec(&records[index % records.len()]).map_err(|failure| unserialised(&failure))?;
                self.put(key, &value)
            }
        }
    }

    fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        match self.expiry {
            Some(expiry) => self.cache.put_with(key, value, &PutOptions::new().ttl(expiry))?,
            None => self.cache.put(key, value)?,
        };
        Ok(())
    }

    /// A value in the form that a caller wants: bytes of its own, or a record.
    fn get(&self, index: usize) -> Result<Option<Given>> {
        let Some(hit) = self.cache.get(&self.keys[index])? else {
            return Ok(None);
        };
        match self.values {
            Values::Binary(_) => Ok(Some(Given::Binary(hit.to_vec()))),
            Values::Structured(_) => {
                Ok(Some(Given::Structured(serde_json::from_slice(&hit).map_err(|failure| unserialised(&failure))?)))
            }
        }
    }

    fn check(&self, gets: &[Act], stored: usize) -> Result<()> {
        for act in &gets[..CHECKED.min(gets.len())] {
            let Act::Get(index) = *act else { continue };
            let Some(given) = self.get(index)? else { continue };
            let is_right = match (&given, self.values) {
                (Given::Binary(given), Values::Binary(values)) => *given == values[index % values.len()],
                (Given::Structured(given), Values::Structured(records)) => *given == records[index % records.len()],
                _ => false,
            };
            if index >= stored || !is_right {
                return Err(Error::Invalid(format!("it gave another value for {}", self.keys[index])));
            }
        }
        Ok(())
    }
}

/// The result of a get.
enum Given {
    Binary(Vec<u8>),
    Structured(Record),
}

#[derive(Default)]
struct Asked {
    gets: u64,
    hits: u64,
}

impl Asked {
    fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.gets.max(1) as f64
    }
}

/// Does so many operations, or fewer if the time is up first. Returns their number and their seconds. It checks the
/// clock between blocks of operations, and enlarges short blocks.
fn timed(count: usize, limit_seconds: f64, work: &mut dyn FnMut(usize) -> Result<()>) -> Result<(usize, f64)> {
    let begin_ns = now_ns();
    let (mut done, mut block, mut seconds) = (0, 1, 0.0);
    while done < count && seconds < limit_seconds {
        let end = (done + block).min(count);
        for number in done..end {
            work(number)?;
        }
        done = end;
        let before = seconds;
        seconds = (now_ns() - begin_ns) as f64 / 1e9;
        if seconds - before < limit_seconds / 50.0 {
            block *= 2;
        }
    }
    Ok((done, seconds))
}

fn unserialised(failure: &serde_json::Error) -> Error {
    Error::Invalid(format!("a record can't be serialised: {failure}"))
}
