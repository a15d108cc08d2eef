//! Gets that hit, read in place, by threads of one process.

use std::time::Duration;

use super::{MIB, Opened, population, size_name};
use crate::error::Result;
use crate::load::{Gets, Sequences};
use crate::record::{Ask, Row};
use crate::run::{Run, SEED};
use crate::scratch::Storage;
use crate::store::{Peer, Volume};
use crate::touch::Touch;

/// Keys asked for before the sequences repeat, over all threads: more than the objects.
pub(super) const KEYS_TOTAL: usize = 1 << 20;

/// Bytes of all values: far more than any L2 cache.
pub(super) const SET_BYTES: usize = 64 * MIB;

/// Bytes of each value.
pub(super) const VALUE_BYTES: [usize; 2] = [100, 10 * 1024];

/// Measures `peers`, all open at once, in turn.
pub fn run(run: &mut Run, peers: &[Peer]) -> Result<()> {
    let thread_counts = run.pick(&[1, 2, 8, 64][..], &[1, 8]);
    let cells = [Storage::Shm, Storage::Disk].into_iter().flat_map(|storage| VALUE_BYTES.map(|bytes| (storage, bytes)));
    for (storage, value_bytes) in cells {
        let population = population(value_bytes, run.pick(SET_BYTES, SET_BYTES / 4));
        let opened = peers
            .iter()
            .map(|peer| Opened::filled(run, peer, storage, population.cap_bytes(), population))
            .collect::<Result<Vec<_>>>()?;
        for &threads in thread_counts {
            let gets = Gets {
                sequences: Sequences::random(population, threads, KEYS_TOTAL, SEED),
                touch: Touch::Page,
                duration: Duration::from_millis(run.pick(400, 60)),
            };
            let case = format!("{}, {threads} threads, {}", size_name(value_bytes), run.storage_name(storage));
            let row = measure(run, Row::new("get", case, "M/s"), &opened, &gets, 1e6)?;
            run.push(judge(row));
        }
    }
    Ok(())
}

fn judge(row: Row) -> Row {
    row.ratio(Volume::NAME, "quick_cache", Ask::at_least(1.0).aim(1.3))
        .ratio(Volume::NAME, "LMDB", Ask::at_least(2.5))
        .ratio(Volume::NAME, "moka", Ask::NOTHING)
        .ratio(Volume::NAME, "foyer", Ask::NOTHING)
}

/// Runs `gets` on each store in turn, once to warm up and then for each repetition; a series each, in `unit` a second.
pub(super) fn measure(run: &Run, row: Row, opened: &[Opened], gets: &Gets, unit: f64) -> Result<Row> {
    let mut samples = vec![Vec::new(); opened.len()];
    for repetition in 0..=run.repetitions() {
        for (opened, samples) in opened.iter().zip(&mut samples) {
            let lap = opened.store.gets(gets)?;
            if repetition > 0 {
                samples.push(lap.per_second() / unit);
            }
        }
    }
    let with_series = |row: Row, (opened, samples): (&Opened, Vec<f64>)| row.series(opened.store.name(), &samples);
    Ok(opened.iter().zip(samples).fold(row, with_series))
}
