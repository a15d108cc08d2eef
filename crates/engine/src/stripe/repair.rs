//! Repair after a death. Each store leaves a stripe that readers can use. What remains is to finish a skip or a step,
//! and to recount what a dead holder had counted halfway.

use std::sync::atomic::Ordering::{Relaxed, Release};

use super::{CLAIMS_HINT, Count, LOCK, READ_LINE, READER_FLAGS, RingId, Stripe, Word};
use crate::error::{Error, Result};
use crate::format::hash;
use crate::format::layout::BUCKET_SLOTS;
use crate::format::owner::Owner;
use crate::format::record::Head;
use crate::format::slot::Slot;
use crate::protocol;
use crate::seam;
use crate::thread;
use crate::volume::Volume;

/// In the reset word: the ring must be reset.
fn reset_bit(id: RingId) -> u64 {
    1 << id as u64
}

/// In the reset word: no slot names a record of the ring any more.
fn unlinked_bit(id: RingId) -> u64 {
    4 << id as u64
}

/// A stripe of up to this many buckets is recounted during its repair, in some milliseconds. A larger one waits for a
/// call of the statistics; main isn't compacted until then.
const RECOUNT_BUCKETS: u64 = 1 << 14;

/// How often to look at words that a writer may be changing.
const LOOKS: u32 = 1000;

/// What a walk over a stripe found.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    pub(crate) entries: u64,
    pub(crate) records: u64,
    pub(crate) live_bytes: u64,
    pub(crate) main_entries: u64,
    pub(crate) main_bytes: u64,
    pub(crate) filler_bytes: u64,
    pub(crate) ghosts: u64,
    pub(crate) problems: Vec<String>,
}

/// How far a stripe's bytes can be trusted when a first process attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// They are what was written last.
    Trusted,
    /// Each page may be of another age.
    Crashed,
    /// Not at all.
    Void,
}

/// Whether a trusted stripe was left in order, so that nothing needs to change. For the first process of an
/// attachment.
pub(crate) fn is_in_order(volume: &Volume, number: usize) -> bool {
    let stripe = Stripe::unlocked(volume, number);
    volume.region.half(stripe.base + LOCK).load(Relaxed) == 0
        && stripe.get(Word::Reset) == 0
        && stripe.is_index_sound()
        && RingId::BOTH.into_iter().all(|id| stripe.is_ring_sound(id))
}

/// Frees the lock and the claims, and puts the rings in order. For the first process of an attachment, while nobody
/// else is attached.
pub(crate) fn put_in_order(volume: &Volume, number: usize, state: State) {
    let base = volume.layout.stripe_at(number);
    let held = volume.region.half(base + LOCK).load(Relaxed) != 0;
    volume.region.half(base + CLAIMS_HINT).store(0, Relaxed);
    volume.region.word(base + READ_LINE + READER_FLAGS * 8).store(0, Relaxed);
    for claim in 0..volume.layout.claims {
        let at = volume.layout.claim_at(number, claim);
        for word in volume.region.line(at) {
            word.store(0, Relaxed);
        }
    }
    // Nobody else is attached, so the lock isn't needed.
    let mut stripe = Stripe::unlocked(volume, number);
    if state != State::Void {
        stripe.mend_index();
    }
    match state {
        State::Void => stripe.empty(),
        // Nobody knows where the buckets are.
        _ if !stripe.is_index_sound() => stripe.empty(),
        State::Crashed => stripe.take_for_untiled(),
        State::Trusted if held => stripe.repair(),
        State::Trusted => stripe.check_rings(),
    }
    // Last, so that a process that dies before leaves the repair to the next.
    seam::kill_point();
    volume.region.half(base + LOCK).store(0, Release);
}

/// Notes that all buckets are in storage as they are. Called while nobody else is attached.
pub(crate) fn all_are_sure(volume: &Volume) {
    for stripe in (0..volume.layout.stripes as usize).map(|number| Stripe::unlocked(volume, number)) {
        stripe.are_sure(stripe.buckets().count());
    }
}

/// Marks every live entry for verification before its next use. For the first process of an attachment.
pub(crate) fn forget_verified(volume: &Volume) {
    for number in 0..volume.layout.stripes as usize {
        let stripe = Stripe::unlocked(volume, number);
        stripe.each_slot(|slot| {
            if !slot.is_live() || !stripe.may_write(slot.position()) {
                return;
            }
            if let Some((record, _, _)) = stripe.entry_at(slot.position()) {
                record.set_generation(0);
            }
        });
    }
}

impl Stripe<'_> {
    /// Repairs the stripe after its lock was taken from a dead holder.
    pub(crate) fn repair(&mut self) {
        self.set(Word::Recount, 1);
        self.mend_index();
        for id in RingId::BOTH {
            let ring = self.ring(id);
            ring.mend();
            let (head, tail) = (ring.head(), ring.tail());
            if head.checked_sub(tail).is_some_and(|used| used > ring.size && used <= 2 * ring.size) {
                ring.set_tail(head - ring.size);
            }
        }
        self.check_rings();
        self.finish_step();
        self.tally(Count::Repairs, 1);
        if self.buckets().count() <= RECOUNT_BUCKETS {
            self.recount_if_needed();
        }
    }

    /// Checks that head and tail are possible, and that a record lies where the log begins.
    fn check_rings(&mut self) {
        // Slots are searched again, since the note that none is left may be damaged, too.
        self.expect_slots();
        for id in RingId::BOTH {
            if !self.is_ring_sound(id) {
                self.demand_reset(id);
            }
            // Readers that hold bytes delay it; the next put tries again.
            let _ = self.finish_reset(id);
        }
    }

    fn is_ring_sound(&self, id: RingId) -> bool {
        let ring = self.ring(id);
        let (head, tail) = (ring.head(), ring.tail());
        ring.is_intact()
            && tail <= head
            && head - tail <= ring.size
            && head % 8 == 0
            && tail % 8 == 0
            && head < u64::MAX / 4
            && self.is_untiled_sound(&ring)
            && (tail == head || self.untiled(id).contains(&tail) || self.read(&ring, tail, head).is_ok())
    }

    fn empty(&mut self) {
        self.empty_index();
        for id in RingId::BOTH {
            let ring = self.ring(id);
            let fresh = Self::start_behind_what_was_lost(&ring);
            ring.set_tail(fresh);
            ring.set_head(fresh);
            self.forget_untiled(id);
            self.erase_ring(&ring);
        }
        self.clear_counts();
        self.set(Word::Present, 0);
        self.begin_sweeps_anew(0);
    }

    /// Counts nothing as live, and clears all demands for a reset.
    pub(super) fn clear_counts(&self) {
        for word in [
            Word::Entries,
            Word::LiveBytes,
            Word::MainEntries,
            Word::MainBytes,
            Word::FillerBytes,
            Word::Recount,
            Word::Reset,
        ] {
            self.set(word, 0);
        }
    }

    /// Notes that a ring's log is damaged and must be reset.
    pub(super) fn demand_reset(&self, id: RingId) {
        // A log that was lost in this process may be intact in the file.
        if self.volume.has_failed() {
            return;
        }
        self.set(Word::Reset, self.get(Word::Reset) | reset_bit(id));
    }

    /// Whether a ring's log is damaged. Its head and tail mean nothing then, and nothing may be written to it.
    pub(super) fn must_reset(&self, id: RingId) -> bool {
        self.get(Word::Reset) & reset_bit(id) != 0
    }

    /// A large put that was under way when its ring was given up may still publish a record of it, so its slots must
    /// be searched again.
    pub(super) fn expect_slots(&self) {
        let wanted = self.get(Word::Reset);
        if wanted != 0 {
            self.set(Word::Reset, wanted & (reset_bit(RingId::Small) | reset_bit(RingId::Main)));
        }
    }

    /// Empties a ring that must be reset: its slots at once, its bytes once nobody holds any.
    pub(super) fn finish_reset(&mut self, id: RingId) -> Result<()> {
        if !self.must_reset(id) {
            return Ok(());
        }
        // Before anything else: a death during attach, which no lock shows, also leaves counts half done.
        self.set(Word::Recount, 1);
        let volume = self.volume;
        if self.get(Word::Reset) & unlinked_bit(id) == 0 {
            self.unlink_all(|position| RingId::of(volume, position) == id);
            self.set(Word::Reset, self.get(Word::Reset) | unlinked_bit(id));
        }
        let ring = self.ring(id);
        self.forget_rooms(id);
        if self.is_held(id) {
            self.bury_dead_holders();
        }
        if self.is_held(id) {
            return Err(Error::Pinned { bytes: ring.size });
        }
        volume.check_intact()?;
        self.forget_untiled(id);
        self.erase_ring(&ring);
        let fresh = (ring.head().max(ring.tail()) % (1 << 60) / ring.size + 1) * ring.size;
        ring.set_end(ring.lap(fresh), ring.most);
        // The head first: between the two stores, the log only seems longer than the ring.
        ring.set_head(fresh);
        ring.set_tail(fresh);
        self.set(Word::Reset, self.get(Word::Reset) & !(reset_bit(id) | unlinked_bit(id)));
        self.tally(Count::Resets, 1);
        Ok(())
    }

    /// Whether anybody pins bytes of a ring. Asked after its slots were cleared, so that what isn't pinned stays
    /// unpinned.
    fn is_held(&self, id: RingId) -> bool {
        let (number, mut held) = (self.number, false);
        protocol::collect_pins(thread::pins(self.volume).map(|(_, pin)| pin), |word| {
            held |= Volume::pinned(word)
                .is_some_and(|(stripe, position)| stripe == number && RingId::of(self.volume, position) == id);
        });
        held
    }

    /// Voids all pins of dead processes, in any stripe. Returns true if there were any.
    pub(super) fn bury_dead_holders(&self) -> bool {
        let volume = self.volume;
        let mut holders: Vec<u32> = thread::pins(volume)
            .filter(|(_, pin)| pin.load(Relaxed) != 0)
            .map(|(thread, _)| thread::owner_word(volume, thread))
            .collect();
        holders.sort_unstable();
        holders.dedup();
        let mut freed = false;
        for owner in holders.into_iter().filter_map(Owner::from_word) {
            if !volume.membership.is_alive(&volume.region, &volume.layout, owner) {
                freed |= volume.membership.bury(&volume.region, &volume.layout, owner);
            }
        }
        freed
    }

    /// Recounts if a holder of the lock has died since the last count.
    pub(crate) fn recount_if_needed(&self) {
        if self.get(Word::Recount) != 0 {
            let audit = self.audit();
            if self.volume.has_failed() {
                return;
            }
            self.set(Word::Entries, audit.entries);
            self.set(Word::LiveBytes, audit.live_bytes);
            self.set(Word::MainEntries, audit.main_entries);
            self.set(Word::MainBytes, audit.main_bytes);
            self.set(Word::FillerBytes, audit.filler_bytes);
            self.set(Word::Recount, 0);
        }
    }

    /// The differences between the counts kept in the stripe and those that a walk found.
    pub(crate) fn compare(&self, audit: &Audit) -> Vec<String> {
        [
            ("entries", self.get(Word::Entries), audit.entries),
            ("live bytes", self.get(Word::LiveBytes), audit.live_bytes),
            ("entries of main", self.get(Word::MainEntries), audit.main_entries),
            ("live bytes of main", self.get(Word::MainBytes), audit.main_bytes),
            ("filler bytes", self.get(Word::FillerBytes), audit.filler_bytes),
        ]
        .into_iter()
        .filter(|(_, kept, found)| kept != found)
        .map(|(what, kept, found)| format!("stripe {}: {what} are {found}, but {kept} are counted", self.number))
        .collect()
    }

    /// The number of slots, live slots and ghosts in this stripe's index.
    pub(crate) fn index_load(&self) -> (u64, u64, u64) {
        let (mut live, mut ghosts) = (0, 0);
        self.each_slot(|slot| {
            live += u64::from(slot.is_live());
            ghosts += u64::from(slot.is_ghost());
        });
        (self.buckets().count() * BUCKET_SLOTS, live, ghosts)
    }

    pub(crate) fn each_slot(&self, mut f: impl FnMut(Slot)) {
        for slot in (0..self.buckets().count()).flat_map(|bucket| self.bucket(bucket)) {
            f(Slot(super::load(slot)));
        }
    }

    /// Walks both logs and the whole index, and reports what contradicts the invariants. Leaves out what isn't tiled.
    pub(crate) fn audit(&self) -> Audit {
        let mut audit = Audit::default();
        // A reader without the lock may look between the stores of a word and of its complement.
        if !(0..LOOKS).any(|_| self.is_index_sound()) {
            audit
                .problems
                .push(format!("stripe {}: the words that describe its index contradict each other", self.number));
        }
        let mut live = Vec::new();
        self.each_slot(|slot| {
            if slot.is_live() && !self.is_untiled(slot.position()) {
                live.push(slot.position());
            }
            audit.ghosts += u64::from(slot.is_ghost());
        });
        live.sort_unstable();
        for pair in live.windows(2).filter(|pair| pair[0] == pair[1]) {
            audit.problems.push(format!("stripe {}: two slots name position {}", self.number, pair[0]));
        }
        audit.entries = live.len() as u64;
        let mut reached = 0;
        for id in RingId::BOTH {
            reached += self.audit_ring(id, &live, &mut audit);
        }
        if reached != audit.entries {
            audit.problems.push(format!(
                "stripe {}: {} of {} live slots name no entry of a log",
                self.number,
                audit.entries - reached.min(audit.entries),
                audit.entries
            ));
        }
        audit
    }

    fn audit_ring(&self, id: RingId, live: &[u64], audit: &mut Audit) -> u64 {
        let ring = self.ring(id);
        let (head, mut at) = (ring.head(), ring.tail());
        let mut reached = 0;
        if head < at || head - at > ring.size {
            audit.problems.push(format!("stripe {}: {id:?} has head {head} and tail {at}", self.number));
            return 0;
        }
        let untiled = self.untiled(id);
        while at < head {
            if untiled.contains(&at) {
                at = untiled.end;
                continue;
            }
            let Ok(seen) = self.read(&ring, at, head) else {
                audit.problems.push(format!("stripe {}: {id:?} has no record at {at}", self.number));
                return reached;
            };
            audit.records += 1;
            let position = ring.position(at);
            if let Head::Filler(bytes) = seen.head
                && !seen.is_void
            {
                audit.filler_bytes += bytes;
            }
            let live_entry = seen.as_entry().filter(|_| live.binary_search(&position).is_ok());
            if let Some(record) = live_entry {
                reached += 1;
                audit.live_bytes += seen.bytes;
                if id == RingId::Main {
                    audit.main_entries += 1;
                    audit.main_bytes += seen.bytes;
                }
                // SAFETY: the record lies in the log and we hold the lock.
                let key = unsafe { record.key() };
                let place = hash::place(&self.volume.layout, hash::key_hash(&self.volume.secret, key));
                if place.stripe != self.number || self.slots_of(&place, position).next().is_none() {
                    audit.problems.push(format!("stripe {}: {position} is in a slot of another key", self.number));
                }
            }
            at += seen.bytes;
        }
        reached
    }
}
