//! Puts into a full store, on the disk and in shared memory: throughput and latency.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::{KIB, MIB, Opened, size_name};
use crate::clock::now_ns;
use crate::contender::histogram;
use crate::error::Result;
use crate::load::{Population, Puts};
use crate::random::KEY_BYTES;
use crate::record::{Ask, Row, Spread};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{BareCopy, Files, Peer, Volume};

/// The cap of each store.
const CAP_BYTES: usize = 64 * MIB;

/// The row of a thread that only reads the clock.
const SPIN: &str = "idle spin";

/// The two ways of using LMDB, as the peers' adapters name them.
const LMDB: &str = "LMDB";
const LMDB_WRITE_MAP: &str = "LMDB, write map";

/// What the bars ask of one size of value: throughput over that of file-per-entry and of LMDB.
struct Case {
    value_bytes: usize,
    over_files: f64,
    over_lmdb: f64,
}

const CASES: [Case; 3] = [
    Case { value_bytes: 100, over_files: 30.0, over_lmdb: 2.0 },
    Case { value_bytes: 4 * KIB, over_files: 60.0, over_lmdb: 5.0 },
    Case { value_bytes: 50 * KIB, over_files: 15.0, over_lmdb: 2.5 },
];

/// Quantiles of the latency, by name.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// Measures `peers` in turn on both storages.
pub fn run(run: &mut Run, peers: &[Peer]) -> Result<()> {
    for storage in [Storage::Disk, Storage::Shm] {
        for case in &CASES {
            measure(run, peers, storage, case)?;
        }
    }
    Ok(())
}

/// A store that is full, and how far its puts have come.
struct Full {
    opened: Opened,
    population: Population,
    next: u64,
    samples: Vec<Sample>,
}

/// One repetition.
struct Sample {
    per_second: f64,
    latency_ns: Histogram<u64>,
}

impl Full {
    /// One repetition.
    fn put(&mut self, duration: Duration) -> Result<()> {
        let puts = Puts { population: self.population, first: self.next, duration };
        let done = self.opened.store.puts(&puts)?;
        self.next = done.next;
        self.samples.push(Sample { per_second: done.lap.per_second(), latency_ns: done.latency_ns });
        Ok(())
    }
}

fn measure(run: &mut Run, peers: &[Peer], storage: Storage, case: &Case) -> Result<()> {
    let mut full = peers.iter().map(|peer| fill(run, peer, storage, case.value_bytes)).collect::<Result<Vec<_>>>()?;
    let duration = Duration::from_millis(run.pick(1_200, 100));
    let mut spins = Vec::new();
    for _ in 0..run.repetitions() {
        spins.push(spin(duration / 5)?);
        for store in &mut full {
            run.settle(storage)?;
            store.put(duration)?;
        }
    }
    let name = format!("{}, {}", size_name(case.value_bytes), run.storage_name(storage));
    let throughput = throughput(&name, &full);
    let lmdb = faster(&throughput);
    run.push(judge_throughput(throughput, storage, case, lmdb));
    for quantile in QUANTILES {
        run.push(judge_latency(latency(&name, quantile, &full, &spins), storage, quantile.0, lmdb));
    }
    Ok(())
}

/// Fills a store over its cap: as many objects as an ideal one would hold, twice.
fn fill(run: &Run, peer: &Peer, storage: Storage, value_bytes: usize) -> Result<Full> {
    let cap_bytes = run.pick(CAP_BYTES, CAP_BYTES / 4);
    let opened = Opened::new(run, peer, storage, cap_bytes as u64, value_bytes)?;
    let entry_bytes = match peer.name {
        // It counts whole blocks against its cap, and its janitor leaves less.
        Files::NAME => value_bytes.next_multiple_of(4 * KIB),
        _ => value_bytes + KEY_BYTES,
    };
    let rounds = if peer.name == Volume::NAME { 2 } else { 1 };
    let population = Population { objects: (rounds * cap_bytes / entry_bytes) as u64, value_bytes };
    opened.store.fill(population)?;
    Ok(Full { opened, population, next: population.objects, samples: Vec::new() })
}

/// What a thread sees of this machine that does nothing but read the clock.
fn spin(duration: Duration) -> Result<Histogram<u64>> {
    let mut latency_ns = histogram()?;
    let mut last_ns = now_ns();
    let deadline_ns = last_ns + duration.as_nanos() as u64;
    while last_ns < deadline_ns {
        let now = now_ns();
        latency_ns.saturating_record(now - last_ns);
        last_ns = now;
    }
    Ok(latency_ns)
}

fn throughput(name: &str, full: &[Full]) -> Row {
    let row = Row::new("put", format!("{name}: throughput"), "k/s");
    full.iter().fold(row, |row, store| {
        let samples: Vec<f64> = store.samples.iter().map(|sample| sample.per_second / 1e3).collect();
        row.series(store.opened.store.name(), &samples)
    })
}

fn latency(name: &str, (quantile_name, quantile): (&str, f64), full: &[Full], spins: &[Histogram<u64>]) -> Row {
    let microseconds = |latency_ns: &Histogram<u64>| latency_ns.value_at_quantile(quantile) as f64 / 1e3;
    let row = Row::new("put", format!("{name}: {quantile_name}"), "us");
    full.iter()
        .fold(row, |row, store| {
            let samples: Vec<f64> = store.samples.iter().map(|sample| microseconds(&sample.latency_ns)).collect();
            row.series(store.opened.store.name(), &samples)
        })
        .series(SPIN, &spins.iter().map(microseconds).collect::<Vec<_>>())
}

/// The way of using LMDB that put most: the bars are held against that one.
fn faster(throughput: &Row) -> &'static str {
    let median = |store| throughput.samples(store).map_or(0.0, |samples| Spread::of(samples).median);
    if median(LMDB_WRITE_MAP) > median(LMDB) { LMDB_WRITE_MAP } else { LMDB }
}

/// Adds the comparison with both ways of using LMDB; what is asked is asked of the faster.
fn judge_lmdb(row: Row, faster: &str, ask: Ask) -> Row {
    [LMDB, LMDB_WRITE_MAP]
        .into_iter()
        .fold(row, |row, store| row.ratio(Volume::NAME, store, if store == faster { ask } else { Ask::NOTHING }))
}

fn judge_throughput(row: Row, storage: Storage, case: &Case, lmdb: &str) -> Row {
    let ask = |bar: f64| match storage {
        Storage::Disk => Ask::at_least(bar).aim(2.0 * bar),
        Storage::Shm => Ask::NOTHING,
    };
    judge_lmdb(row.ratio(Volume::NAME, Files::NAME, ask(case.over_files)), lmdb, ask(case.over_lmdb)).ratio(
        Volume::NAME,
        BareCopy::NAME,
        Ask::NOTHING,
    )
}

fn judge_latency(row: Row, storage: Storage, quantile_name: &str, lmdb: &str) -> Row {
    let (over_files, over_lmdb) = match (storage, quantile_name) {
        (Storage::Shm, "p99") => (Ask::at_most(0.2).aim(0.1), Ask::at_most(1.0).aim(0.5)),
        _ => (Ask::NOTHING, Ask::NOTHING),
    };
    judge_lmdb(row.ratio(Volume::NAME, Files::NAME, over_files), lmdb, over_lmdb)
}
