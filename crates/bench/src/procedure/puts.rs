//! Puts into full stores, by one thread: how many, and how long each takes.

use std::cell::Cell as Position;
use std::time::Duration;

use serde::Deserialize;

use super::Procedure;
use crate::contender::PutLap;
use crate::error::Result;
use crate::load::{BLOCK_BYTES, Population, Puts as Asked};
use crate::peer::Peer;
use crate::random::KEY_BYTES;
use crate::stores::{Files, Volume};
use crate::suite::cell::Cell;
use crate::suite::entrant::{Entrant, Room};
use crate::suite::named::Named;
use crate::suite::size::Bytes;

/// `storage` and `size` make cells.
pub(super) struct Puts;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    /// The length of a store's turn.
    milliseconds: u64,
}

/// For each measure, the quantile of a put's time.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("slowest", 1.0)];

impl Procedure for Puts {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let (case, storage) = (cell.case().clone(), cell.storage()?);
        let value_bytes = case.bytes("size")? as usize;
        let room = Room { cap_bytes: settings.cap.0, value_bytes, value_bytes_max: 0, tier_bytes: 0 };
        let mut full = Vec::new();
        for peer in cell.peers() {
            cell.show(&format!("{} is filled, {case}", peer.name));
            let filled = cell.open(peer, room).and_then(|entrant| Full::fill(entrant, peer, room));
            full.extend(cell.attempt(peer.name, filled)?);
        }
        cell.show(&case.to_string());
        cell.turns(&mut full, |cell, store, repetition| {
            // So no store pays for the writeback of another.
            cell.scratch().settle(storage)?;
            let done = store.put(Duration::from_millis(settings.milliseconds))?;
            cell.sample(&case, store.name(), "rate", repetition, done.lap.per_second())?;
            for (measure, quantile) in QUANTILES {
                let seconds = done.latency_ns.value_at_quantile(quantile) as f64 / 1e9;
                cell.sample(&case, store.name(), measure, repetition, seconds)?;
            }
            cell.distribution(&case, store.name(), "time", repetition, &done.latency_ns)
        })
    }
}

/// A full store, and the index of its next put.
struct Full {
    entrant: Entrant,
    population: Population,
    next: Position<u64>,
}

impl Full {
    /// Fills a store beyond its cap: with as many objects as an ideal store would hold, or twice as many.
    fn fill(entrant: Entrant, peer: &Peer, room: Room) -> Result<Self> {
        let entry_bytes = match peer.name {
            // This store counts whole blocks against its cap, and its janitor leaves less.
            Files::NAME => room.value_bytes.next_multiple_of(BLOCK_BYTES),
            _ => room.value_bytes + KEY_BYTES,
        };
        let rounds = if peer.name == Volume::NAME { 2 } else { 1 };
        let objects = rounds * room.cap_bytes / entry_bytes as u64;
        let population = Population { objects, value_bytes: room.value_bytes };
        entrant.store.fill(population)?;
        Ok(Self { entrant, population, next: Position::new(objects) })
    }

    fn put(&self, duration: Duration) -> Result<PutLap> {
        let asked = Asked { population: self.population, first: self.next.get(), duration };
        let done = self.entrant.store.puts(&asked)?;
        self.next.set(done.next);
        Ok(done)
    }
}

impl Named for Full {
    fn name(&self) -> &str {
        self.entrant.name()
    }

    fn settle(&self) -> Result<()> {
        self.entrant.settle()
    }
}
