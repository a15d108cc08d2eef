//! Real requests, replayed through stores that are too small for them, and through simulated policies.

use std::path::PathBuf;

use serde::Deserialize;

use super::Procedure;
use crate::error::Result;
use crate::simulate;
use crate::suite::cell::Cell;
use crate::suite::definition::Definition;
use crate::suite::entrant::Room;
use crate::suite::size::Bytes;
use crate::suite::value::Value;
use crate::trace::{self, Footprint, Request};

/// The smallest volume, and the smallest tier.
const CAP_BYTES_MIN: u64 = 512 << 10;

/// `trace` and `percent` make cells.
pub(super) struct Replay;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Bytes of each object, for a trace without sizes.
    value: Bytes,
    /// The size of a tier, in percent of the cap.
    tier_percent: u64,
}

impl Procedure for Replay {
    fn skip(&self, definition: &Definition) -> Option<String> {
        let is_there = |name: &Value| trace_file(&name.to_string()).is_some();
        let has_none = definition.given_traces().is_empty() && !definition.values("trace").iter().any(is_there);
        has_none.then(|| {
            "there are no traces: name their directory in EYEWALL_TRACES, or an access log of yours by --trace"
                .to_owned()
        })
    }

    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let Some(requests) = requests(cell, &settings)? else {
            return Ok(());
        };
        let Footprint { bytes, median_bytes } = Footprint::of(&requests);
        let cap_bytes = bytes * cell.case().count("percent")? as u64 / 100;
        let case = cell.case().clone();
        if cap_bytes < CAP_BYTES_MIN {
            cell.note(format!("{case}: a cap of {cap_bytes} bytes is below the smallest volume: not replayed"));
            return Ok(());
        }
        for peer in cell.peers() {
            cell.show(&format!("{case}, {}", peer.name));
            if let Some((objects, bytes)) = simulate::hits_of(peer.name, cap_bytes, &requests) {
                cell.sample(&case, peer.name, "hits", 1, objects)?;
                cell.sample(&case, peer.name, "byte_hits", 1, bytes)?;
            }
        }
        let tier_bytes = (cap_bytes * settings.tier_percent / 100).max(CAP_BYTES_MIN);
        // The median, as the manual recommends. A few large objects raise the mean; with it, volumes would accept
        // larger entries than by default.
        let room = Room { cap_bytes, value_bytes: median_bytes as usize, value_bytes_max: 0, tier_bytes };
        cell.turns_anew(room, |cell, entrant, repetition| {
            let name = entrant.store.name();
            let replayed = entrant.store.replay(&requests)?;
            cell.sample(&case, name, "hits", repetition, replayed.hits.object_percent())?;
            cell.sample(&case, name, "byte_hits", repetition, replayed.hits.byte_percent())?;
            cell.sample(&case, name, "requests", repetition, requests.len() as f64 / replayed.seconds)?;
            match entrant.store.footprint_bytes()? {
                Some(bytes) => cell.sample(&case, name, "of_cap", repetition, 100.0 * bytes as f64 / cap_bytes as f64),
                None => Ok(()),
            }
        })
    }
}

/// The file of one of the workload's traces, if it exists.
fn trace_file(name: &str) -> Option<PathBuf> {
    let path = trace::directory()?.join(format!("{name}.txt.gz"));
    path.is_file().then_some(path)
}

/// The requests of the cell's trace. If there is no such trace, a note says so, and there are none.
fn requests(cell: &mut Cell<'_>, settings: &Settings) -> Result<Option<Vec<Request>>> {
    let name = cell.case().text("trace")?.to_owned();
    let mut requests = if let Some(path) = cell.given_trace(&name) {
        trace::read_log(path)?
    } else if let Some(path) = trace_file(&name) {
        trace::read(&path)?
    } else {
        cell.note(format!("the trace {name} isn't there (EYEWALL_TRACES names the directory): not replayed"));
        return Ok(None);
    };
    // In such a trace each size is 1.
    if requests.iter().all(|request| request.bytes == 1) {
        for request in &mut requests {
            request.bytes = settings.value.0;
        }
    }
    Ok(Some(requests))
}
