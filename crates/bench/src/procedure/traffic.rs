//! Realistic traffic on stores that are too small for it. Measures throughput, hits, latencies, bytes written and space
//! taken.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;

use super::Procedure;
use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::looks::{self, Look};
use crate::memory;
use crate::mix::Sizes;
use crate::peer::Peer;
use crate::spread::Spread;
use crate::suite::cell::Cell;
use crate::suite::entrant::{Entrant, Room};
use crate::suite::size::Bytes;
use crate::suite::value::Case;
use crate::traffic::{Length, Positions, Shares, Traffic as Load, TrafficLap};

/// Samples of the footprint in a lap.
const LOOKS: u32 = 25;

/// Before the warm-up, so many times its cap is put into a store. So the store is full, whatever the speed of its puts.
const FILL: f64 = 1.25;

/// Footprints that differ by this share at most count as equal.
const EQUAL_WITHIN: f64 = 0.03;

/// How many caps to try until the store's footprint has the wanted size.
const CAPS_TRIED_MAX: usize = 4;

/// `storage` and `footing` make cells; the others are settings.
pub(super) struct Traffic;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// The cap of each store.
    cap: Bytes,
    /// Memory in front of the files, for stores that have such.
    tier: Bytes,
    /// Bytes of all objects, in multiples of the cap.
    working_set: f64,
    /// Zipf's exponent.
    skew: f64,
    shares: Shares,
    sizes: Body,
    workers: usize,
    /// Operations of each store's warm-up. Slow and fast stores get the same number, so that their hits can be
    /// compared.
    warm_up_operations: u64,
    /// The length of each store's turn.
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
        let case = cell.case().clone();
        let mut entrants = Vec::new();
        for peer in cell.peers() {
            let entered = enter(cell, peer, &settings, &traffic, &positions[peer.name]);
            let Some(Some(Entered { entrant, looks, cap_bytes })) = cell.attempt(peer.name, entered)? else {
                continue;
            };
            record_footprints(cell, &case, peer.name, &looks)?;
            cell.sample(&case, peer.name, "cap", 1, cap_bytes as f64)?;
            entrants.push(entrant);
        }
        let length = Length::Time(Duration::from_secs_f64(settings.seconds));
        cell.show(&format!("{} objects, {} workers", traffic.objects(), settings.workers));
        cell.turns(&mut entrants, |cell, entrant, repetition| {
            cell.scratch().settle(cell.storage()?)?;
            let written = memory::written_to_storage();
            let lap = entrant.store.traffic(&traffic, positions_of(&positions, entrant)?, length)?;
            let written = memory::written_to_storage().zip(written).map(|(now, before)| now - before);
            record(cell, &case, entrant.store.name(), repetition, &lap, written)
        })
    }
}

fn positions_of<'a>(positions: &'a HashMap<&str, Positions>, entrant: &Entrant) -> Result<&'a Positions> {
    let name = entrant.store.name();
    positions.get(name).ok_or_else(|| Error::Invalid(format!("{name} is called otherwise than its peer")))
}

/// A full and warmed-up store, and the space that it took meanwhile.
struct Entered {
    entrant: Entrant,
    looks: Vec<Look>,
    cap_bytes: u64,
}

/// Opens and warms up a store: either with the given cap, or with a cap at which it takes, on average, as much space as
/// the given cap says. `None` if equal space is wanted and the store can't tell its space; a note says so.
fn enter(
    cell: &mut Cell<'_>,
    peer: &Peer,
    settings: &Settings,
    traffic: &Load,
    positions: &Positions,
) -> Result<Option<Entered>> {
    let is_equal = match cell.case().text("footing")? {
        "as configured" => false,
        "equal footprint" => true,
        _ => return Err(Error::parameter("footing", cell.case().get("footing"), "as configured, or equal footprint")),
    };
    let mut cap_bytes = settings.cap.0;
    for tried in 1.. {
        let entered = warm_up(cell, peer, settings, (traffic, positions), cap_bytes)?;
        if !is_equal {
            return Ok(Some(entered));
        }
        let Some(part) = mean_bytes(&entered.looks).map(|bytes| bytes / settings.cap.0 as f64) else {
            cell.note(format!("{}: nobody can tell its footprint: not at equal ones", peer.name));
            break;
        };
        if (part - 1.0).abs() <= EQUAL_WITHIN {
            return Ok(Some(entered));
        }
        if tried == CAPS_TRIED_MAX {
            let percent = 100.0 * part;
            cell.note(format!("{}: at equal footprint it took {percent:.0} % of what it was to take", peer.name));
            return Ok(Some(entered));
        }
        cap_bytes = (cap_bytes as f64 / part) as u64;
    }
    Ok(None)
}

fn warm_up(
    cell: &Cell<'_>,
    peer: &Peer,
    settings: &Settings,
    (traffic, positions): (&Load, &Positions),
    cap_bytes: u64,
) -> Result<Entered> {
    cell.show(&format!("{} is filled and warmed up", peer.name));
    let room = Room { cap_bytes, value_bytes: traffic.mean_bytes(), value_bytes_max: 0, tier_bytes: settings.tier.0 };
    let entrant = cell.open(peer, room)?;
    entrant.store.fill_for(traffic, (cap_bytes as f64 * FILL) as u64)?;
    cell.breathe()?;
    entrant.store.traffic(traffic, positions, Length::Operations(settings.warm_up_operations))?;
    entrant.store.settle()?;
    let looks = footprints(entrant.store.as_ref(), traffic, positions, settings.seconds)?;
    Ok(Entered { entrant, looks, cap_bytes })
}

/// The space of a store during traffic. Taking the samples slows the traffic down.
fn footprints(store: &dyn Contender, traffic: &Load, positions: &Positions, seconds: f64) -> Result<Vec<Look>> {
    let duration = Duration::from_secs_f64(seconds);
    let (_, looks) =
        looks::while_looking(store, duration / LOOKS, || store.traffic(traffic, positions, Length::Time(duration)))?;
    Ok(looks)
}

fn mean_bytes(looks: &[Look]) -> Option<f64> {
    let sum: f64 = looks.iter().map(|look| look.bytes as f64).sum();
    (!looks.is_empty()).then(|| sum / looks.len() as f64)
}

fn record_footprints(cell: &mut Cell<'_>, case: &Case, store: &str, looks: &[Look]) -> Result<()> {
    for Look { seconds, bytes } in looks {
        cell.sample_along(case, store, "footprint", 1, *bytes as f64, Some(*seconds))?;
    }
    if looks.is_empty() {
        return Ok(());
    }
    let all: Vec<f64> = looks.iter().map(|look| look.bytes as f64).collect();
    cell.sample(case, store, "footprint_max", 1, Spread::of(&all).max)
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
