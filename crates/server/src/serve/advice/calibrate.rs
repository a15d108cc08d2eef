//! Makes replays evict as much as the server itself did.
//!
//! A replay differs from the server in small things that decide whether an entry at the edge stays: heads of other lengths, another order of
//! requests at the same time, entries that no request of the sample asked for, other programs on the volume. All of them are as if the volume
//! were a little larger or smaller. So the replays get a volume of such a size that one at the present size misses as often as the server
//! did. All other sizes are multiples of that one, and the gain is the difference of two replays on the same scale.

use std::collections::HashSet;

use super::classes::Class;
use super::replay::{Change, Tally, Trial};

/// Replays may get a volume up to twice or half as large. A larger difference has other reasons than the volume.
const OCTAVES: f64 = 1.0;
/// The most replays that look for the scale. They find it to a twentieth of the size.
const STEPS: usize = 4;
/// A difference below this share of the requests doesn't matter.
const ACCURACY: f64 = 0.005;
/// With fewer evictions in the sample, chance is larger than the difference.
const EVICTED_MIN: f64 = 30.0;

impl Trial<'_> {
    /// Finds the scale, and returns the replay at the present size. `has_evicted` says whether the server has evicted anything for want of room.
    pub(super) fn calibrate(&mut self, size: u64, has_evicted: bool) -> eyewall::Result<Tally> {
        let mut base = self.run(size, Change::Nothing, |_| {})?;
        let (others, evicted) = self.misses();
        let wanted = others + if has_evicted { evicted } else { 0.0 };
        let requests = self.records().count() as f64;
        let accuracy = (requests * ACCURACY).max(evicted.sqrt());
        let mut difference = base.misses() - wanted;
        if evicted.max(base.misses() - others) < EVICTED_MIN || difference.abs() <= accuracy {
            return Ok(base);
        }
        // A volume that evicts too much has to grow.
        let mut bounds = if difference > 0.0 { [0.0, OCTAVES] } else { [-OCTAVES, 0.0] };
        let mut best = self.scale;
        for _ in 0..STEPS {
            let octaves = f64::midpoint(bounds[0], bounds[1]);
            self.scale = octaves.exp2();
            let tally = self.run(size, Change::Nothing, |_| {})?;
            let found = tally.misses() - wanted;
            if found.abs() < difference.abs() {
                (base, best, difference) = (tally, self.scale, found);
            }
            if found.abs() <= accuracy {
                break;
            }
            bounds[usize::from(found < 0.0)] = octaves;
        }
        self.scale = best;
        Ok(base)
    }

    /// The misses of the server that no size prevents, and those of keys that it had stored before.
    fn misses(&self) -> (f64, f64) {
        let mut seen = HashSet::new();
        let (mut others, mut evicted) = (0.0, 0.0);
        for (number, record) in self.records() {
            let is_stored = !matches!(self.classes[number], Class::NotStored | Class::AskedOnce);
            let is_known = if is_stored { !seen.insert(record.key) } else { seen.contains(&record.key) };
            match self.classes[number] {
                _ if record.is_hit() => {}
                Class::Plain if is_known => evicted += 1.0,
                _ => others += 1.0,
            }
        }
        (others, evicted)
    }
}
