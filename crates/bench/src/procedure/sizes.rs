//! Fills a volume with values of one size, after values of another size. Measures how much of the cap is then used.

use std::time::Duration;

use serde::Deserialize;

use super::Procedure;
use crate::clock::histogram;
use crate::clock::now_ns;
use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::load::{self, Gets, Sequences};
use crate::random::{self, KEY_BYTES, Random};
use crate::suite::cell::Cell;
use crate::suite::entrant::Room;
use crate::suite::size;
use crate::touch::Touch;

/// The bytes of each entry beside key and value: see `docs/format.md`.
const HEADER_BYTES: u64 = 44;

/// The value of the parameter `before` for an empty volume.
const NOTHING: &str = "nothing";

/// Separates two sizes in the value of a parameter. Values of these sizes alternate.
const BY_TURNS: &str = " and ";

/// Keys of the second filling begin here.
const SECOND_FIRST: u64 = 1 << 40;

/// `cap`, `before` and `values` make cells.
pub(super) struct SizesOfValues;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Bytes that each filling puts, in multiples of the cap.
    caps_put: u64,
    /// How often each value is requested after its put. A value that is never requested doesn't displace those in the
    /// volume.
    gets_each: u32,
    /// The values whose size the store gets as a hint, if it gets one.
    hint: Hint,
    /// The largest number of keys to get afterwards.
    keys: usize,
    /// How long to get them.
    milliseconds: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Hint {
    None,
    Before,
    Values,
}

impl Procedure for SizesOfValues {
    fn measure(&self, cell: &mut Cell<'_>) -> Result<()> {
        let settings: Settings = cell.settings()?;
        let case = cell.case().clone();
        let cap = case.bytes("cap")?;
        let (before, values) = (case.text("before")?, sizes_of(case.text("values")?)?);
        let before = if before == NOTHING { None } else { Some(sizes_of(before)?) };
        let mean = |values: &[usize]| values.iter().sum::<usize>() / values.len();
        let value_bytes = match (settings.hint, &before) {
            (Hint::None, _) => 0,
            (Hint::Before, Some(before)) => mean(before),
            (Hint::Before, None) | (Hint::Values, _) => mean(&values),
        };
        let room = Room { cap_bytes: cap, value_bytes, value_bytes_max: 0, tier_bytes: 0 };
        let seed = cell.seed();
        cell.turns_anew(room, |cell, entrant, repetition| {
            let store: &dyn Contender = entrant.store.as_ref();
            let name = store.name();
            if let Some(before) = &before {
                fill(cell, store, 0, before, &settings, cap)?;
            }
            let filled = fill(cell, store, SECOND_FIRST, &values, &settings, cap)?;
            cell.sample(&case, name, "put_p999", repetition, filled.put_ns.value_at_quantile(0.999) as f64 / 1e9)?;
            cell.distribution(&case, name, "put_p999", repetition, &filled.put_ns)?;
            if let Some(bytes) = store.live_bytes()? {
                cell.sample(&case, name, "live", repetition, 100.0 * bytes as f64 / cap as f64)?;
            }
            if let Some(bytes) = store.footprint_bytes()? {
                cell.sample(&case, name, "of_cap", repetition, 100.0 * bytes as f64 / cap as f64)?;
            }
            let mut random = Random::new(random::mix(seed ^ repetition as u64));
            let keys = found(store, &filled, settings.keys, &mut random)?;
            let gets = Gets {
                sequences: Sequences::of(vec![keys]),
                touch: Touch::Pointer,
                duration: Duration::from_millis(settings.milliseconds),
            };
            // The first lap isn't counted.
            store.gets(&gets)?;
            let lap = store.gets(&gets)?;
            cell.sample(&case, name, "gets", repetition, lap.per_second())
        })
    }
}

/// The result of a filling.
struct Filled {
    objects: std::ops::Range<u64>,
    /// Nanoseconds of each put.
    put_ns: hdrhistogram::Histogram<u64>,
}

/// Puts values of alternating sizes, until they sum up to the given multiple of the cap. The store must not refuse any.
fn fill(
    cell: &Cell<'_>,
    store: &dyn Contender,
    first: u64,
    sizes: &[usize],
    settings: &Settings,
    cap: u64,
) -> Result<Filled> {
    let mut value = random::filler(5, sizes.iter().copied().max().unwrap_or(8));
    let (mut put, mut index, mut put_ns) = (0, first, histogram()?);
    for length in sizes.iter().cycle() {
        if put >= cap * settings.caps_put {
            break;
        }
        let key = random::key(index);
        load::stamp(&mut value, index);
        let begin_ns = now_ns();
        store.put_one(&key, &value[..*length])?;
        put_ns.saturating_record(now_ns() - begin_ns);
        for _ in 0..settings.gets_each {
            store.get_one(&key)?;
        }
        index += 1;
        put += *length as u64 + KEY_BYTES as u64 + HEADER_BYTES;
        if index.is_multiple_of(1 << 16) {
            cell.breathe()?;
        }
    }
    Ok(Filled { objects: first..index, put_ns })
}

/// Random keys that are in the volume, at most so many.
fn found(store: &dyn Contender, filled: &Filled, most: usize, random: &mut Random) -> Result<Vec<[u8; KEY_BYTES]>> {
    let count = filled.objects.end - filled.objects.start;
    let mut keys = Vec::new();
    // At most half of the objects that were put can be in the volume. If all of these were, twice as many tries as keys
    // would do.
    for _ in 0..most * 8 {
        let key = random::key(filled.objects.start + random.below(count));
        if store.get_one(&key)?.is_some() {
            keys.push(key);
        }
        if keys.len() == most {
            break;
        }
    }
    if keys.is_empty() {
        return Err(Error::Invalid(format!("{}: none of {count} entries is there", store.name())));
    }
    Ok(keys)
}

/// `100 B`, or `200 B and 40 KB`, which alternate.
fn sizes_of(text: &str) -> Result<Vec<usize>> {
    let size_of = |text| {
        size::parse(text).ok_or_else(|| Error::Invalid(format!("{text:?} is no size; one is written like 64 MB")))
    };
    text.split(BY_TURNS).map(|text| Ok(size_of(text)? as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::sizes_of;

    #[test]
    fn sizes_come_alone_or_by_turns() {
        assert_eq!(sizes_of("100 B").unwrap(), [100]);
        assert_eq!(sizes_of("200 B and 40 KB").unwrap(), [200, 40 << 10]);
        assert!(sizes_of("small").unwrap_err().to_string().contains("is no size"));
    }
}
