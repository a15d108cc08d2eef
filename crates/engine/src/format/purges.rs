//! The purges, as words of the volume: a clock of epochs, floors, rules for prefixes, a table for tags.
//!
//! Each entry carries the epoch in which the work on it began. A purge notes the present epoch and then ends it:
//! everything that isn't younger is purged. A note never comes too late; it may only cover too much
//! (`docs/invariants.md`, P1 to P6).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Words of the superblock's page that readers look at. They have a line of their own, which only purges write.
const EPOCH_AT: usize = 320;
const FLOORS_AT: usize = 328;
const NEWEST_RULE_AT: usize = 336;
const RETIRED_AT: usize = 344;
/// On the same line, since every operation looks at it, too.
pub(crate) const MOVED_AT: usize = 352;
const EMPTIED_AT: usize = 360;
/// Words that only purges look at.
pub(crate) const LOCK_AT: usize = 384;
const RESERVED_AT: usize = 392;
const COUNTS_AT: usize = 400;
/// The rules: two words each.
const RULES_AT: usize = 512;
pub(crate) const RULES: usize = 64;
const RULE_BYTES: usize = 16;
pub(crate) const PAGE_WORDS: usize = super::layout::SUPERBLOCK_BYTES as usize / 8;
const _: () = assert!(RULES_AT + RULES * RULE_BYTES <= PAGE_WORDS * 8);

/// How many epochs at a time are reserved in storage. No epoch beyond was ever used.
pub(crate) const RESERVE: u64 = 1 << 16;
/// A purge that finds less than this left of the reservation renews it first.
pub(crate) const RESERVE_LEFT: u64 = 1 << 13;
/// The last epoch. After it the volume is emptied, and the epochs begin again.
pub(crate) const EPOCHS: u64 = 0xffff_0000;

/// The words of a new volume that aren't zero.
pub(crate) const NEW_WORDS: [(usize, u64); 2] = [(EPOCH_AT, 1), (RESERVED_AT, RESERVE)];

/// The id of a volume, whose low 16 bits check the others. The word that names a successor decides about the whole
/// volume.
pub(crate) fn checked_id(hash: u64) -> u64 {
    let high = hash & !0xffff;
    high | (high.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48)
}

/// An id as stored in a volume; 0 if the word was damaged.
pub(crate) fn read_id(word: u64) -> u64 {
    if word == checked_id(word) { word } else { 0 }
}

/// What a purge does to entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// They are gone.
    Hard,
    /// They are stale: [`crate::Cache::get`] misses them. [`crate::Cache::lookup`] still returns them until their
    /// time to live and their stale time together are over.
    Soft,
}

/// Counts of purges.
#[derive(Debug, Clone, Copy)]
pub(crate) enum PurgeCount {
    Purges,
    /// A bucket of the table of tags was full, so everything older than its oldest purge was purged, too.
    TagOverflows,
    /// All rules were in use, so everything older than the oldest of them was purged, too.
    RuleOverflows,
    /// The epochs ran out, and the volume was emptied.
    EpochsEnded,
}

/// A noted purge of one tag, or of one prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) kind: Purge,
    pub(crate) epoch: u32,
}

/// Two epochs in one word. Everything that isn't younger is purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Floors(pub(crate) u64);

impl Floors {
    #[inline]
    pub(crate) fn hard(self) -> u32 {
        self.0 as u32
    }

    #[inline]
    pub(crate) fn soft(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// With the floor for this kind of purge raised to its epoch.
    pub(crate) fn raised(self, noted: Noted) -> Self {
        let (hard, soft) = match noted.kind {
            Purge::Hard => (self.hard().max(noted.epoch), self.soft()),
            Purge::Soft => (self.hard(), self.soft().max(noted.epoch)),
        };
        Self(u64::from(hard) | (u64::from(soft) << 32))
    }
}

/// A tag's purge in a bucket of the table: 31 bits of its hash, its kind, its epoch. Zero is a free cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(pub(crate) u64);

const SOFT_BIT: u64 = 1 << 32;

impl Cell {
    pub(crate) fn new(hash: u64, noted: Noted) -> Self {
        let kind = if noted.kind == Purge::Soft { SOFT_BIT } else { 0 };
        Self((hash >> 33 << 33) | kind | u64::from(noted.epoch))
    }

    #[inline]
    pub(crate) fn is_of(self, hash: u64) -> bool {
        self.0 != 0 && self.0 >> 33 == hash >> 33
    }

    /// The bits that it adds to its bucket's filter.
    pub(crate) fn filter_bits(self) -> u32 {
        if self.0 == 0 { 0 } else { filter_bits(self.0) }
    }

    #[inline]
    pub(crate) fn noted(self) -> Noted {
        let kind = if self.0 & SOFT_BIT == 0 { Purge::Hard } else { Purge::Soft };
        Noted { kind, epoch: self.0 as u32 }
    }
}

/// The filter of a bucket that has a floor: any tag may be purged.
pub(crate) const FILTER_FULL: u32 = u32::MAX;

/// Whether a bucket's filter has the bits of a tag's hash. There are two of them, from the part of the hash that is
/// kept in a cell.
#[inline]
pub(crate) fn filter_lets_through(filter: u32, hash: u64) -> bool {
    // One after the other, since the first is mostly enough to say no.
    filter & (1 << (hash >> 59)) != 0 && filter & (1 << ((hash >> 54) & 31)) != 0
}

pub(crate) fn filter_bits(hash: u64) -> u32 {
    (1 << (hash >> 59)) | (1 << ((hash >> 54) & 31))
}

const RULE_USED: u64 = 1 << 49;
const RULE_SOFT: u64 = 1 << 48;

/// A rule, which purges all keys with a prefix. It has the prefix's hash in one word, and its length, kind and epoch
/// in the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule<'a> {
    hash: &'a AtomicU64,
    state: &'a AtomicU64,
}

impl Rule<'_> {
    /// The length and the purge, if the rule is in use.
    #[inline]
    pub(crate) fn load(self) -> Option<(usize, Noted)> {
        let state = self.state.load(Acquire);
        let kind = if state & RULE_SOFT == 0 { Purge::Hard } else { Purge::Soft };
        let noted = Noted { kind, epoch: state as u32 };
        (state & RULE_USED != 0).then_some((((state >> 32) & 0xffff) as usize, noted))
    }

    #[inline]
    pub(crate) fn hash(self) -> u64 {
        self.hash.load(Acquire)
    }

    /// Called under the purge lock. A reader sees the old rule, none, or the new one, but never the hash of one with
    /// the state of the other. A rule for the same prefix is replaced in one store, and holds all the time.
    pub(crate) fn set(self, hash: u64, length: usize, noted: Noted) {
        // For the same prefix one store, so that no death or power loss in between forgets the earlier purge.
        let is_same = self.hash() == hash && self.load().is_some_and(|(old, _)| old == length);
        if !is_same {
            self.clear();
            self.hash.store(hash, SeqCst);
        }
        let kind = if noted.kind == Purge::Soft { RULE_SOFT } else { 0 };
        crate::seam::kill_point();
        self.state.store(RULE_USED | kind | ((length as u64) << 32) | u64::from(noted.epoch), SeqCst);
    }

    pub(crate) fn clear(self) {
        crate::seam::kill_point();
        self.state.store(0, SeqCst);
    }
}

/// The words of a volume that say what was purged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Purges<'a>(&'a [AtomicU64; PAGE_WORDS]);

impl<'a> Purges<'a> {
    /// Those of a volume; they lie in its first page.
    #[inline]
    pub(crate) fn of(words: &'a [AtomicU64; PAGE_WORDS]) -> Self {
        Self(words)
    }

    /// The present epoch. Work that begins now carries it.
    #[inline]
    pub(crate) fn epoch(self) -> u64 {
        self.0[EPOCH_AT / 8].load(Acquire)
    }

    /// The epoch that ended last. All purges up to it have been noted; a purge that is being noted has the present
    /// epoch.
    #[inline]
    pub(crate) fn last(self) -> u64 {
        self.epoch().saturating_sub(1)
    }

    /// Ends the present epoch. Called under the purge lock.
    pub(crate) fn end_epoch(self) {
        crate::seam::kill_point();
        self.0[EPOCH_AT / 8].fetch_add(1, SeqCst);
    }

    /// Called under the purge lock, or while nobody else is attached.
    pub(crate) fn set_epoch(self, epoch: u64) {
        self.0[EPOCH_AT / 8].store(epoch, SeqCst);
    }

    /// Epochs from this one on were never used, whatever was lost since the last sync.
    pub(crate) fn reserved(self) -> u64 {
        self.0[RESERVED_AT / 8].load(Acquire)
    }

    pub(crate) fn set_reserved(self, epoch: u64) {
        self.0[RESERVED_AT / 8].store(epoch, SeqCst);
    }

    /// Everything that isn't younger than these floors is purged.
    #[inline]
    pub(crate) fn floors(self) -> Floors {
        Floors(self.0[FLOORS_AT / 8].load(Acquire))
    }

    pub(crate) fn raise_floor(self, noted: Noted) {
        raise(&self.0[FLOORS_AT / 8], noted);
    }

    pub(crate) fn clear_floors(self) {
        self.0[FLOORS_AT / 8].store(0, SeqCst);
    }

    /// No rule in use has a later epoch.
    #[inline]
    pub(crate) fn newest_rule(self) -> u64 {
        self.0[NEWEST_RULE_AT / 8].load(Acquire)
    }

    pub(crate) fn set_newest_rule(self, epoch: u64) {
        self.0[NEWEST_RULE_AT / 8].store(epoch, SeqCst);
    }

    /// Purges up to this epoch may have been forgotten, since all entries that they covered are gone. An entry begun
    /// before and stored only now can't be told from those.
    pub(crate) fn retired(self) -> u64 {
        self.0[RETIRED_AT / 8].load(SeqCst)
    }

    pub(crate) fn set_retired(self, epoch: u64) {
        self.0[RETIRED_AT / 8].store(epoch, SeqCst);
    }

    /// The id of the volume that replaced this one when it was resized; 0 if none did.
    #[inline]
    pub(crate) fn moved(self) -> u64 {
        let word = self.0[MOVED_AT / 8].load(Acquire);
        if word == 0 { 0 } else { read_id(word) }
    }

    pub(crate) fn set_moved(self, id: u64) {
        self.0[MOVED_AT / 8].store(id, SeqCst);
    }

    /// Whether no slot names anything any more, because the volume was resized and left.
    pub(crate) fn is_emptied(self) -> bool {
        self.0[EMPTIED_AT / 8].load(Acquire) != 0
    }

    pub(crate) fn set_emptied(self) {
        self.0[EMPTIED_AT / 8].store(1, SeqCst);
    }

    pub(crate) fn rules(self) -> impl Iterator<Item = Rule<'a>> {
        (0..RULES).map(move |rule| {
            let at = (RULES_AT + rule * RULE_BYTES) / 8;
            Rule { hash: &self.0[at], state: &self.0[at + 1] }
        })
    }

    pub(crate) fn count(self, which: PurgeCount) -> u64 {
        self.0[COUNTS_AT / 8 + which as usize].load(Relaxed)
    }

    pub(crate) fn tally(self, which: PurgeCount) {
        self.0[COUNTS_AT / 8 + which as usize].fetch_add(1, Relaxed);
    }
}

/// Raises a floor word.
pub(crate) fn raise(floors: &AtomicU64, noted: Noted) {
    crate::seam::kill_point();
    let _ = floors.fetch_update(SeqCst, Acquire, |word| Some(Floors(word).raised(noted).0));
}

#[cfg(test)]
mod tests {
    use eyewall_region::Region;

    use super::*;

    #[test]
    fn cells_and_rules_keep_their_parts() {
        for kind in [Purge::Hard, Purge::Soft] {
            let noted = Noted { kind, epoch: 0xffff_fff0 };
            let cell = Cell::new(u64::MAX, noted);
            assert!(cell.is_of(u64::MAX) && !cell.is_of(1 << 40));
            assert_eq!(cell.noted(), noted);
            let region = Region::heap(4096);
            let rule = Purges::of(region.words(0)).rules().nth(63).unwrap();
            assert!(rule.load().is_none());
            rule.set(9, 0xffff, noted);
            assert_eq!((rule.load(), rule.hash()), (Some((0xffff, noted)), 9));
            rule.clear();
            assert!(rule.load().is_none());
        }
    }

    #[test]
    fn a_floor_only_rises() {
        let floors =
            Floors(0).raised(Noted { kind: Purge::Hard, epoch: 5 }).raised(Noted { kind: Purge::Soft, epoch: 9 });
        let lower = floors.raised(Noted { kind: Purge::Hard, epoch: 4 });
        assert_eq!((lower.hard(), lower.soft()), (5, 9));
    }
}
