//! The volume, as the engine's statistics tell it: over all processes that have it open, and since it was created.

use super::families;
use super::page::Page;
use super::scrape::alone;
use crate::serve::shared::Shared;

/// Adds the metrics of the volume. If it has failed, there is one only.
pub(super) fn write(page: &mut Page, shared: &Shared) {
    let stats = (!shared.pages.store.has_failed()).then(|| shared.cache.stats().ok()).flatten();
    alone(page, &families::VOLUME_FAILED, u8::from(shared.pages.store.has_failed()));
    let scrubs = &shared.metrics.scrubs;
    alone(page, &families::SCRUBBED, scrubs.bytes.get());
    alone(page, &families::SCRUB_DROPPED, scrubs.dropped.get());
    // It may be busy for too long.
    let Some(stats) = stats else { return };
    alone(page, &families::VOLUME_SIZE, stats.size_bytes);
    alone(page, &families::VOLUME_DATA, stats.data_bytes);
    alone(page, &families::VOLUME_LIVE, stats.live_bytes);
    alone(page, &families::VOLUME_ENTRIES, stats.entries);
    let free = stats.index_slots.saturating_sub(stats.index_live).saturating_sub(stats.index_ghosts);
    let mut index = page.family(&families::VOLUME_INDEX);
    for (state, slots) in [("live", stats.index_live), ("ghost", stats.index_ghosts), ("free", free)] {
        index.add(&[state], slots);
    }
    let mut lookups = page.family(&families::VOLUME_LOOKUPS);
    lookups.add(&["hit"], stats.hits);
    lookups.add(&["miss"], stats.misses);
    alone(page, &families::VOLUME_PUTS, stats.puts);
    alone(page, &families::VOLUME_REFUSED, stats.pinned_refusals);
    alone(page, &families::VOLUME_BUSY, stats.busy);
    let mut evictions = page.family(&families::VOLUME_EVICTIONS);
    for (reason, count) in [
        ("cold", stats.evictions_cold),
        ("expired", stats.evictions_expired),
        ("index", stats.evictions_index),
        ("damaged", stats.evictions_damaged),
        ("purged", stats.evictions_purged),
    ] {
        evictions.add(&[reason], count);
    }
    alone(page, &families::VOLUME_EVICTION_AGE, stats.eviction_age_ms as f64 / 1e3);
    let mut written = page.family(&families::VOLUME_WRITTEN);
    written.add(&["put"], stats.bytes_written);
    written.add(&["copy"], stats.bytes_copied);
    alone(page, &families::VOLUME_PINS, stats.pins);
    alone(page, &families::VOLUME_PURGES, stats.purges);
    alone(page, &families::VOLUME_OVERFLOWS, stats.purge_overflows);
    alone(page, &families::VOLUME_REPAIRS, stats.repairs);
    alone(page, &families::VOLUME_RESETS, stats.resets);
    alone(page, &families::VOLUME_PROCESSES, stats.processes);
    if let Some(tier) = stats.tier {
        alone(page, &families::TIER_LIVE, tier.live_bytes);
        alone(page, &families::TIER_HITS, tier.hits);
        alone(page, &families::TIER_EVICTIONS, tier.evictions);
    }
}
