//! Advice from the running server: what the hit ratio would be at other sizes, why requests miss, and which lines of the configuration
//! would help.
//!
//! ```text
//! ../sample ──> classes: why a request wasn't a hit ──> replay: through a volume of the engine, with another size or setting
//!                                                         │  └──> remedies: the difference ──> report
//!                                                         └──> calibrate: the scale on which it evicts as the server did
//! ```
//! A replay takes each request as the server met it. A request whose response had expired, or could not be stored, is a miss at any size.
//! So the difference of two replays says what a change gains, and what was measured is never replaced by what was replayed.
//!
//! # What is absent
//! Parts of the key from fields of the request, and variants: where they matter, requests for other variants count as misses at any size.

mod adviser;
mod calibrate;
mod classes;
mod paths;
mod remedies;
mod replay;
mod report;

use std::collections::{HashMap, HashSet};

pub(crate) use adviser::{Adviser, NoAdvice};
use classes::{Class, Reasons};
use replay::{Change, Tally, Trial};
pub use report::{MissShare, PathShare, Remedy, Report, Sample, SizePoint};

use super::sample::Snapshot;
use super::shared::Shared;

/// The sizes to try, as multiples of the present one.
const FACTORS: [f64; 4] = [0.5, 1.0, 2.0, 4.0];
/// The most reasons to show.
const REASONS_MAX: usize = 12;
/// Removals are few if there are so many evictions for each.
const REMOVES_PART: u64 = 20;
/// A sample with fewer requests, or fewer paths, is small.
const SMALL: (u64, u64) = (1000, 50);

/// The advice for this server. It takes a second or two of a processor, so no event loop should wait for it.
///
/// # Errors
/// The engine's, if a volume for a replay can't be made.
fn advise(shared: &Shared) -> eyewall::Result<Report> {
    let snapshot = shared.metrics.sample();
    let stats = shared.cache.stats()?;
    let mut classes = classes::classes(&snapshot);
    let sizes = FACTORS.map(|factor| (factor, (stats.size_bytes as f64 * factor) as u64));
    let largest = sizes.iter().map(|(_, size)| *size).max().unwrap_or(stats.size_bytes);
    let evictions = stats.evictions_cold + stats.evictions_index;
    // Whole parts of the volume may be gone by one purge, but by a removal only one entry.
    let has_purged = stats.purges > 0 || stats.removes > evictions / REMOVES_PART;
    if has_purged {
        find_purged(&snapshot, &mut classes, stats.size_bytes, largest)?;
    }
    let mut trial = Trial::new(&snapshot, &classes, largest);
    // Otherwise some of the misses of stored keys have other reasons than evictions.
    let base = if has_purged || shared.sites.iter().any(|shared| shared.site.key.has_parts()) {
        trial.run(stats.size_bytes, Change::Nothing, |_| {})?
    } else {
        trial.calibrate(stats.size_bytes, evictions > 0)?
    };
    let (hit_ratio, byte_hit_ratio) = measured(&trial);
    let points = sizes.map(|(factor, size_bytes)| {
        let tally = if size_bytes == stats.size_bytes {
            Ok(base.clone())
        } else {
            trial.run(size_bytes, Change::Nothing, |_| {})
        };
        tally.map(|tally| {
            let (gain, error, bytes) = trial.gain(&base, &tally);
            let within = |ratio: f64| ratio.clamp(0.0, 1.0);
            let (hit_ratio, byte_hit_ratio) = (within(hit_ratio + gain), within(byte_hit_ratio + bytes));
            (SizePoint { factor, size_bytes, hit_ratio, error, byte_hit_ratio }, tally)
        })
    });
    let points = points.into_iter().collect::<Result<Vec<(SizePoint, Tally)>, _>>()?;
    let misses = misses(&trial);
    let remedies = remedies::remedies(shared, &trial, &base, (stats.size_bytes, &points), &misses)?;
    let mut units: Vec<u64> = snapshot.records.iter().map(|record| record.unit).collect();
    units.sort_unstable();
    units.dedup();
    let [hottest, slowest] = paths::outstanding(&snapshot);
    let (requests, paths) = (snapshot.records.len() as u64, units.len() as u64);
    Ok(Report {
        sample: Sample {
            requests,
            paths,
            rate: snapshot.rate,
            seconds: snapshot.seconds,
            requests_of_all: snapshot.requests,
            is_small: requests < SMALL.0 || paths < SMALL.1,
        },
        hit_ratio,
        byte_hit_ratio,
        sizes: points.into_iter().map(|(point, _)| point).collect(),
        misses: misses.into_iter().map(|(share, _)| share).collect(),
        remedies,
        hottest,
        slowest,
    })
}

/// Finds out which misses a volume of this size would have had: they were purged.
fn find_purged(snapshot: &Snapshot, classes: &mut [Class], size: u64, largest: u64) -> eyewall::Result<()> {
    // Those that the replay leaves out count as missed.
    let mut is_missed = vec![true; classes.len()];
    let trial = Trial::new(snapshot, classes, largest);
    trial.records().for_each(|(number, _)| is_missed[number] = false);
    trial.run(size, Change::Nothing, |number| is_missed[number] = true)?;
    let mut stored = HashSet::new();
    for ((record, class), is_missed) in snapshot.records.iter().zip(classes).zip(is_missed) {
        let was_stored = !stored.insert(record.key);
        if *class == Class::Plain && !record.is_hit() && !is_missed && was_stored {
            *class = Class::Purged;
        }
    }
    Ok(())
}

/// The shares of requests and bytes that came from the volume.
fn measured(trial: &Trial<'_>) -> (f64, f64) {
    let (mut misses, mut bytes, mut miss_bytes) = (0.0, 0.0, 0.0);
    for record in &trial.snapshot.records {
        let length = f64::from(trial.bytes(record));
        bytes += length;
        if !record.is_hit() {
            misses += 1.0;
            miss_bytes += length;
        }
    }
    let requests = (trial.snapshot.requests as f64 * trial.snapshot.rate).max(1.0);
    // Very hot paths hardly miss. So all requests that are no misses of the sample count as hits, whether it has these paths or not.
    let of = |part: f64, whole: f64| (1.0 - part / whole).clamp(0.0, 1.0);
    if bytes <= 0.0 { (0.0, 0.0) } else { (of(misses, requests), of(miss_bytes, bytes)) }
}

/// The misses of one reason and site.
#[derive(Default)]
struct Sums {
    misses: f64,
    bytes: f64,
    /// The misses of each path.
    units: HashMap<u64, u64>,
}

/// The shares of misses by reason and site, and the number of each site.
fn misses(trial: &Trial<'_>) -> Vec<(MissShare, u8)> {
    let snapshot = trial.snapshot;
    let requests = (snapshot.requests as f64 * snapshot.rate).max(1.0);
    let (mut reasons, mut bytes) = (Reasons::new(), 0.0);
    let mut shares: HashMap<(&str, u8), Sums> = HashMap::new();
    for (record, class) in snapshot.records.iter().zip(trial.classes) {
        let length = f64::from(trial.bytes(record));
        bytes += length;
        if let Some(reason) = reasons.of(snapshot, record, *class) {
            let share = shares.entry((reason, record.site)).or_default();
            (share.misses, share.bytes) = (share.misses + 1.0, share.bytes + length);
            *share.units.entry(record.unit).or_default() += 1;
        }
    }
    let mut shares: Vec<(MissShare, u8)> = shares
        .into_iter()
        .map(|((reason, site), Sums { misses, bytes: of_bytes, units })| {
            let example = units.iter().max_by_key(|(unit, count)| (**count, **unit)).map(|(unit, _)| *unit);
            let share = MissShare {
                reason: reason.to_owned(),
                words: classes::words(reason).to_owned(),
                site: snapshot.name(site).to_owned(),
                request_ratio: misses / requests,
                byte_ratio: of_bytes / f64::max(bytes, 1.0),
                example: example.map(|unit| snapshot.path(unit).to_owned()).unwrap_or_default(),
            };
            (share, site)
        })
        .collect();
    shares.sort_by(|(one, _), (other, _)| {
        other.request_ratio.total_cmp(&one.request_ratio).then_with(|| one.reason.cmp(&other.reason))
    });
    shares.truncate(REASONS_MAX);
    shares
}
