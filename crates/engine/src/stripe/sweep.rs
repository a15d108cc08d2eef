//! A stripe's part of the sweep: dropping what purges have removed, and marking what they made stale.

use super::{Count, Stripe, Word, purge_verdict, store_slot};
use crate::format::slot::Slot;
use crate::format::times::Phase;
use crate::purge::Verdict;

impl Stripe<'_> {
    /// Sweeps one bucket if a purge was noted since the last complete pass. Each put calls this.
    #[inline]
    pub(crate) fn sweep_a_little(&self) {
        if self.swept() < self.newest_purge() {
            self.sweep_next();
        }
    }

    /// The epoch of the last purge, whatever it covered.
    pub(crate) fn newest_purge(&self) -> u64 {
        self.volume.purges().last()
    }

    /// Entries that were purged up to this epoch are gone from the stripe.
    pub(crate) fn swept(&self) -> u64 {
        self.ended(Word::Swept)
    }

    /// The epoch in a word, or 0 if it lies in the future. Such a word is damaged, or from before the epochs began
    /// again: a pass that was under way then says nothing about the purges since.
    fn ended(&self, word: Word) -> u64 {
        Some(self.get(word)).filter(|epoch| *epoch <= self.newest_purge()).unwrap_or(0)
    }

    /// The bucket at which the present pass continues; 0 if none is under way.
    pub(crate) fn sweep_stands_at(&self) -> u64 {
        self.get(Word::SweepBucket).min(self.buckets().count() - 1)
    }

    #[cold]
    fn sweep_next(&self) -> u64 {
        let bucket = self.sweep_stands_at();
        if bucket == 0 {
            self.set(Word::SweepEpoch, self.newest_purge());
        }
        let dropped = self.sweep_bucket(bucket);
        // With notes that were lost, nothing was swept.
        if self.volume.has_failed() {
            return dropped;
        }
        if bucket + 1 < self.buckets().count() {
            self.set(Word::SweepBucket, bucket + 1);
        } else {
            self.set(Word::Swept, self.ended(Word::SweepEpoch));
            self.set(Word::SweepBucket, 0);
        }
        dropped
    }

    /// Sweeps up to `count` more buckets of the passes that are needed until [`Stripe::swept`] has reached `epoch`.
    /// Returns how many entries it dropped, or `None` if nothing was left to do.
    pub(crate) fn sweep_for(&self, epoch: u64, count: u64) -> Option<u64> {
        // When epochs begin again, nothing that was purged before is left, and no pass reaches that epoch again.
        let is_needed = || self.swept() < epoch && epoch <= self.newest_purge();
        if !is_needed() {
            return None;
        }
        // The present pass may have begun before the purge; then another one follows.
        Some((0..count).map_while(|_| is_needed().then(|| self.sweep_next())).sum())
    }

    /// Notes that what was purged up to `swept` is gone, and that nothing else is known.
    pub(crate) fn begin_sweeps_anew(&self, swept: u64) {
        for word in [Word::SweepBucket, Word::SweepEpoch] {
            self.set(word, 0);
        }
        self.set(Word::Swept, swept);
    }

    /// Drops from one bucket what is gone, and returns how many entries that were.
    pub(crate) fn sweep_bucket(&self, bucket: u64) -> u64 {
        let mut dropped = 0;
        for slot in self.bucket(bucket) {
            let seen = Slot(super::load(slot));
            let Some((record, lengths, _)) = self.entry_at(seen.position()).filter(|_| seen.is_live()) else {
                continue;
            };
            // SAFETY: the entry is live, and we hold the lock, so nobody reclaims it.
            let verdict = unsafe { purge_verdict(self.volume, record) };
            let times = record.times();
            let count = match (verdict, times.phase(record.created_ms(), || self.volume.now_ms())) {
                (Verdict::Hard, _) => Count::EvictionsPurged,
                (_, Phase::Over) => Count::EvictionsExpired,
                // Also for an entry that has expired: it may still be fresh for a process whose clock is behind.
                (Verdict::Soft, _) if times.fresh_for() != Some(0) => {
                    // What a damaged slot names may lie in the middle of another entry's value.
                    if self.may_write(seen.position()) && self.proven_place(seen.position(), record).is_some() {
                        record.set_times(times.staled());
                    }
                    continue;
                }
                _ => continue,
            };
            store_slot(slot, |_| Slot::EMPTY.0);
            self.forget(seen.position(), lengths.record_bytes());
            self.erase_dead(seen.position());
            self.tally(count, 1);
            dropped += 1;
        }
        dropped
    }
}
