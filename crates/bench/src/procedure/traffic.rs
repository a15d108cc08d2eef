//! Realistic traffic on stores that are too small for it: throughput, hits, latencies, what is written, how much room is taken.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;

use super::Procedure;
use crate::error::{Error, Result};
use crate::looks::{self, Look};
use crate::memory;
use crate::mix::Sizes;
use crate::record::Spread;
use crate::store::Peer;
use crate::suite::cell::{Cell, Entrant, Room};
use crate::suite::size::Bytes;
use crate::suite::value::Case;
use crate::traffic::{Positions, Shares, Traffic as Load, TrafficLap};

/// Times that a footprint is looked at in a lap.
const LOOKS: u32 = 25;

/// `storage` and `footing` make cells; the others are settings.
pub(super) struct Traffic;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// What each store may hold.
    cap: Bytes,
    /// Memory before the files, where a store has such.
    tier: Bytes,
    /// All objects together, in caps.
    working_set: f64,
    /// Zipf's exponent.
    skew: f64,
    shares: Shares,
    sizes: Body,
    workers: usize,
    /// How long each store is warmed up, and has its turn.
    warm_up_seconds: f64,
    seconds: f64,
}

/// Sizes with a heavy tail.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Body {
    median: Bytes,
    sigma: f64,
    tail_share: f64,
    tail_from: Bytes,
    tail_exponent: f64,
    largest: Bytes,
}

impl Body {
    pub(super) fn sizes(&self) -> Sizes {
        Sizes::HeavyTailed {
            median_bytes: self.median.0 as f64,
            sigma: self.sigma,
            tail_share: self.tail_share,
            tail_bytes_min: self.tail_from.0 as f64,
            exponent: self.tail_exponent,
            bytes_max: self.largest.0 as f64,
        }
    }
}

impl Procedure for Traffic {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let sizes = settings.sizes.sizes().until((settings.cap.0 as f64 * settings.working_set) as u64);
        let traffic = Load::new(sizes, settings.skew, settings.shares, settings.workers, cell.seed());
        let positions: HashMap<&str, Positions> =
            cell.peers().iter().map(|peer| (peer.name, Positions::new(&traffic))).collect();
        let mut entrants = enter_all(cell, &settings, &traffic, &positions)?;
        let case = cell.case().clone();
        cell.show("footprints");
        for entrant in &entrants {
            let looked =
                positions_of(&positions, entrant).and_then(|at| footprints(entrant, &traffic, at, settings.seconds));
            if let Some(looks) = cell.attempt(entrant.store.name(), looked)? {
                record_footprints(cell, &case, entrant, &looks)?;
            }
        }
        let duration = Duration::from_secs_f64(settings.seconds);
        cell.show(&format!("{} objects, {} workers", traffic.objects(), settings.workers));
        cell.turns(&mut entrants, |cell, entrant, repetition| {
            cell.scratch().settle(cell.storage()?)?;
            let written = memory::written_to_storage();
            let lap = entrant.store.traffic(&traffic, positions_of(&positions, entrant)?, duration)?;
            let written = memory::written_to_storage().zip(written).map(|(now, before)| now - before);
            record(cell, &case, entrant.store.name(), repetition, &lap, written)
        })
    }
}

fn positions_of<'a>(positions: &'a HashMap<&str, Positions>, entrant: &Entrant) -> Result<&'a Positions> {
    let name = entrant.store.name();
    positions.get(name).ok_or_else(|| Error::Invalid(format!("{name} is called otherwise than its peer")))
}

/// Opens and warms up all stores: with the cap as it is told, or with one by which they take as much room as it says.
fn enter_all(
    cell: &mut Cell<'_>,
    settings: &Settings,
    traffic: &Load,
    positions: &HashMap<&str, Positions>,
) -> Result<Vec<Entrant>> {
    let is_equal = match cell.case().text("footing")? {
        "as configured" => false,
        "equal footprint" => true,
        _ => return Err(Error::parameter("footing", cell.case().get("footing"), "as configured, or equal footprint")),
    };
    let mut entrants = Vec::new();
    for peer in cell.peers() {
        let at = &positions[peer.name];
        let entered = enter(cell, peer, settings, (traffic, at), settings.cap.0).and_then(|entrant| {
            let Some(cap_bytes) = (if is_equal { equal_cap(&entrant, settings, (traffic, at))? } else { None }) else {
                return Ok(Some(entrant).filter(|_| !is_equal));
            };
            drop(entrant);
            enter(cell, peer, settings, (traffic, at), cap_bytes).map(Some)
        });
        match cell.attempt(peer.name, entered)? {
            Some(Some(entrant)) => entrants.push(entrant),
            Some(None) => cell.note(format!("{}: nobody can tell its footprint: not at equal ones", peer.name)),
            None => {}
        }
    }
    Ok(entrants)
}

fn enter(
    cell: &Cell<'_>,
    peer: &Peer,
    settings: &Settings,
    (traffic, positions): (&Load, &Positions),
    cap_bytes: u64,
) -> Result<Entrant> {
    cell.show(&format!("{} is warmed up", peer.name));
    let room = Room { cap_bytes, value_bytes: traffic.mean_bytes(), value_bytes_max: 0, tier_bytes: settings.tier.0 };
    let entrant = cell.open(peer, room)?;
    entrant.store.traffic(traffic, positions, Duration::from_secs_f64(settings.warm_up_seconds))?;
    entrant.store.settle()?;
    Ok(entrant)
}

/// The cap by which a store would take as much room, on average, as the cap of all says. `None`: it doesn't tell its room.
fn equal_cap(entrant: &Entrant, settings: &Settings, (traffic, positions): (&Load, &Positions)) -> Result<Option<u64>> {
    let looks = footprints(entrant, traffic, positions, settings.seconds)?;
    if looks.is_empty() {
        return Ok(None);
    }
    let mean = looks.iter().map(|look| look.bytes as f64).sum::<f64>() / looks.len() as f64;
    Ok(Some((settings.cap.0 as f64 * settings.cap.0 as f64 / mean) as u64))
}

/// What a store takes while there is traffic, which the looks slow down.
fn footprints(entrant: &Entrant, traffic: &Load, positions: &Positions, seconds: f64) -> Result<Vec<Look>> {
    let store = entrant.store.as_ref();
    let duration = Duration::from_secs_f64(seconds);
    let (_, looks) = looks::while_looking(store, duration / LOOKS, || store.traffic(traffic, positions, duration))?;
    Ok(looks)
}

fn record_footprints(cell: &mut Cell<'_>, case: &Case, entrant: &Entrant, looks: &[Look]) -> Result<()> {
    let name = entrant.store.name();
    for Look { seconds, bytes } in looks {
        cell.sample_along(case, name, "footprint", 1, *bytes as f64, Some(*seconds))?;
    }
    if looks.is_empty() {
        return Ok(());
    }
    let all: Vec<f64> = looks.iter().map(|look| look.bytes as f64).collect();
    cell.sample(case, name, "footprint_max", 1, Spread::of(&all).max)
}

fn record(
    cell: &mut Cell<'_>,
    case: &Case,
    store: &str,
    repetition: usize,
    lap: &TrafficLap,
    written_bytes: Option<u64>,
) -> Result<()> {
    let seconds = (lap.lap.end_ns - lap.lap.begin_ns).max(1) as f64 / 1e9;
    let quantile = |share: f64| lap.all_ns.value_at_quantile(share) as f64 / 1e9;
    cell.sample(case, store, "operations", repetition, lap.lap.per_second())?;
    cell.sample(case, store, "hits", repetition, lap.hit_percent())?;
    cell.sample(case, store, "p50", repetition, quantile(0.5))?;
    cell.sample(case, store, "p99", repetition, quantile(0.99))?;
    cell.sample(case, store, "p999", repetition, quantile(0.999))?;
    cell.sample(case, store, "p9999", repetition, quantile(0.9999))?;
    cell.sample(case, store, "put", repetition, lap.put_bytes as f64 / seconds)?;
    if let Some(bytes) = written_bytes {
        cell.sample(case, store, "written", repetition, bytes as f64 / seconds)?;
    }
    cell.distribution(case, store, "operation", repetition, &lap.all_ns)?;
    cell.distribution(case, store, "get", repetition, &lap.get_ns)?;
    cell.distribution(case, store, "put_time", repetition, &lap.put_ns)?;
    let puts = lap.put_ns.len().max(1);
    cell.sample(case, store, "refused", repetition, 100.0 * lap.refused as f64 / puts as f64)
}
