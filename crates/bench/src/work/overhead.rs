//! What an entry of 100 B costs beyond its key and value.

use super::MIB;
use crate::contender::Contender as _;
use crate::error::Result;
use crate::load::Population;
use crate::random::KEY_BYTES;
use crate::record::{Ask, Row};
use crate::run::Run;
use crate::scratch::Storage;
use crate::store::{Place, Volume};

const VALUE_BYTES: usize = 100;

/// Fills a volume three times over and divides what is used by its entries.
pub fn run(run: &mut Run) -> Result<()> {
    let cap_bytes = run.pick(64, 16) * MIB;
    let entry_bytes = VALUE_BYTES + KEY_BYTES;
    let mut used = Vec::new();
    let mut whole = Vec::new();
    let mut headers = Vec::new();
    for _ in 0..run.repetitions() {
        let directory = run.scratch(Storage::Shm)?;
        let place = Place::new(directory.path(), cap_bytes as u64, VALUE_BYTES);
        let store = Volume::create(&place)?;
        let objects = (3 * cap_bytes / entry_bytes) as u64;
        store.fill(Population { objects, value_bytes: VALUE_BYTES })?;
        let stats = store.cache().stats()?;
        let beyond = |bytes: u64| bytes as f64 / stats.entries.max(1) as f64 - entry_bytes as f64;
        used.push(beyond(stats.live_bytes + stats.overhead_bytes));
        whole.push(beyond(stats.size_bytes));
        headers.push(beyond(stats.live_bytes));
    }
    let row = Row::new("overhead", "entries, index and tables, beyond key and value", "B an entry")
        .series(Volume::NAME, &used)
        .value(Volume::NAME, Ask::at_most(64.0).aim(48.0));
    run.push(row);
    run.push(Row::new("overhead", "headers and padding alone", "B an entry").series(Volume::NAME, &headers));
    run.push(Row::new("overhead", "the whole file, free space too", "B an entry").series(Volume::NAME, &whole));
    Ok(())
}
