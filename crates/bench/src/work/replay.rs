//! Hit ratios: real traces replayed through the engine, beside idealised policies.

mod cells;
mod equal;
mod extras;

pub use extras::{Extra, With};

use eyewall::{Cache, Options, Stats};
use tempfile::TempDir;

use self::cells::{CELLS, Cap, Cell};
use self::extras::Extras;
use crate::error::{Error, Result};
use crate::random;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::simulate::{self, Hits, Lru, Policy as _, S3Fifo, S3FifoOptions};
use crate::trace::{self, Footprint, Request};

/// The smallest volume, and tier.
const TIER_BYTES_MIN: u64 = 512 << 10;

/// Bytes of a replayed key: the trace's number, little-endian.
const KEY_BYTES: u64 = 8;

const EYEWALL: &str = "eyewall";
const LRU: &str = "LRU (simulated)";
const S3_FIFO: &str = "S3-FIFO (simulated)";
const SIZED: &str = "S3-FIFO sized (simulated)";
const REFERENCE: &str = "reference";

/// Replays every cell whose trace is there, with the engine's default entry-size hint and with a fitting one.
pub fn run(run: &mut Run, with: &With) -> Result<()> {
    let Some(directory) = trace::directory() else {
        run.note("replay skipped: no traces (name their directory in EYEWALL_TRACES)");
        return Ok(());
    };
    let mut loaded: Option<(&str, Vec<Request>)> = None;
    for cell in CELLS {
        let requests = match loaded.take() {
            Some((name, requests)) if name == cell.trace => requests,
            _ => trace::read(&directory.join(format!("{}.txt.gz", cell.trace)))?,
        };
        replay_cell(run, cell, with.extras(), &requests)?;
        loaded = Some((cell.trace, requests));
    }
    Ok(())
}

/// What one replay through the engine found.
#[derive(Debug, Clone)]
struct Replayed {
    hits: Hits,
    refused: u64,
    stats: Stats,
}

/// The volume a cell is replayed in.
#[derive(Debug, Clone, Copy)]
struct Volume {
    size_bytes: u64,
    /// None: the default.
    entry_size_hint: Option<u32>,
    /// None: each object at the trace's size.
    value_bytes: Option<u64>,
    /// What goes with each entry.
    extras: Extras,
}

impl Volume {
    fn open(&self) -> Result<Opened> {
        let mut options = Options::new().size(self.size_bytes);
        if let Some(hint) = self.entry_size_hint {
            options = options.entry_size_hint(hint);
        }
        if !self.extras.tier {
            return Ok(Opened { cache: options.anonymous()?, _directory: None });
        }
        // A tier stands before a file only.
        let directory = tempfile::tempdir().map_err(Error::path("create a directory in", &std::env::temp_dir()))?;
        let options = options.tier((self.size_bytes / 4).max(TIER_BYTES_MIN));
        let cache = options.open(directory.path().join("volume"))?;
        Ok(Opened { cache, _directory: Some(directory) })
    }
}

/// An open volume, and where its file lies.
struct Opened {
    cache: Cache,
    _directory: Option<TempDir>,
}

fn replay_cell(run: &mut Run, cell: &Cell, extras: Extras, requests: &[Request]) -> Result<()> {
    let ideal = Ideal::of(cell, requests);
    for volume in volumes(cell, extras, requests)? {
        let mut replays = Vec::new();
        for _ in 0..run.repetitions() {
            replays.push(replay(&volume, requests)?);
        }
        let hint = volume.entry_size_hint.map_or_else(|| "default hint".to_owned(), |hint| format!("hint {hint}"));
        let with = extras.name().map_or_else(String::new, |names| format!(", with {names}"));
        let case = format!("{}, {hint}{with}", cell.name());
        if let Some(last) = replays.last() {
            show_details(&case, &volume, last);
        }
        record(run, cell, &case, &replays, &ideal);
    }
    Ok(())
}

/// The volumes of a cell: one with the default hint, one with the mean entry of what fits at all.
fn volumes(cell: &Cell, extras: Extras, requests: &[Request]) -> Result<Vec<Volume>> {
    match cell.cap {
        Cap::Bytes(cap_bytes) => {
            let size_bytes = cap_bytes / 4096 * 4096;
            let fitting: Vec<Request> =
                requests.iter().copied().filter(|request| request.bytes <= size_bytes / 16).collect();
            let footprint = Footprint::of(&fitting);
            let mean = footprint.bytes / footprint.objects.max(1) + KEY_BYTES + extras.bytes();
            Ok([None, Some(mean as u32)]
                .map(|entry_size_hint| Volume { size_bytes, entry_size_hint, value_bytes: None, extras })
                .to_vec())
        }
        Cap::Objects { objects, value_bytes } => {
            let hint = (value_bytes + KEY_BYTES + extras.bytes()) as u32;
            let volume = |entry_size_hint| equal::volume(objects, value_bytes, entry_size_hint, extras);
            Ok(vec![volume(None)?, volume(Some(hint))?])
        }
    }
}

/// Replays a trace through a new volume: a miss puts the object.
fn replay(volume: &Volume, requests: &[Request]) -> Result<Replayed> {
    let Opened { cache, _directory } = volume.open()?;
    let bytes_max = requests.iter().map(|request| request.bytes).max().unwrap_or(0);
    let filler = random::filler(1, volume.value_bytes.unwrap_or(bytes_max) as usize);
    let mut hits = Hits::default();
    let mut refused = 0;
    for request in requests {
        let hit = cache.get(request.key.to_le_bytes())?.is_some();
        hits.count(request.bytes, hit);
        if hit {
            continue;
        }
        let value_bytes = volume.value_bytes.unwrap_or(request.bytes) as usize;
        match volume.extras.put(&cache, request.key, &filler[..value_bytes]) {
            Ok(_) => {}
            Err(eyewall::Error::EntryTooLarge { .. }) => refused += 1,
            Err(other) => return Err(Error::Engine(other)),
        }
    }
    Ok(Replayed { hits, refused, stats: cache.stats()? })
}

/// What idealised policies reach in the same cell.
struct Ideal {
    lru: Hits,
    lru_written_bytes: u64,
    s3_fifo: Hits,
    sized: Option<Hits>,
}

impl Ideal {
    fn of(cell: &Cell, requests: &[Request]) -> Self {
        let (cap, sized) = match cell.cap {
            Cap::Bytes(bytes) => (bytes, true),
            Cap::Objects { objects, .. } => (objects, false),
        };
        let mut lru = Lru::new(cap);
        let lru_hits = simulate::replay(&mut lru, requests);
        let s3_fifo = |options| simulate::replay(&mut S3Fifo::new(options), requests);
        Self {
            lru: lru_hits,
            lru_written_bytes: lru.written_bytes(),
            s3_fifo: s3_fifo(S3FifoOptions::plain(cap)),
            sized: sized.then(|| s3_fifo(S3FifoOptions::sized(cap))),
        }
    }
}

fn record(run: &mut Run, cell: &Cell, case: &str, replays: &[Replayed], ideal: &Ideal) {
    let objects: Vec<f64> = replays.iter().map(|replay| replay.hits.object_percent()).collect();
    let mut row = Row::new("replay", format!("{case}: object hit ratio"), "%")
        .series(EYEWALL, &objects)
        .series(LRU, &[ideal.lru.object_percent()])
        .series(S3_FIFO, &[ideal.s3_fifo.object_percent()]);
    if let Some(sized) = ideal.sized {
        row = row.series(SIZED, &[sized.object_percent()]);
    }
    row = match (cell.reference_percent, ideal.sized) {
        (Some(reference), _) => row.series(REFERENCE, &[reference]).difference(
            EYEWALL,
            REFERENCE,
            Ask::at_least(-cell.points_below_max()).aim(-1.0),
        ),
        (None, Some(_)) => row.difference(EYEWALL, SIZED, Ask::NOTHING),
        (None, None) => row.difference(EYEWALL, S3_FIFO, Ask::NOTHING),
    };
    run.push(row.difference(EYEWALL, LRU, Ask::NOTHING));

    let Some(sized) = ideal.sized else {
        return;
    };
    let bytes: Vec<f64> = replays.iter().map(|replay| replay.hits.byte_percent()).collect();
    let ask = if cell.reference_percent.is_some() { Ask::at_least(-1.0) } else { Ask::NOTHING };
    let row = Row::new("replay", format!("{case}: byte hit ratio"), "%")
        .series(EYEWALL, &bytes)
        .series(LRU, &[ideal.lru.byte_percent()])
        .series(S3_FIFO, &[ideal.s3_fifo.byte_percent()])
        .series(SIZED, &[sized.byte_percent()])
        .difference(EYEWALL, LRU, ask)
        .difference(EYEWALL, SIZED, Ask::NOTHING);
    run.push(row);

    let written: Vec<f64> =
        replays.iter().map(|replay| (replay.stats.bytes_written + replay.stats.bytes_copied) as f64 / 1e6).collect();
    let row = Row::new("replay", format!("{case}: bytes written, copies included"), "MB")
        .series(EYEWALL, &written)
        .series(LRU, &[ideal.lru_written_bytes as f64 / 1e6])
        .ratio(EYEWALL, LRU, Ask::NOTHING);
    run.push(row);
}

fn show_details(case: &str, volume: &Volume, replayed: &Replayed) {
    let stats = &replayed.stats;
    println!(
        "replay    {case}: volume {} B, {} stripes, data {} B; {} entries, {} B live; {} too large; \
         index {} of {} slots, {} ghosts; evicted {} cold, {} for the index; {} promoted, {} re-inserted, {} moved",
        volume.size_bytes,
        stats.stripes,
        stats.data_bytes,
        stats.entries,
        stats.live_bytes,
        replayed.refused,
        stats.index_live,
        stats.index_slots,
        stats.index_ghosts,
        stats.evictions_cold,
        stats.evictions_index,
        stats.promotions,
        stats.reinsertions,
        stats.moved,
    );
}
