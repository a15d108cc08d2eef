//! Steps: the index gets one bucket more or one fewer, so that it has the slots that entries of the present sizes
//! need.
//!
//! ```text
//!   a stripe's data    [ main ring                | small ring           | void | buckets ]
//!                                                                               <-- one more: split
//!                                                                               --> one fewer: merged
//! ```
//!
//! Every stripe always has some buckets. Further ones lie in the small ring, from its end downwards. The bytes for
//! them are taken from the ring's next lap, which ends earlier ([`Ring::set_end`](super::ring::Ring)). The bytes that
//! they leave are given to its next lap. Main isn't touched.
//!
//! Each put makes a few steps, so that no put waits for all of them. `docs/invariants.md`, X1 to X8, says why readers
//! find every entry meanwhile.

use std::ptr;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Release;

use super::index::{GHOST, VOID};
use super::ring::Ring;
use super::{
    BUCKETS, BUCKETS_CHECK, Count, ENDS, ENDS_CHECK, Ends, GOAL, MOVES, RingId, STEP, SURE, Stripe, Word, count, load,
    store, store_slot,
};
use crate::format::buckets::Buckets;
use crate::format::hash::Place;
use crate::format::layout::{BUCKET_BYTES, LEAST_OF_SMALL, Layout};
use crate::format::slot::Slot;
use crate::protocol;
use crate::seam;

/// The goal is recomputed once in this many puts,
const LOOKS_EVERY: u64 = 64;
/// and by every put of at least this many bytes. It costs little in comparison, and there are few large entries.
const LOOK_BYTES: u64 = 4 << 10;
/// For a ring with fewer entries than this, the mean size of all entries is used.
const ENTRIES_MIN: u64 = 32;
/// A put makes a step. It makes more of them, by their cost, for each time it has this many bytes. A stripe whose
/// entries become larger has fewer puts in which to give back the buckets that it no longer needs.
const BYTES_PER_COST: u64 = 512;
const COST_MAX: u64 = 512;
/// The cost of a step that looks only at entries of its bucket, and the cost of each other entry, which lies anywhere
/// in memory.
const STEP_COST: u64 = 1;
const LOOK_COST: u64 = 2;
/// The goal has one in this many buckets to spare. It isn't lowered for less than twice that.
const SPARE: u64 = 32;

impl<'a> Stripe<'a> {
    /// Makes some steps towards the goal. Each put of `bytes` bytes calls this.
    #[inline]
    pub(crate) fn step_a_little(&self, bytes: u64) {
        // Not by the serial, which stands still while entries are copied from another volume.
        let is_due = count(self.volume, self.number, Count::Puts).is_multiple_of(LOOKS_EVERY);
        if is_due || bytes >= LOOK_BYTES {
            self.set_goal();
        }
        let (count, goal) = (self.buckets().count(), self.goal());
        if count != goal {
            self.step_towards(goal, (bytes / BYTES_PER_COST).clamp(1, COST_MAX));
        }
    }

    /// How many buckets there should be.
    pub(crate) fn goal(&self) -> u64 {
        let layout = &self.volume.layout;
        self.goal_word().load(std::sync::atomic::Ordering::Relaxed).clamp(layout.buckets, layout.buckets_max)
    }

    fn goal_word(&self) -> &'a AtomicU64 {
        &self.read_line[GOAL]
    }

    #[cold]
    fn step_towards(&self, goal: u64, mut budget: u64) {
        // Entries that aren't tiled yet were found through slots where these are. A ring that must be emptied has no
        // ends. With a damaged count, buckets would be made of records.
        if self.has_untiled() || self.must_reset(RingId::Small) || !self.is_count_intact() {
            return;
        }
        while budget > 0 {
            let cost = match self.buckets().count() {
                count if count < goal => self.split(),
                count if count > goal => self.merge(),
                _ => None,
            };
            // Nothing is moved by slots that were lost.
            let Some(cost) = cost.filter(|_| !self.volume.has_failed()) else { return };
            budget = budget.saturating_sub(cost);
        }
    }

    /// Sets the goal to what the entries need now. A full ring would hold as many entries as its bytes divided by
    /// their mean size. Counts that a death has left wrong are wrong by one operation (L7), which doesn't change the
    /// mean.
    fn set_goal(&self) {
        let (entries, bytes) = (self.get(Word::Entries), self.get(Word::LiveBytes));
        let (of_main, bytes_of_main) = (self.get(Word::MainEntries), self.get(Word::MainBytes));
        let (of_small, bytes_of_small) = (entries.saturating_sub(of_main), bytes.saturating_sub(bytes_of_main));
        if entries < ENTRIES_MIN || bytes < entries {
            return;
        }
        let layout = &self.volume.layout;
        let mean = |entries: u64, bytes_of: u64| {
            if entries < ENTRIES_MIN { (bytes / self.get(Word::Entries)).max(1) } else { (bytes_of / entries).max(1) }
        };
        let small = layout.small - layout.bytes_taken(self.buckets().count());
        let fit = layout.main / mean(of_main, bytes_of_main) + small / mean(of_small, bytes_of_small);
        let wanted = Layout::buckets_for(fit);
        let goal = self.goal();
        let (more, fewer) = (wanted > goal, wanted + wanted / (SPARE / 2) < goal);
        if more || fewer {
            self.goal_word().store(wanted + wanted / SPARE, Release);
        }
    }

    /// Where the next lap of a ring should end: it gets all that the index leaves.
    pub(super) fn end_wanted(&self, ring: &Ring<'_>) -> u64 {
        let layout = &self.volume.layout;
        match ring.id {
            RingId::Main => ring.size,
            RingId::Small => layout.small - layout.bytes_taken(self.buckets().count().max(self.goal())),
        }
    }

    /// The largest entry for the small ring.
    pub(crate) fn largest_for_small(&self) -> u64 {
        self.volume.layout.largest_for_small(self.end_wanted(&self.ring(RingId::Small)))
    }

    /// Moves the end of the head's lap to where it should be, as far as it may be moved.
    pub(super) fn move_end(&self, ring: &Ring<'_>) {
        if ring.id == RingId::Main || self.must_reset(ring.id) || self.has_untiled() {
            return;
        }
        let head = ring.head();
        let reached = (head % ring.size).next_multiple_of(BUCKET_BYTES);
        if reached <= ring.most {
            ring.set_end(ring.lap(head), self.end_wanted(ring).clamp(reached, ring.most));
        }
    }

    /// Whether the bytes of one more bucket belong to nobody: no lap of the log reaches them.
    fn has_room_for_bucket(&self, count: u64) -> bool {
        let layout = &self.volume.layout;
        let ring = self.ring(RingId::Small);
        let (first, last) = (ring.lap(ring.tail()), ring.lap(ring.head()));
        let reached = ring.end(first).max(ring.end(last));
        count < layout.buckets_max && reached + layout.bytes_taken(count + 1) <= ring.size
    }

    /// The number of the bucket that a step is about, plus one, from before the step's first store until after its
    /// last; otherwise 0.
    fn step_word(&self) -> &'a AtomicU64 {
        &self.read_line[STEP]
    }

    fn set_buckets(&self, buckets: Buckets) {
        store(&self.read_line[BUCKETS_CHECK], !buckets.word);
        seam::kill_point();
        protocol::make_step(&self.read_line[BUCKETS], buckets.word);
    }

    /// The place of a live slot's key, if there can be an entry.
    fn place_of_slot(&self, slot: Slot) -> Option<Place> {
        let (record, _, _) = self.entry_at(slot.position())?;
        // SAFETY: a live slot names it, and we hold the lock, so nobody reclaims it.
        Some(self.volume.place(unsafe { record.key() }))
    }

    /// Prefetches what the slots of a bucket name. Entries lie anywhere in memory, and waiting for one after the
    /// other would be most of the work.
    pub(super) fn prefetch_bucket(&self, line: &[AtomicU64; 8]) {
        for slot in line {
            let seen = Slot(load(slot));
            if let Some((offset, _)) =
                super::locate(self.volume, self.number, seen.position()).filter(|_| seen.is_live())
            {
                self.volume.region.prefetch(offset);
                self.volume.region.prefetch(offset + 64);
            }
        }
    }

    /// Adds a bucket, and returns the cost; `None` if there is no room for it yet.
    fn split(&self) -> Option<u64> {
        let before = self.buckets();
        if !self.has_room_for_bucket(before.count()) {
            return None;
        }
        let (number, after) = (before.count(), before.step_to(before.count() + 1));
        let (from, to) = (self.bucket(after.origin_of_last()), self.bucket(number));
        self.prefetch_bucket(from);
        store(self.step_word(), number + 1);
        let mut moved = [false; 8];
        for ((from, to), moved) in from.iter().zip(to).zip(&mut moved) {
            let seen = Slot(load(from));
            *moved = seen.is_live() && self.belongs_into_last(seen, after);
            // Nobody knows any more which of the two buckets the key of a ghost has, so both get it.
            let copied = *moved || seen.is_ghost();
            store(to, if copied { seen.0 } else { Slot::EMPTY.0 });
        }
        // Nothing may follow from bytes that were lost.
        if self.volume.has_failed() {
            return None;
        }
        self.set_buckets(after);
        for slot in from.iter().zip(moved).filter_map(|(slot, moved)| moved.then_some(slot)) {
            store_slot(slot, |_| Slot::EMPTY.0);
        }
        store(self.step_word(), 0);
        // One cost for all entries, since they were prefetched together.
        Some(STEP_COST + LOOK_COST)
    }

    /// Frees a slot if every slot of a key's buckets names an entry. A step of its own moves one of these entries to
    /// its other bucket.
    #[cold]
    pub(super) fn displace(&self, place: &Place) -> Option<&'a AtomicU64> {
        if self.has_untiled() || !self.is_count_intact() {
            return None;
        }
        let (buckets, stamp, memory) = (self.buckets(), self.get(Word::GhostClock), self.ghost_memory());
        let own = place.picks.map(|pick| buckets.of(pick));
        for bucket in own {
            self.prefetch_bucket(self.bucket(bucket));
        }
        let free =
            |bucket: u64| self.bucket(bucket).iter().find(|slot| self.worth(Slot(load(slot)), stamp, memory) <= GHOST);
        // The present pass of the sweep may have passed the other bucket already.
        if self.swept() < self.newest_purge() {
            for bucket in own {
                self.sweep_bucket(bucket);
            }
            if let Some(slot) = own.into_iter().find_map(free) {
                return Some(slot);
            }
        }
        let way_out = |bucket: u64, slot: &AtomicU64| {
            let other = self.place_of_slot(Slot(load(slot)))?.picks.map(|pick| buckets.of(pick));
            let is_its = other.contains(&bucket);
            other.into_iter().find(|other| *other != bucket).filter(|_| is_its).and_then(free)
        };
        let slots = own.into_iter().flat_map(|bucket| self.bucket(bucket).iter().map(move |slot| (bucket, slot)));
        let (bucket, slot, target) =
            slots.into_iter().find_map(|(bucket, slot)| Some((bucket, slot, way_out(bucket, slot)?)))?;
        // Nothing is moved by slots that were lost.
        if self.volume.has_failed() {
            return None;
        }
        store(self.step_word(), bucket + 1);
        self.count_move();
        store_slot(target, |_| load(slot));
        self.set_buckets(buckets.step_to(buckets.count()));
        store_slot(slot, |_| Slot::EMPTY.0);
        store(self.step_word(), 0);
        Some(slot)
    }

    /// Whether a slot of the bucket that the last one was split from belongs into the last one.
    fn belongs_into_last(&self, slot: Slot, buckets: Buckets) -> bool {
        let Some(place) = self.place_of_slot(slot) else { return false };
        let of = place.picks.map(|pick| buckets.of(pick));
        of.contains(&(buckets.count() - 1)) && !of.contains(&buckets.origin_of_last())
    }

    /// Removes a bucket, and returns the cost. Entries without a slot in the other bucket of the merge go to their
    /// key's other bucket. If that is full, too, the coldest entry goes.
    fn merge(&self) -> Option<u64> {
        let before = self.buckets();
        let (number, after) = (before.count() - 1, before.step_to(before.count() - 1));
        if number < self.volume.layout.buckets {
            return None;
        }
        // The sweep has passed the other bucket already.
        if self.swept() < self.newest_purge() {
            self.sweep_bucket(number);
        }
        let home = before.origin_of_last();
        let (from, to) = (self.bucket(number), self.bucket(home));
        let live = from.iter().chain(to).filter(|slot| Slot(load(slot)).is_live()).count();
        // The keys are read only if not all entries fit.
        if live > to.len() {
            self.prefetch_bucket(from);
        }
        store(self.step_word(), number + 1);
        let (stamp, memory) = (self.get(Word::GhostClock), self.ghost_memory());
        let cheapest = |line: &'a [AtomicU64; 8]| {
            let worths = line.iter().map(|slot| (self.worth(Slot(load(slot)), stamp, memory), slot));
            worths.min_by_key(|(worth, _)| *worth)
        };
        let mut cost = STEP_COST;
        for source in from {
            let seen = Slot(load(source));
            let worth = self.worth(seen, stamp, memory);
            if worth <= VOID {
                continue;
            }
            let mut target = cheapest(to);
            if seen.is_live() && target.is_none_or(|(least, _)| least > GHOST) {
                cost += LOOK_COST;
                let other = self.place_of_slot(seen).map(|place| place.picks.map(|pick| after.of(pick)));
                let other = other.into_iter().flatten().find(|bucket| *bucket != home);
                let there = other.and_then(|bucket| cheapest(self.bucket(bucket)));
                target = [target, there].into_iter().flatten().min_by_key(|(least, _)| *least);
            }
            let (slot, word) = match target {
                Some((least, slot)) if least < worth => (slot, seen.0),
                _ => (source, Slot::EMPTY.0),
            };
            if seen.is_live() && !to.iter().any(|home| ptr::eq(home, slot)) {
                self.count_move();
            }
            let out = Slot(store_slot(slot, |_| word));
            if out.is_live() {
                cost += LOOK_COST;
                self.tally(Count::EvictionsIndex, 1);
                self.forget_position(out.position());
            }
        }
        if self.volume.has_failed() {
            return None;
        }
        self.set_buckets(after);
        for slot in from.iter().filter(|slot| Slot(load(slot)) != Slot::EMPTY) {
            store_slot(slot, |_| Slot::EMPTY.0);
        }
        store(self.step_word(), 0);
        Some(cost)
    }

    /// Cleans up after a death in a step. Bytes that were to be a bucket, or were one, may keep no slot. Otherwise a slot
    /// could bring back an entry that was overwritten since: after power loss, its page may be older than the word
    /// that makes it a bucket.
    pub(super) fn clear_unused_bucket(&self) {
        let (number, buckets) = (load(self.step_word()), self.buckets());
        if (buckets.count() + 1..=self.volume.layout.buckets_max).contains(&number) {
            for slot in self.bucket(number - 1) {
                store(slot, 0);
            }
        }
    }

    /// The first bucket that, after power loss, may hold slots from before an earlier one.
    fn sure_word(&self) -> &'a AtomicU64 {
        &self.read_line[SURE]
    }

    /// Called after power loss. The bytes behind the last bucket may have been buckets, too, whose slots nobody
    /// clears. So a bucket that is split off there from now on isn't sure before a sync. If power is lost once more,
    /// it goes.
    pub(super) fn take_sure_buckets(&self) {
        self.clear_unused_bucket();
        let (now, sure) = (self.buckets(), load(self.sure_word()).max(self.volume.layout.buckets));
        if sure < now.count() {
            self.set_buckets(now.step_to(sure));
        }
        store(self.step_word(), 0);
        store(self.sure_word(), self.buckets().count());
    }

    /// Notes that this many buckets are in storage as they are, or were a moment ago.
    pub(crate) fn are_sure(&self, count: u64) {
        let sure = self.sure_word();
        if load(sure) < count {
            store(sure, count);
        }
    }

    /// Cleans up after a death in a step. Two slots may name an entry of the step's bucket, of the last bucket, or of
    /// the one that the last was split from.
    pub(super) fn finish_step(&self) {
        let Some(number) = load(self.step_word()).checked_sub(1) else { return };
        self.clear_unused_bucket();
        let buckets = self.buckets();
        let (last, home) = (buckets.count() - 1, buckets.origin_of_last());
        // If the bytes that name the twins were lost, the process that opens the file next clears them.
        if self.volume.has_failed() {
            return;
        }
        for slot in self.bucket(home) {
            let seen = Slot(load(slot));
            if seen.is_live() && self.belongs_into_last(seen, buckets) {
                store_slot(slot, |_| Slot::EMPTY.0);
            }
        }
        for slot in [last, number.min(last)].into_iter().flat_map(|bucket| self.bucket(bucket)) {
            let seen = Slot(load(slot));
            let Some(place) = self.place_of_slot(seen).filter(|_| seen.is_live()) else { continue };
            for (twin, _) in self.slots_of(&place, seen.position()).filter(|(twin, _)| !ptr::eq(*twin, slot)) {
                store_slot(twin, |_| Slot::EMPTY.0);
            }
        }
        if !self.volume.has_failed() {
            store(self.step_word(), 0);
        }
    }

    /// Counts a move of an entry to a bucket that the order of a [`Walk`](super::Walk) may have passed. Called before
    /// the move.
    fn count_move(&self) {
        let moves = &self.volume.region.word(self.base + MOVES);
        store(moves, load(moves).wrapping_add(1));
    }

    /// Whether the count of buckets matches its complement.
    fn is_count_intact(&self) -> bool {
        let [buckets, _, buckets_check, _] = self.index_words().map(load);
        buckets == !buckets_check
    }

    /// Whether the words that describe the index are possible.
    pub(super) fn is_index_sound(&self) -> bool {
        let [buckets, ends, buckets_check, ends_check] = self.index_words().map(load);
        let ring = self.ring(RingId::Small);
        let is_end = |lap: u64| {
            let bytes = Ends(ends).of(lap);
            (ring.size / LEAST_OF_SMALL..=ring.most).contains(&bytes)
        };
        buckets == !buckets_check
            && ends == !ends_check
            && Buckets::checked(buckets, &self.volume.layout).is_within_bounds()
            && is_end(ring.lap(ring.tail()))
            && is_end(ring.lap(ring.head()))
    }

    /// Repairs the words after a death between the stores of a complement and its word: the word is right.
    pub(super) fn mend_index(&self) {
        let [buckets, ends, buckets_check, ends_check] = self.index_words();
        let [now, next] = [load(buckets), !load(buckets_check)].map(|word| Buckets::checked(word, &self.volume.layout));
        if now.steps().wrapping_add(1) as u32 == next.steps() as u32 && next.is_within_bounds() {
            store(buckets_check, !now.word);
        }
        // The end of one lap was about to change.
        let differs = load(ends) ^ !load(ends_check);
        if differs != 0 && (differs as u32 == 0 || differs >> u32::BITS == 0) {
            store(ends_check, !load(ends));
        }
    }

    /// Trusts words that differ from their complements if they are possible. Returns false if nobody knows where the
    /// buckets are.
    pub(super) fn mend_complements(&self) -> bool {
        let [buckets, ends, buckets_check, ends_check] = self.index_words();
        if Buckets::checked(load(buckets), &self.volume.layout).is_within_bounds() {
            store(buckets_check, !load(buckets));
            store(ends_check, !load(ends));
        }
        self.is_index_sound()
    }

    /// Gives an empty stripe the buckets that it always has, and the small ring the rest. No slot stays where a
    /// bucket was.
    pub(super) fn empty_index(&self) {
        let layout = &self.volume.layout;
        let count = if self.is_index_sound() { self.buckets().count() } else { layout.buckets_max };
        for slot in (0..count).flat_map(|bucket| self.bucket(bucket)) {
            store(slot, 0);
        }
        let [buckets, ends, buckets_check, ends_check] = self.index_words();
        let fresh = self.buckets().step_to(layout.buckets);
        let both = Ends::both(layout.small - layout.bytes_taken(layout.buckets));
        for (word, value) in
            [(buckets_check, !fresh.word), (buckets, fresh.word), (ends_check, !both.0), (ends, both.0)]
        {
            store(word, value);
        }
        store(self.step_word(), 0);
        // Power loss may have left slots behind the last bucket that was counted.
        store(self.sure_word(), layout.buckets);
    }

    fn index_words(&self) -> [&'a AtomicU64; 4] {
        [BUCKETS, ENDS, BUCKETS_CHECK, ENDS_CHECK].map(|word| &self.read_line[word])
    }
}
