//! Replays the sample through a volume of the engine, as the server would have met it with another size or another setting.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use eyewall::{Cache, Options};

use super::classes::Class;
use crate::serve::sample::{Record, Snapshot};

/// Paths fall into this many groups. Each is a sample of its own; their spread gives the error of the whole sample.
const GROUPS: usize = 32;
/// The largest volume of a replay.
const VOLUME_MAX: f64 = (64 << 20) as f64;
/// The smallest one, in which the tables take no more than their share.
const VOLUME_MIN: f64 = (1 << 20) as f64;
/// Larger bodies are stored in pieces, as the server does.
const PIECE_BYTES: u64 = 64 << 10;
/// The length of a body that no request says.
const UNKNOWN_BYTES: u32 = 16 << 10;
/// A response that takes more than this part of the volume is stored at its second request (`Cache::displaces_much`).
const LARGE_SHARE: u64 = 32;
/// What an entry takes besides its body: its key, and the head of the response.
const HEAD_BYTES: u64 = 512;

/// A change of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change<'a> {
    /// As it is.
    Nothing,
    /// Keys of a site lose the parameters of trackers.
    WithoutTrackers { site: u8 },
    /// Responses that weren't stored for this reason are, and stay fresh for this long.
    Stored { site: u8, reason: &'a str, ttl: Option<Duration> },
    /// Responses stay fresh for at least this long.
    TtlMin { site: u8, ttl: Duration },
}

/// The misses of a replay, by groups of paths.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    misses: [f64; GROUPS],
    miss_bytes: [f64; GROUPS],
}

impl Tally {
    pub(super) fn misses(&self) -> f64 {
        self.misses.iter().sum()
    }
}

/// What a replay begins with.
pub(super) struct Trial<'a> {
    pub(super) snapshot: &'a Snapshot,
    /// Of each record.
    pub(super) classes: &'a [Class],
    /// The bytes of each key, as far as any request has told.
    bytes: HashMap<u64, u32>,
    footprint: u64,
    /// The records of paths above it are left out, so that the volume isn't too large.
    rate: f64,
    /// A volume of the replay has this many times the size of that of the server with the same evictions (`calibrate`).
    pub(super) scale: f64,
}

/// The stored keys.
enum Shelf {
    /// Everything fits.
    All(HashSet<u64>),
    Volume {
        cache: Cache,
        zeros: Vec<u8>,
        body_max: u64,
    },
}

impl<'a> Trial<'a> {
    /// `size` is the largest size to try.
    pub(super) fn new(snapshot: &'a Snapshot, classes: &'a [Class], size: u64) -> Self {
        let mut bytes: HashMap<u64, u32> = HashMap::new();
        for record in &snapshot.records {
            let known = bytes.entry(record.key).or_default();
            *known = (*known).max(record.bytes.unwrap_or(0));
        }
        bytes.values_mut().filter(|bytes| **bytes == 0).for_each(|bytes| *bytes = UNKNOWN_BYTES);
        let footprint = bytes.values().map(|bytes| u64::from(*bytes) + HEAD_BYTES).sum();
        let rate = snapshot.rate.min(VOLUME_MAX / size as f64);
        Self { snapshot, classes, bytes, footprint, rate, scale: 1.0 }
    }

    /// The records of the replay, and their numbers.
    pub(super) fn records(&self) -> impl Iterator<Item = (usize, &'a Record)> + '_ {
        let limit = (self.rate * 2_f64.powi(64)) as u64;
        self.snapshot.records.iter().enumerate().filter(move |(_, record)| record.unit <= limit)
    }

    /// The length of the body of a record.
    pub(super) fn bytes(&self, record: &Record) -> u32 {
        self.bytes.get(&record.key).copied().unwrap_or(UNKNOWN_BYTES)
    }

    /// The requests that the records of a replay stand for.
    fn requests(&self) -> f64 {
        self.snapshot.requests as f64 * self.rate
    }

    /// The share of the requests that `from` misses and `to` doesn't, its standard error, and the share of the bytes.
    pub(super) fn gain(&self, from: &Tally, to: &Tally) -> (f64, f64, f64) {
        let parts: [f64; GROUPS] = std::array::from_fn(|group| from.misses[group] - to.misses[group]);
        let (sum, groups) = (parts.iter().sum::<f64>(), GROUPS as f64);
        let squares: f64 = parts.iter().map(|part| (part - sum / groups).powi(2)).sum();
        let error = (squares * groups / (groups - 1.0) * (1.0 - self.rate).max(0.0)).sqrt();
        let of_bytes: f64 = from.miss_bytes.iter().sum::<f64>() - to.miss_bytes.iter().sum::<f64>();
        let bytes: f64 = self.records().map(|(_, record)| f64::from(self.bytes(record))).sum();
        let requests = self.requests().max(1.0);
        (sum / requests, error / requests, of_bytes / bytes.max(1.0))
    }

    /// Replays the sample through a volume of this size. `missed` gets the number of each record that the volume doesn't have. Each request looks
    /// its key up before it puts it, as in the server: a look-up that misses counts when the engine decides which newcomer stays.
    pub(super) fn run(&self, size: u64, change: Change<'_>, mut missed: impl FnMut(usize)) -> eyewall::Result<Tally> {
        let mut shelf = self.shelf(size)?;
        let mut tally = Tally { misses: [0.0; GROUPS], miss_bytes: [0.0; GROUPS] };
        // When a key was stored.
        let mut stored: HashMap<u64, u64> = HashMap::new();
        for (number, record) in self.records() {
            let key = match change {
                Change::WithoutTrackers { site } if record.site == site => record.bare,
                _ => record.key,
            };
            let bytes = self.bytes(record);
            let mut miss = || {
                let group = record.unit as usize % GROUPS;
                tally.misses[group] += 1.0;
                tally.miss_bytes[group] += f64::from(bytes);
                missed(number);
            };
            let is_older = |ttl: Duration| {
                let at = stored.get(&key).copied().unwrap_or(0);
                u128::from(record.at_ms.saturating_sub(at)) > ttl.as_millis()
            };
            let is_of = |site: u8| record.site == site;
            match (self.classes[number], change) {
                (Class::NotStored, Change::Stored { site, reason, ttl })
                    if is_of(site) && self.snapshot.name(record.reason) == reason =>
                {
                    let has = shelf.has(key)?;
                    if !has || ttl.is_some_and(is_older) {
                        miss();
                        stored.insert(key, record.at_ms);
                        shelf.put(key, bytes)?;
                    }
                }
                (Class::NotStored, _) => miss(),
                (Class::AskedOnce, _) if u64::from(bytes) > size / LARGE_SHARE => {
                    miss();
                    shelf.has(key)?;
                }
                (Class::Expired, Change::TtlMin { site, ttl })
                    if is_of(site) && !is_older(ttl) && shelf.has(key)? => {}
                (Class::Expired | Class::Forced | Class::Purged, _) => {
                    miss();
                    shelf.has(key)?;
                    stored.insert(key, record.at_ms);
                    shelf.put(key, bytes)?;
                }
                (Class::Plain | Class::AskedOnce, _) => {
                    if shelf.has(key)? {
                        continue;
                    }
                    // Otherwise it was stored before the sample began.
                    if stored.contains_key(&key) || !record.is_hit() {
                        miss();
                    }
                    stored.insert(key, record.at_ms);
                    shelf.put(key, bytes)?;
                }
            }
        }
        Ok(tally)
    }

    fn shelf(&self, size: u64) -> eyewall::Result<Shelf> {
        let scaled = (size as f64 * self.rate * self.scale).clamp(VOLUME_MIN, VOLUME_MAX);
        let footprint = self.footprint as f64 * self.rate / self.snapshot.rate;
        if footprint * 1.5 < scaled {
            return Ok(Shelf::All(HashSet::new()));
        }
        let cache = Options::new().size(scaled as u64).heap()?;
        let zeros = vec![0; (PIECE_BYTES + HEAD_BYTES) as usize];
        let body_max = scaled as u64 / 4;
        Ok(Shelf::Volume { cache, zeros, body_max })
    }
}

impl Shelf {
    /// Looks a key up, which counts as a use.
    fn has(&self, key: u64) -> eyewall::Result<bool> {
        match self {
            Self::All(keys) => Ok(keys.contains(&key)),
            Self::Volume { cache, .. } => Ok(cache.get(name(key, 0))?.is_some()),
        }
    }

    fn put(&mut self, key: u64, bytes: u32) -> eyewall::Result<()> {
        match self {
            Self::All(keys) => {
                keys.insert(key);
                Ok(())
            }
            Self::Volume { cache, zeros, body_max } => {
                let (mut left, mut piece) = ((u64::from(bytes) + HEAD_BYTES).min(*body_max), 0);
                while left > 0 {
                    let length = left.min(zeros.len() as u64);
                    match cache.put(name(key, piece), &zeros[..length as usize]) {
                        Ok(_) | Err(eyewall::Error::EntryTooLarge { .. }) => {}
                        Err(error) => return Err(error),
                    }
                    (left, piece) = (left - length, piece + 1);
                }
                Ok(())
            }
        }
    }
}

fn name(key: u64, piece: u32) -> [u8; 12] {
    let mut name = [0; 12];
    name[..8].copy_from_slice(&key.to_le_bytes());
    name[8..].copy_from_slice(&piece.to_le_bytes());
    name
}
