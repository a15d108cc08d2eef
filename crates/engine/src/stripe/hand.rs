//! The hand: makes room at a ring's head by letting go of what lies at its tail.
//!
//! It **plans** first. It reads only headers, to find the next run that is long enough and held by nobody. If there
//! is none, it evicts nothing, and the put is refused as `Pinned`. Otherwise it works in batches: it clears slots,
//! scans the pins once, and frees what no reader holds.
//!
//! Entries earn their stay by hits. Hot entries of the small ring move to main, and hot entries of main are copied to
//! its head. Entries that are too large to be copied stay in place ([`Stripe::skip`]).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::ring::{Damaged, Ring, Seen};
use super::{Count, RingId, Stripe, Word, entry_at, purge_verdict, set_wants_copies, store_slot, verify_entry};
use crate::error::{Error, Result};
use crate::format::hash::{self, Place};
use crate::format::record::{Head, Record};
use crate::format::slot::Slot;
use crate::format::times::Phase;
use crate::paging;
use crate::policy;
use crate::protocol;
use crate::purge::Verdict;
use crate::thread;
use crate::volume::Volume;

/// A batch ends after this many records,
const BATCH_RECORDS: usize = 8;
/// or after this many bytes, or after 1/64 of the ring.
const BATCH_BYTES: u64 = 64 << 10;
/// Main keeps this much free ahead (at most 1/16 of it), so that there is room to copy hot entries to.
const RESERVE_BYTES: u64 = 128 << 10;
/// Main is sparse if more than one in this many of its bytes is dead.
const SPARSE: u64 = 16;
/// A newcomer to main has lost once it has met hot entries of this part of its own bytes.
const LOST_AT: (u64, u64) = (2, 3);
/// How much one put may copy, unless four times its size is more.
const COPY_BYTES: u64 = 256 << 10;

/// What one put may cost, and what it has found out so far.
#[derive(Debug)]
pub(crate) struct Work {
    copy_budget: u64,
    stayed: u64,
    now_ms: Option<u64>,
    /// Positions (units) of this stripe that readers and writers hold, sorted.
    pins: Vec<u64>,
    buried: bool,
    /// Of a newcomer to main: how many bytes of hot entries it may still meet before it has lost.
    rival: Option<u64>,
    /// The put gives back as much of main as it takes: it replaces an entry there.
    pub(crate) gives_back: bool,
}

impl Work {
    /// The budget of a put of `bytes` bytes.
    pub(crate) fn new(bytes: u64) -> Self {
        Self {
            copy_budget: COPY_BYTES.max(4 * bytes),
            stayed: 0,
            now_ms: None,
            pins: Vec::new(),
            buried: false,
            rival: None,
            gives_back: false,
        }
    }

    /// A hot entry of main stood in the way.
    fn met_hot(&mut self, bytes: u64) {
        self.rival = self.rival.map(|left| left.saturating_sub(bytes));
    }

    fn has_lost(&self) -> bool {
        self.rival == Some(0)
    }

    fn now_ms(&mut self, volume: &Volume) -> u64 {
        *self.now_ms.get_or_insert_with(|| volume.now_ms())
    }

    fn is_pinned(&self, position: u64) -> bool {
        self.pins.binary_search(&position).is_ok()
    }
}

/// What to do with the record at the tail.
enum Step<'a> {
    /// It can go as soon as no reader holds it.
    Free,
    /// Somebody needs it where it is.
    Held,
    /// It is hot, and there is not enough room to copy it.
    Stays(&'a AtomicU64),
}

impl<'a> Stripe<'a> {
    /// Makes `bytes` contiguous bytes free at the head of a ring, and returns their virtual offset.
    ///
    /// # Errors
    /// `Pinned` if readers hold too much; nothing was evicted then. Also if a newcomer has lost; others may have been evicted then.
    pub(crate) fn make_room(&mut self, id: RingId, bytes: u64, work: &mut Work) -> Result<u64> {
        self.tile_a_little();
        self.finish_reset(id)?;
        let ring = self.ring(id);
        self.move_end(&ring);
        let ahead = ahead(&ring);
        // To fill the reserve alone, a put works on one batch at most.
        if !ring.has_room(bytes, ahead) {
            self.read_ahead_of(&ring, bytes);
            let mut rounds = 0_u32;
            loop {
                self.work_once(&ring, bytes, ahead, work).map_err(|stop| self.stopped(id, bytes, stop))?;
                self.volume.check_intact()?;
                if work.has_lost() {
                    return Err(Error::Pinned { bytes });
                }
                if ring.has_room(bytes, 0) {
                    break;
                }
                rounds += 1;
                if rounds > 1 << 20 {
                    return Err(self.stopped(id, bytes, Stop::Pinned));
                }
            }
        }
        self.take(&ring, bytes).ok_or_else(|| self.stopped(id, bytes, Stop::Pinned))
    }

    /// Makes room in main for a newcomer that was asked for before, unless main's tail is hot. Then the hand goes on by
    /// that many bytes, and the newcomer has to be content with the small ring. So a loop over more than fits doesn't
    /// wash out of main what is hit there, and what is hit no longer goes. It may copy half of what the put may copy,
    /// so that the small ring's hot entries can still move.
    pub(crate) fn win_room(&mut self, bytes: u64, work: &mut Work) -> Option<u64> {
        let kept = work.copy_budget / 2;
        work.copy_budget -= kept;
        work.rival = Some((bytes * LOST_AT.0 / LOST_AT.1).max(1));
        let room = self.make_room(RingId::Main, bytes, work).ok();
        work.rival = None;
        work.copy_budget += kept;
        room
    }

    fn stopped(&self, id: RingId, bytes: u64, stop: Stop) -> Error {
        if matches!(stop, Stop::Damaged) {
            self.demand_reset(id);
        }
        Error::Pinned { bytes }
    }

    /// Makes one plan, then one skip or one batch.
    fn work_once(&mut self, ring: &Ring<'a>, bytes: u64, ahead: u64, work: &mut Work) -> std::result::Result<(), Stop> {
        self.collect_pins(work, false);
        let mut plan = self.plan(ring, bytes, work);
        let obstructed = !matches!(plan, Ok(start) if start == ring.tail());
        if obstructed && !work.buried && self.bury_holders(work) {
            plan = self.plan(ring, bytes, work);
        }
        let start = match plan {
            Err(Stop::Damaged) => return self.reset_now(ring.id),
            other => other?,
        };
        if start != ring.tail() {
            self.skip(ring, start);
            return Ok(());
        }
        match self.evict_batch(ring, bytes, ahead, work) {
            Err(Damaged) => self.reset_now(ring.id),
            Ok(()) => Ok(()),
        }
    }

    /// Drops a log that can't be read as one, as a whole. If readers still hold bytes of it, that waits until they
    /// are gone.
    fn reset_now(&mut self, id: RingId) -> std::result::Result<(), Stop> {
        self.demand_reset(id);
        self.finish_reset(id).map_err(|_| Stop::Damaged)
    }

    /// The old-lap offset from which the next `bytes` bytes can be freed. It is the tail itself, or the end of
    /// something that has to stay.
    fn plan(&self, ring: &Ring<'a>, bytes: u64, work: &Work) -> std::result::Result<u64, Stop> {
        let (log_end, tail) = (ring.head(), ring.tail());
        let (mut start, mut head, mut first_held) = (tail, log_end, None);
        let mut at = tail;
        let needed = |head, held: Option<u64>| match held {
            None => ring.tail_needed(head, bytes),
            Some(_) => ring.tail_needed_behind_skip(head, bytes),
        };
        while at < needed(head, first_held) {
            if at >= log_end {
                // After the log come the filler of the skip and, once more, what lies before the first held record.
                let end = first_held.map_or(log_end, |held| held + ring.size);
                return if needed(head, first_held) <= end { Ok(start) } else { Err(Stop::Pinned) };
            }
            let seen = self.read(ring, at, log_end).map_err(|Damaged| Stop::Damaged)?;
            if is_held(ring, at, &seen, work) {
                first_held.get_or_insert(at);
                start = at + seen.bytes;
                head = start + ring.size;
            }
            at += seen.bytes;
        }
        Ok(start)
    }

    /// Lets go of up to one batch of records, starting at the tail.
    fn evict_batch(
        &mut self,
        ring: &Ring<'a>,
        bytes: u64,
        ahead: u64,
        work: &mut Work,
    ) -> std::result::Result<(), Damaged> {
        let tail = ring.tail();
        let log_end = ring.head();
        let batch = BATCH_BYTES.min(ring.size / 64);
        let enough = ring.tail_needed(log_end, bytes) + ahead + batch;
        self.prefetch_batch(ring, (tail, enough.min(log_end)))?;
        let (mut at, mut count, mut stays) = (tail, 0, None);
        // What the put needs goes in one batch: planning again after every few records would be quadratic.
        let needed = ring.tail_needed(log_end, bytes);
        while at < enough && at < log_end && (at < needed || count < BATCH_RECORDS) {
            let seen = self.read(ring, at, log_end)?;
            match self.let_go(ring, at, &seen, work) {
                Step::Free => {}
                Step::Held => break,
                Step::Stays(slot) => {
                    stays = Some((slot, at + seen.bytes));
                    break;
                }
            }
            at += seen.bytes;
            count += 1;
            if work.has_lost() {
                break;
            }
        }
        // If other records lie before it, it is looked at again once their bytes are free to copy it to.
        if let (Some((slot, end)), true) = (stays, at == tail) {
            // A skip loses the free bytes before it for a lap. As long as puts fit into them, they go there. Newcomers
            // that have lost go elsewhere, and cost it a hit only once they are as large together as it is.
            let costs_a_hit = if work.has_lost() {
                policy::is_due(self.get(Word::Serial), bytes, end - tail)
            } else {
                !ring.has_room(bytes, 0)
            };
            if costs_a_hit {
                store_slot(slot, |word| {
                    let slot = Slot(word);
                    slot.with_frequency(policy::after_survival(slot.frequency())).0
                });
            }
            if costs_a_hit && !work.has_lost() {
                work.stayed += end - tail;
                self.skip(ring, end);
            }
            return Ok(());
        }
        self.free_up_to(ring, at, work)
    }

    /// Prefetches the index buckets of a batch. They lie anywhere in memory, and waiting for one after the other
    /// would be most of the hand's work.
    fn prefetch_batch(&self, ring: &Ring<'a>, (from, to): (u64, u64)) -> std::result::Result<(), Damaged> {
        let mut at = from;
        for _ in 0..BATCH_RECORDS {
            if at >= to {
                break;
            }
            let seen = self.read(ring, at, ring.head())?;
            if let Some(record) = seen.as_entry() {
                self.volume.prefetch_buckets(&self.place_of(record));
            }
            at += seen.bytes;
        }
        Ok(())
    }

    /// The place of the key of a record in the log.
    fn place_of(&self, record: Record<'a>) -> Place {
        // SAFETY: the record lies in the log, and we hold the lock, so nobody overwrites it.
        let key = unsafe { record.key() };
        hash::place(&self.volume.layout, hash::key_hash(&self.volume.secret, key))
    }

    /// Moves the tail over the records up to `end`, or up to the first one that a reader holds.
    fn free_up_to(&mut self, ring: &Ring<'a>, end: u64, work: &mut Work) -> std::result::Result<(), Damaged> {
        let log_end = ring.head();
        self.collect_pins(work, true);
        let tail = ring.tail();
        let mut at = tail;
        let mut filler = 0;
        while at < end {
            let seen = self.read(ring, at, log_end)?;
            match seen.head {
                Head::Filler(bytes) if !seen.is_void => filler += bytes,
                _ if is_held(ring, at, &seen, work) => break,
                _ => {}
            }
            at += seen.bytes;
        }
        // Lost pins hold nothing back, and a lost tail may be anywhere.
        if !self.volume.has_failed() {
            self.shift(Word::FillerBytes, 0, filler);
            self.erase_freed(ring, tail, at);
            ring.set_tail(at);
            self.read_ahead(ring, tail, at);
        }
        Ok(())
    }

    /// Decides about the record at `at`. If it can go, it loses its slot.
    fn let_go(&mut self, ring: &Ring<'a>, at: u64, seen: &Seen<'a>, work: &mut Work) -> Step<'a> {
        if is_held(ring, at, seen, work) {
            return Step::Held;
        }
        let position = ring.position(at);
        let Some(record) = seen.as_entry() else {
            self.forget_room(seen.head, position);
            return Step::Free;
        };
        let place = self.place_of(record);
        let mut slots = self.slots_of(&place, position);
        let Some((slot, now)) = slots.next() else { return Step::Free };
        // Only a damaged index names a record twice; the second slot would outlive the record.
        for (twin, _) in slots {
            store_slot(twin, |_| Slot::EMPTY.0);
        }
        let entry = Candidate { place, slot, now, position, record };
        if record.generation() != self.volume.generation()
            // SAFETY: the record lies in the log, and we hold the lock, so nobody overwrites it.
            && !unsafe { verify_entry(self.volume, &place, position, record, record.lengths()) }
        {
            self.drop_entry(&entry, seen, Slot::EMPTY, Count::EvictionsDamaged);
            return Step::Free;
        }
        if record.times().phase(record.created_ms(), || work.now_ms(self.volume)) == Phase::Over {
            self.drop_entry(&entry, seen, Slot::EMPTY, Count::EvictionsExpired);
            return Step::Free;
        }
        // SAFETY: as above.
        if unsafe { purge_verdict(self.volume, record) } == Verdict::Hard {
            self.drop_entry(&entry, seen, Slot::EMPTY, Count::EvictionsPurged);
            return Step::Free;
        }
        let mean = self.mean_entry_bytes();
        let hot = policy::is_hot(now.frequency(), seen.bytes, mean);
        let kept = match ring.id {
            RingId::Small if hot || policy::is_tiny(seen.bytes, mean) => self.promote(&entry, seen, work),
            RingId::Small => self.move_while_roomy(&entry, seen, work),
            RingId::Main if hot => {
                work.met_hot(seen.bytes);
                // If the hand only makes room of dead bytes, others don't compete for it, so the entry keeps its hits.
                let frequency = if work.gives_back || self.is_sparse() {
                    now.frequency()
                } else {
                    policy::after_survival(now.frequency())
                };
                self.reinsert(&entry, seen, frequency, work)
            }
            RingId::Main if policy::is_spared(seen.bytes, mean, place.hash ^ at) => {
                self.reinsert(&entry, seen, now.frequency(), work)
            }
            // Main is being compacted, so all live entries stay.
            RingId::Main => self.is_sparse() && self.reinsert(&entry, seen, now.frequency(), work),
        };
        if kept {
            return Step::Free;
        }
        // If it would fit, this put has copied enough, and a skip would give up more room than the entry takes. A newcomer that
        // has lost evicts nothing that is hot.
        if hot && (work.has_lost() || work.stayed < ring.size && ring.free() < seen.bytes) {
            return Step::Stays(slot);
        }
        let memory = match ring.id {
            RingId::Small => {
                self.shift(Word::GhostClock, 1, 0);
                Slot::ghost(&entry.place, self.get(Word::GhostClock))
            }
            RingId::Main => Slot::EMPTY,
        };
        let age = self.volume.now_ms().saturating_sub(record.created_ms());
        self.note(Count::EvictionAge, age);
        self.drop_entry(&entry, seen, memory, Count::EvictionsCold);
        Step::Free
    }

    pub(super) fn mean_entry_bytes(&self) -> u64 {
        self.get(Word::LiveBytes) / self.get(Word::Entries).max(1)
    }

    fn drop_entry(&self, entry: &Candidate<'a>, seen: &Seen<'a>, memory: Slot, count: Count) {
        store_slot(entry.slot, |_| memory.0);
        self.forget(entry.position, seen.bytes);
        self.tally(count, 1);
    }

    /// Moves an entry that was hit often enough from small to main.
    fn promote(&mut self, entry: &Candidate<'a>, seen: &Seen<'a>, work: &mut Work) -> bool {
        let Some(budget) = work.copy_budget.checked_sub(seen.bytes) else { return false };
        work.copy_budget = budget;
        // The pins in `work` are those of the whole stripe; the rounds for main collect them again.
        let Ok(at) = self.make_room(RingId::Main, seen.bytes, work) else { return false };
        self.copy_to(RingId::Main, at, entry, seen, 0);
        self.tally(Count::Promotions, 1);
        true
    }

    /// Moves an entry from small to main while main has room, since a cold entry is better than none.
    ///
    /// Main also has room where entries were removed from its middle. The hand then compacts it, except for an entry
    /// larger than what this put may still copy: to make that much room, it would have to skip more than it frees.
    fn move_while_roomy(&mut self, entry: &Candidate<'a>, seen: &Seen<'a>, work: &mut Work) -> bool {
        let main = self.ring(RingId::Main);
        // The hand may leave a batch free beyond what it keeps ahead. That is for entries that earned main.
        let spare = BATCH_BYTES.min(main.size / 64);
        let at = match main.has_room(seen.bytes, ahead(&main) + spare) {
            true => self.fit(&main, seen.bytes),
            // Compacting reads and writes main: too much if both wait for storage.
            false if self.is_sparse() && seen.bytes <= work.copy_budget && !paging::has_waited(self.volume) => {
                work.copy_budget -= seen.bytes;
                self.make_room(RingId::Main, seen.bytes, work).ok()
            }
            false => None,
        };
        let Some(at) = at else { return false };
        self.copy_to(RingId::Main, at, entry, seen, entry.now.frequency());
        self.tally(Count::Moved, 1);
        true
    }

    /// Whether enough of main is dead to make compacting worthwhile.
    fn is_sparse(&self) -> bool {
        // Counts that a death has left wrong would keep the hand compacting forever.
        if self.get(Word::Recount) != 0 {
            return false;
        }
        let main = self.ring(RingId::Main);
        let used = main.size - main.free().min(main.size) - self.untiled_bytes(RingId::Main);
        used.saturating_sub(self.get(Word::MainBytes)) > main.size / SPARSE
    }

    /// Copies an entry from main's tail to its head.
    fn reinsert(&mut self, entry: &Candidate<'a>, seen: &Seen<'a>, frequency: u64, work: &mut Work) -> bool {
        let Some(budget) = work.copy_budget.checked_sub(seen.bytes) else { return false };
        let main = self.ring(RingId::Main);
        let Some(at) = self.fit(&main, seen.bytes) else { return false };
        work.copy_budget = budget;
        self.copy_to(RingId::Main, at, entry, seen, frequency);
        self.tally(Count::Reinsertions, 1);
        true
    }

    /// Copies a live entry to free space, and changes its slot to the copy in one exchange.
    fn copy_to(&mut self, id: RingId, at: u64, entry: &Candidate<'a>, seen: &Seen<'a>, frequency: u64) {
        let ring = self.ring(id);
        let position = ring.position(at);
        self.copy_record(&ring, at, &entry.place, entry.record);
        self.advance(id, at, seen.bytes);
        // The copy may not have reached the file. The slot then keeps naming the source, which isn't freed either.
        if self.volume.has_failed() {
            return;
        }
        store_slot(entry.slot, |_| Slot::live(&entry.place, position, ring.lap(at), frequency).0);
        self.forget(entry.position, seen.bytes);
        self.remember(position, seen.bytes);
        self.tally(Count::BytesCopied, seen.bytes);
    }

    /// Collects the pins of this stripe. `fenced`: after slots were cleared; otherwise as a snapshot for planning.
    fn collect_pins(&self, work: &mut Work, fenced: bool) {
        work.pins.clear();
        let number = self.number;
        let pins = &mut work.pins;
        let mut note = |word| match Volume::pinned(word) {
            Some((stripe, position)) if stripe == number => pins.push(position),
            _ => {}
        };
        if fenced {
            protocol::collect_pins(thread::pins(self.volume).map(|(_, pin)| pin), note);
        } else {
            for (_, pin) in thread::pins(self.volume) {
                note(pin.load(Relaxed));
            }
        }
        work.pins.sort_unstable();
        work.pins.dedup();
        if !fenced {
            judge_pinned(self.volume, self.number, &work.pins);
        }
    }

    /// Voids what dead processes hold, once per put. Returns true if some of it was in this stripe's way.
    fn bury_holders(&self, work: &mut Work) -> bool {
        work.buried = true;
        let freed = self.bury_dead_holders();
        if freed {
            self.collect_pins(work, false);
        }
        freed
    }
}

/// Makes new hits of a stripe copies while more than 1/8 of it is pinned. `pins` are its pinned positions, each once.
fn judge_pinned(volume: &Volume, stripe: usize, pins: &[u64]) {
    let bytes: u64 = pins
        .iter()
        .filter_map(|position| entry_at(volume, stripe, *position))
        .map(|(_, lengths, _)| lengths.record_bytes())
        .sum();
    set_wants_copies(volume, stripe, bytes > volume.layout.stripe_data_bytes() / 8);
}

/// Judges again whether readers of a stripe still have to copy. Puts do this when they need room. Without puts,
/// readers do it now and then. Two callers at once may disagree for a moment, which costs a needless copy or pin.
#[cold]
pub(crate) fn judge_pinned_again(volume: &Volume, stripe: usize) {
    let mut pins: Vec<u64> = thread::pins(volume)
        .filter_map(|(_, pin)| Volume::pinned(pin.load(Relaxed)))
        .filter_map(|(at, position)| (at == stripe).then_some(position))
        .collect();
    pins.sort_unstable();
    pins.dedup();
    judge_pinned(volume, stripe, &pins);
}

/// Bytes that a ring keeps free beyond what was asked for.
fn ahead(ring: &Ring<'_>) -> u64 {
    match ring.id {
        RingId::Small => 0,
        RingId::Main => RESERVE_BYTES.min(ring.size / 16),
    }
}

/// Whether a reader holds the record, or its writer is still filling it (a writer pins what it fills).
fn is_held(ring: &Ring<'_>, at: u64, seen: &Seen<'_>, work: &Work) -> bool {
    !matches!(seen.head, Head::Filler(_)) && work.is_pinned(ring.position(at))
}

/// Why no room can be made.
#[derive(Debug, Clone, Copy)]
enum Stop {
    Pinned,
    Damaged,
}

/// An entry at the tail, and the slot that names it.
struct Candidate<'a> {
    place: Place,
    slot: &'a AtomicU64,
    now: Slot,
    position: u64,
    record: Record<'a>,
}
