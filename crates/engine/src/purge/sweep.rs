//! The sweep: looks at every entry once for each purge, drops what is gone, and marks what is stale. After that the
//! notes of purges can be forgotten, and the bytes of the entries be used again.
//!
//! Each put sweeps one bucket of its stripe while there is something to sweep. [`sweep`] goes through the whole
//! volume. A note is forgotten only after the drops for it have reached storage. Otherwise a power loss could bring
//! an entry back whose purge is already forgotten.

use std::sync::atomic::Ordering::{Acquire, SeqCst};

use crate::error::{Error, Result};
use crate::format::purges::{Cell, Floors, Purges};
use crate::stripe::Stripe;
use crate::volume::Volume;

/// How many buckets are swept before the lock is released.
const BUCKETS_AT_ONCE: u64 = 256;

/// Sweeps the whole volume and forgets the purges that this covers. Returns how many entries were dropped. Ends early once `goes_on` says no.
pub(crate) fn sweep(volume: &Volume, goes_on: &impl Fn() -> bool) -> Result<u64> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    finish_for_the_dead(volume)?;
    let mut dropped = 0;
    for number in 0..volume.layout.stripes as usize {
        dropped += sweep_stripe(volume, number, goes_on)?;
    }
    if goes_on() && has_notes(volume.purges()) {
        sync(volume)?;
    }
    Ok(dropped)
}

/// A process that died during a purge may have left a note about the present epoch. That epoch must end before
/// anybody looks at entries. If the next holder of the lock ended it after the sweep, there would be entries that are
/// gone and that the sweep did not drop.
fn finish_for_the_dead(volume: &Volume) -> Result<()> {
    match super::PurgeLock::acquire(volume) {
        // A living process is purging; the next sweep covers its note.
        Err(Error::Busy { .. }) => Ok(()),
        other => other.map(drop),
    }
}

fn sweep_stripe(volume: &Volume, number: usize, goes_on: &impl Fn() -> bool) -> Result<u64> {
    let wanted = volume.purges().last();
    let mut dropped = 0;
    let mut swept = false;
    let stood_at = Stripe::lock(volume, number)?.sweep_stands_at();
    while goes_on()
        && let Some(more) = Stripe::lock(volume, number)?.sweep_for(wanted, BUCKETS_AT_ONCE)
    {
        dropped += more;
        swept = true;
    }
    // Expired entries are dropped, too, whether or not anything was purged. A pass under way may already have been
    // past them, so its first buckets are looked at again.
    let buckets = if swept { stood_at } else { u64::MAX };
    let mut first = 0;
    while goes_on() {
        let stripe = Stripe::lock(volume, number)?;
        let buckets = buckets.min(stripe.buckets().count());
        if first >= buckets {
            break;
        }
        let end = (first + BUCKETS_AT_ONCE).min(buckets);
        dropped += (first..end).map(|bucket| stripe.sweep_bucket(bucket)).sum::<u64>();
        first = end;
    }
    Ok(dropped)
}

fn has_notes(purges: Purges<'_>) -> bool {
    purges.last() > purges.retired()
}

/// Writes everything to storage, then forgets the purges that no entry needs any more.
pub(crate) fn sync(volume: &Volume) -> Result<()> {
    volume.check_writable()?;
    // Everything that was swept before this is on storage afterwards.
    let swept = swept_by_all(volume)?;
    volume.see_time();
    let stripes = 0..volume.layout.stripes as usize;
    let buckets: Vec<u64> = stripes.clone().map(|stripe| volume.buckets(stripe).count()).collect();
    volume.sync_all()?;
    for (stripe, count) in stripes.zip(buckets) {
        Stripe::lock(volume, stripe)?.are_sure(count);
    }
    retire(volume, swept)
}

/// The last epoch for whose purges every stripe was swept.
fn swept_by_all(volume: &Volume) -> Result<u64> {
    let mut least = u64::MAX;
    for number in 0..volume.layout.stripes as usize {
        least = least.min(Stripe::lock(volume, number)?.swept());
    }
    // A damaged word may hold any number.
    Ok(least.min(volume.purges().last()))
}

/// Forgets the purges up to an epoch.
fn retire(volume: &Volume, swept: u64) -> Result<()> {
    let purges = volume.purges();
    if swept <= purges.retired() {
        return Ok(());
    }
    let _lock = match super::PurgeLock::acquire(volume) {
        // Another process does the same, or purges; the next sync will forget these.
        Err(Error::Busy { .. }) => return Ok(()),
        other => other?,
    };
    // If the epochs have begun again meanwhile, none of the present notes was swept for.
    if swept > purges.last() {
        return Ok(());
    }
    // Before any note goes: a reader that misses one finds this.
    purges.set_retired(swept.max(purges.retired()));
    let mut newest = 0;
    for rule in purges.rules() {
        match rule.load() {
            Some((_, noted)) if u64::from(noted.epoch) <= swept => rule.clear(),
            Some((_, noted)) => newest = newest.max(u64::from(noted.epoch)),
            None => {}
        }
    }
    purges.set_newest_rule(newest);
    for line in 0..volume.layout.tag_lines {
        let [floors, cells @ ..] = volume.tag_line(line);
        for cell in cells {
            let now = cell.load(Acquire);
            if now != 0 && u64::from(Cell(now).noted().epoch) <= swept {
                cell.store(0, SeqCst);
            }
        }
        // Otherwise readers could never again skip a bucket that was full once.
        let floor = Floors(floors.load(Acquire));
        if u64::from(floor.hard().max(floor.soft())) <= swept {
            floors.store(0, SeqCst);
        }
        super::renew_filter(volume, line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::format::purges::{EPOCHS, Purge};
    use crate::options::Options;
    use crate::put::PutOptions;

    /// A volume that has used all of its epochs.
    fn old() -> Cache {
        let cache = Options::new().heap().unwrap();
        cache.volume().purges().set_epoch(EPOCHS);
        cache
    }

    fn put_and_purge(cache: &Cache) {
        cache.put_with("key", "value", &PutOptions::new().tags(&["tag"])).unwrap();
        cache.purge_tag("tag", Purge::Hard).unwrap();
        assert!(cache.get("key").unwrap().is_none());
    }

    #[test]
    fn a_sweep_that_is_stopped_is_still_wanted() {
        let cache = Options::new().size(4 << 20).heap().unwrap();
        while !cache.wants_sweep() {
            put_and_purge(&cache);
        }
        assert_eq!(cache.sweep_while(|| false).unwrap(), 0);
        assert!(cache.wants_sweep());
        cache.sweep().unwrap();
        assert!(!cache.wants_sweep());
    }

    #[test]
    fn a_sweep_ends_if_epochs_begin_again_meanwhile() {
        let cache = old();
        let wanted = cache.volume().purges().last();
        let sweep_some = || Stripe::lock(cache.volume(), 0).unwrap().sweep_for(wanted, 1);
        assert_eq!(sweep_some(), Some(0));
        put_and_purge(&cache);
        assert!(cache.volume().purges().epoch() < wanted, "the epochs have begun anew");
        assert_eq!(sweep_some(), None);
    }

    #[test]
    fn a_sweep_before_epochs_began_again_says_nothing_about_later_purges() {
        for buckets in [1, u64::MAX] {
            let cache = old();
            let volume = cache.volume();
            // While the volume is written to storage before the epochs begin again, other processes continue and
            // sweep.
            for number in 0..volume.layout.stripes as usize {
                let stripe = Stripe::lock(volume, number).unwrap();
                stripe.begin_sweeps_anew(0);
                stripe.sweep_for(EPOCHS - 1, buckets);
            }
            super::super::forget_all(volume);
            put_and_purge(&cache);
            // The pass that was under way ends.
            for number in 0..volume.layout.stripes as usize {
                let stripe = Stripe::lock(volume, number).unwrap();
                stripe.sweep_for(1, stripe.buckets().count() - 1);
                assert_eq!(stripe.swept(), 0);
            }
            cache.sync().unwrap();
            assert_eq!(volume.purges().retired(), 0);
            cache.sweep().unwrap();
            assert_eq!(volume.purges().retired(), 1);
            assert!(cache.get("key").unwrap().is_none());
        }
    }

    #[test]
    fn filters_say_no_again_once_the_notes_are_forgotten() {
        let cache = Options::new().size(512 << 10).heap().unwrap();
        let filters = || cache.volume().tag_filters().iter().map(|filter| filter.load(Acquire)).collect::<Vec<_>>();
        // More tags than the table has cells. This raises floors, which let everything through.
        for number in 0..200 {
            cache.purge_tag(&format!("tag {number}"), Purge::Hard).unwrap();
        }
        assert!(filters().contains(&u32::MAX) && cache.stats().unwrap().purge_overflows > 0);
        cache.put_with("key", "value", &PutOptions::new().tags(&["tag 7"])).unwrap();
        cache.sweep().unwrap();
        assert!(filters().iter().all(|filter| *filter == 0));
        cache.purge_tag("tag 7", Purge::Hard).unwrap();
        assert!(cache.get("key").unwrap().is_none());
    }

    #[test]
    fn a_sync_that_began_before_the_epochs_did_forgets_none_of_their_purges() {
        let cache = old();
        put_and_purge(&cache);
        retire(cache.volume(), EPOCHS - 1).unwrap();
        assert!(cache.get("key").unwrap().is_none());
    }
}
