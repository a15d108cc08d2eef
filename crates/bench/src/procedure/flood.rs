//! A flood of objects that are each requested once, beside a set of hot objects.

use serde::Deserialize;

use super::Procedure;
use crate::contender::Contender;
use crate::error::Result;
use crate::load;
use crate::random::{self, Random};
use crate::suite::cell::Cell;
use crate::suite::entrant::Room;
use crate::suite::size::Bytes;

/// Keys from here on belong to the flood.
const FLOOD_FIRST: u64 = 1 << 40;

/// `wonders` makes cells: the number of objects of the flood for each get of a hot one.
pub(super) struct Flood;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    cap: Bytes,
    /// Memory in front of the files, for stores that have such.
    tier: Bytes,
    value: Bytes,
    /// The hot objects, in percent of the objects that fit.
    hot_percent: u64,
    /// The number of rounds. Each makes as many gets of random hot objects as there are hot objects.
    rounds: u64,
}

impl Procedure for Flood {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let (case, wonders) = (cell.case().clone(), cell.case().count("wonders")?);
        let value_bytes = settings.value.0 as usize;
        let room = Room { cap_bytes: settings.cap.0, value_bytes, value_bytes_max: 0, tier_bytes: settings.tier.0 };
        let hot = (settings.cap.0 / settings.value.0 * settings.hot_percent / 100).max(1);
        let seed = cell.seed();
        cell.turns_anew(room, |cell, entrant, repetition| {
            let mut order = Random::new(random::mix(seed ^ repetition as u64));
            let store: &dyn Contender = entrant.store.as_ref();
            let mut value = random::filler(11, value_bytes);
            let (mut hits, mut counted, mut next) = (0_u64, 0_u64, FLOOD_FIRST);
            for round in 0..settings.rounds {
                cell.breathe()?;
                for _ in 0..hot {
                    let index = order.below(hot);
                    let key = random::key(index);
                    let is_hit = store.get_one(&key)?.is_some();
                    if !is_hit {
                        load::stamp(&mut value, index);
                        store.put_one(&key, &value)?;
                    }
                    // In the first half, the store learns which objects are hot.
                    if round >= settings.rounds / 2 {
                        counted += 1;
                        hits += u64::from(is_hit);
                    }
                    for _ in 0..wonders {
                        load::stamp(&mut value, next);
                        store.put_one(&random::key(next), &value)?;
                        next += 1;
                    }
                }
            }
            let percent = 100.0 * hits as f64 / counted.max(1) as f64;
            cell.sample(&case, entrant.store.name(), "hits", repetition, percent)
        })
    }
}
