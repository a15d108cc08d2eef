//! The volume whose data area holds a given number of equal entries.

use eyewall::Options;

use super::{Extras, Opened, Volume};
use crate::error::{Error, Result};
use crate::random;

/// Entries put to learn what one occupies; few enough to fit the smallest volume.
const PROBES: u64 = 32;

const PAGE_BYTES: u64 = 4096;

/// Searches volume sizes, page by page, for the smallest whose data area (`Stats::data_bytes`, both rings of all
/// stripes) holds `objects` entries of `value_bytes`, and checks that it holds not 1 % more. An entry's footprint is
/// `live_bytes / entries` of a volume that holds a few.
pub(super) fn volume(objects: u64, value_bytes: u64, entry_size_hint: Option<u32>, extras: Extras) -> Result<Volume> {
    let candidate =
        |pages: u64| Volume { size_bytes: pages * PAGE_BYTES, entry_size_hint, value_bytes: Some(value_bytes), extras };
    let smallest = Options::new().size(0).anonymous().map_or(512 << 10, |cache| cache.size()) / PAGE_BYTES;
    let mut low = smallest;
    let mut high = (objects * (value_bytes + 1_024) * 2 / PAGE_BYTES).max(low + 1);
    while low < high {
        let middle = u64::midpoint(low, high);
        if capacity(&candidate(middle), value_bytes)? < objects {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let found = candidate(low);
    let holds = capacity(&found, value_bytes)?;
    if holds.abs_diff(objects) * 100 > objects {
        return Err(Error::Invalid(format!(
            "no volume size holds {objects} entries of {value_bytes} B within 1 %: {} B holds {holds}",
            found.size_bytes
        )));
    }
    println!("replay    {objects} entries of {value_bytes} B: a volume of {} B holds {holds}", found.size_bytes);
    Ok(found)
}

/// Entries of `value_bytes` that the data area of a volume holds.
fn capacity(volume: &Volume, value_bytes: u64) -> Result<u64> {
    let Opened { cache, _directory } = volume.open()?;
    let value = random::filler(2, value_bytes as usize);
    for key in 0..PROBES {
        volume.extras.put(&cache, key, &value)?;
    }
    let stats = cache.stats()?;
    if stats.entries == 0 {
        return Err(Error::Invalid("a new volume kept none of the entries put".to_owned()));
    }
    Ok(stats.data_bytes / (stats.live_bytes / stats.entries))
}
