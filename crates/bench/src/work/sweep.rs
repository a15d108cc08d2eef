//! The eviction sweep: distinct objects put into a store far smaller than all of them, batch by batch.

use super::{KIB, MIB, Opened};
use crate::error::Result;
use crate::random::Random;
use crate::record::{Ask, Row, Spread};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::{BARE_COPY, BareCopy, EYEWALL, FILES, Files, Peer, Volume};

const OBJECTS: usize = 100_000;
const BATCH: usize = 1_000;
const CAP_BYTES: u64 = 64 * MIB as u64;

/// Free space below which a storage is passed over: the janitor lags behind by a second of writing, in each repetition.
const FREE_BYTES_MIN: u64 = 8 << 30;

const PEERS: [Peer; 3] = [EYEWALL, FILES, BARE_COPY];

/// The sizes of a sweep's objects: 1 to 100 KB, uniformly.
pub(super) fn sizes(objects: usize) -> Vec<usize> {
    let mut random = Random::new(SEED);
    (0..objects).map(|_| random.between(KIB as u64, 100 * KIB as u64) as usize).collect()
}

/// Sweeps new stores in turn, on both storages.
pub fn run(run: &mut Run) -> Result<()> {
    let sizes = sizes(run.pick(OBJECTS, OBJECTS / 10));
    for storage in [Storage::Disk, Storage::Shm] {
        let name = format!("sweep on {}", run.storage_name(storage));
        if run.lacks_space(storage, FREE_BYTES_MIN, &name)? {
            continue;
        }
        let mut sweeps = [const { Vec::new() }; PEERS.len()];
        for _ in 0..run.repetitions() {
            for (peer, sweeps) in PEERS.iter().zip(&mut sweeps) {
                let opened = Opened::new(run, peer, storage, CAP_BYTES, 50 * KIB)?;
                run.settle(storage)?;
                sweeps.push(Sweep::of(&opened.store.sweep(&sizes, BATCH)?.seconds));
            }
        }
        record(run, storage, &sweeps);
    }
    Ok(())
}

/// One sweep of one store, in seconds.
struct Sweep {
    median: f64,
    p95: f64,
    total: f64,
}

impl Sweep {
    fn of(batches: &[f64]) -> Self {
        let mut sorted = batches.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * 95).div_ceil(100).max(1) - 1;
        Self {
            median: Spread::of(batches).median,
            p95: sorted.get(rank).copied().unwrap_or(0.0),
            total: batches.iter().sum(),
        }
    }
}

fn record(run: &mut Run, storage: Storage, sweeps: &[Vec<Sweep>; PEERS.len()]) {
    let name = run.storage_name(storage).to_owned();
    let row = |case: &str, unit, figure: fn(&Sweep) -> f64| {
        let mut row = Row::new("sweep", format!("{name}: {case}"), unit);
        for (peer, sweeps) in PEERS.iter().zip(sweeps) {
            row = row.series(peer.name, &sweeps.iter().map(figure).collect::<Vec<_>>());
        }
        row
    };
    run.push(row("median of the batches of 1,000", "ms", |sweep| sweep.median * 1e3));
    run.push(row("p95 of the batches", "ms", |sweep| sweep.p95 * 1e3));
    let times = match storage {
        Storage::Disk => 4.0,
        Storage::Shm => 2.0,
    };
    let steadiness = row("p95 / median of the batches", "x", |sweep| sweep.p95 / sweep.median);
    run.push(steadiness.value(Volume::NAME, Ask::at_most(times)));
    let total = row("whole sweep", "s", |sweep| sweep.total);
    // Time over time: how many times as long the files take.
    run.push(total.ratio(Files::NAME, Volume::NAME, Ask::at_least(15.0).aim(30.0)).ratio(
        Files::NAME,
        BareCopy::NAME,
        Ask::NOTHING,
    ));
}
