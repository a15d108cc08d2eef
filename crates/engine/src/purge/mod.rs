//! Purges: how they are noted, and what they mean for an entry.
//!
//! A purge is a note, made in a few stores. It says what of the present epoch and earlier ones is purged, and ends
//! that epoch. Readers judge entries as they read them. The hand drops purged entries, and so does the sweep
//! ([`sweep`]), which then lets notes be forgotten.

mod calls;
mod epoch;
mod outbox;
mod sweep;

use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use crate::error::{Error, Result};
use crate::format::hash::purge_hash;
use crate::format::purges::{
    self, Cell, EPOCHS, FILTER_FULL, Noted, PurgeCount, RESERVE, RESERVE_LEFT, filter_bits, filter_lets_through,
};
use crate::format::record::{Flags, KEY_BYTES_MAX};
use crate::format::tags::{TAG_BYTES_MAX, Tags};
use crate::lock;
use crate::seam;
use crate::stripe::Stripe;
use crate::volume::Volume;

pub use crate::format::purges::Purge;
pub use epoch::Epoch;
pub(crate) use outbox::make_outbox;
pub use outbox::{Outbox, PurgeOf};
pub(crate) use sweep::{sweep, sync};

/// A sweep is wanted after purges of this share of the tags that can be noted.
const SWEEP_SHARE: u64 = 8;

/// The effect of all purges on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No purge covers it.
    Untouched,
    /// It is stale.
    Soft,
    /// It is gone.
    Hard,
}

/// The parts of an entry that a purge looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) epoch: u32,
    pub(crate) flags: Flags,
    pub(crate) key: &'a [u8],
    /// Includes the part for tags.
    pub(crate) metadata: &'a [u8],
}

/// Judges an entry that isn't of the present epoch.
pub(crate) fn judge(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    seam::before_judging();
    let purges = volume.purges();
    let epoch = subject.epoch;
    // An epoch in the future: the entry is from before the epochs began again, or damaged.
    if u64::from(epoch) > purges.epoch() {
        return Verdict::Hard;
    }
    let mut verdict = Verdict::Untouched;
    if u64::from(epoch) <= purges.newest_rule() {
        verdict = judge_by_rules(volume, subject);
    }
    if verdict != Verdict::Hard && subject.flags.has(Flags::TAGGED) {
        verdict = verdict.and(judge_by_tags(volume, subject));
    }
    // After the rules: a rule that gave way meanwhile has raised a floor before.
    verdict.and(Verdict::below(purges.floors(), epoch))
}

impl Verdict {
    /// The harder of the two.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Hard, _) | (_, Self::Hard) => Self::Hard,
            (Self::Soft, _) | (_, Self::Soft) => Self::Soft,
            _ => Self::Untouched,
        }
    }

    fn below(floors: purges::Floors, epoch: u32) -> Self {
        match epoch {
            _ if epoch <= floors.hard() => Self::Hard,
            _ if epoch <= floors.soft() => Self::Soft,
            _ => Self::Untouched,
        }
    }

    fn of(noted: Noted, epoch: u32) -> Self {
        match noted.kind {
            _ if epoch > noted.epoch => Self::Untouched,
            Purge::Hard => Self::Hard,
            Purge::Soft => Self::Soft,
        }
    }
}

fn judge_by_rules(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    let mut verdict = Verdict::Untouched;
    // Prefixes that are purged together mostly have the same length, so its hash is kept.
    let mut hashed = (0, 0);
    for rule in volume.purges().rules() {
        let Some((length, noted)) = rule.load() else { continue };
        let Some(prefix) = subject.key.get(..length) else { continue };
        if hashed.0 != length {
            hashed = (length, purge_hash(&volume.secret, prefix));
        }
        let found = Verdict::of(noted, subject.epoch);
        // Load the state again: the hash may belong to a rule that has replaced this one.
        if found != Verdict::Untouched && rule.hash() == hashed.1 && rule.load() == Some((length, noted)) {
            verdict = verdict.and(found);
        }
    }
    verdict
}

fn judge_by_tags(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    let Some(tags) = Tags::read(subject.metadata) else { return Verdict::Hard };
    let mut verdict = Verdict::Untouched;
    let filters = volume.tag_filters();
    for hash in tags.hashes() {
        let line = volume.layout.tag_line_of(hash);
        if filter_lets_through(filters[line as usize].load(Acquire), hash) {
            verdict = verdict.and(judge_by_tag(volume, line, hash, subject.epoch));
        }
    }
    verdict
}

#[cold]
fn judge_by_tag(volume: &Volume, line: u64, hash: u64, epoch: u32) -> Verdict {
    let [floors, cells @ ..] = volume.tag_line(line);
    let mut verdict = Verdict::Untouched;
    for cell in cells {
        let cell = Cell(cell.load(Acquire));
        if cell.is_of(hash) {
            verdict = verdict.and(Verdict::of(cell.noted(), epoch));
        }
    }
    // After the cells: a cell that gave way has raised the floor before.
    verdict.and(Verdict::below(purges::Floors(floors.load(Acquire)), epoch))
}

/// Judges an entry under its stripe's lock before it is stored: what have purges done to it since the work on it
/// began? The sweep may have passed already, so a stale entry must be stored as stale.
pub(crate) fn judge_late(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    let purges = volume.purges();
    if purges.epoch() == u64::from(subject.epoch) {
        return Verdict::Untouched;
    }
    // The rules first: a rule that was forgotten meanwhile has raised the retired epoch before.
    let verdict = judge(volume, subject);
    if u64::from(subject.epoch) <= purges.retired() { Verdict::Hard } else { verdict }
}

/// Whether a good part of the notes is used by purges that a sweep would let the volume forget.
pub(crate) fn wants_sweep(volume: &Volume) -> bool {
    let purges = volume.purges();
    // The first of eight words has the floors of the others.
    let tags_max = volume.layout.tag_lines * 7;
    // Each purge ends an epoch.
    purges.last().saturating_sub(purges.retired()) >= tags_max / SWEEP_SHARE
}

/// Purges all entries that carry `tag`.
pub(crate) fn purge_tag(volume: &Volume, tag: &str, kind: Purge) -> Result<()> {
    check_tag(tag)?;
    purge(volume, kind, |noted| note_tag(volume, purge_hash(&volume.secret, tag.as_bytes()), noted))
}

/// Notes a purge, then ends the present epoch, which the note names. In this order, a reader that sees the end of
/// the epoch also finds the note. Until then, the note doesn't apply to entries of that epoch itself.
fn purge(volume: &Volume, kind: Purge, note: impl FnOnce(Noted)) -> Result<()> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let _lock = PurgeLock::acquire(volume)?;
    reserve(volume)?;
    let purges = volume.purges();
    note(Noted { kind, epoch: purges.epoch() as u32 });
    purges.end_epoch();
    purges.tally(PurgeCount::Purges);
    Ok(())
}

/// Refuses what can't be a tag.
pub(crate) fn check_tag(tag: &str) -> Result<()> {
    if tag.is_empty() || tag.len() > TAG_BYTES_MAX {
        return Err(Error::TagLength { bytes: tag.len(), max: TAG_BYTES_MAX });
    }
    Ok(())
}

/// Writes a purge into the bucket of its tag. Each step is one exchange, after which the notes cover at least what
/// they covered before.
fn note_tag(volume: &Volume, hash: u64, noted: Noted) {
    let new = Cell::new(hash, noted);
    let line = volume.layout.tag_line_of(hash);
    let [floors, cells @ ..] = volume.tag_line(line);
    let filter = &volume.tag_filters()[line as usize];
    // The filter first: readers that find nothing there don't look at the bucket.
    filter.fetch_or(filter_bits(hash), SeqCst);
    let raise_floor = |noted| {
        filter.store(FILTER_FULL, SeqCst);
        purges::raise(floors, noted);
    };
    loop {
        let seen: [Cell; 7] = std::array::from_fn(|cell| Cell(cells[cell].load(Acquire)));
        // A hard purge covers an earlier soft purge of the same tag.
        let covers = |old: Cell| old.is_of(hash) && (noted.kind == Purge::Hard || old.noted().kind == Purge::Soft);
        let own = seen.iter().position(|old| covers(*old));
        if own.is_some_and(|own| seen[own].noted().epoch >= noted.epoch && seen[own].noted().kind == noted.kind) {
            return;
        }
        let place = own.or_else(|| seen.iter().position(|old| old.0 == 0));
        let oldest = (0..seen.len()).min_by_key(|cell| seen[*cell].noted().epoch).unwrap_or_default();
        let at = place.unwrap_or(oldest);
        if place.is_none() {
            // Before a cell gives way, the floor notes it.
            raise_floor(seen[at].noted());
            volume.purges().tally(PurgeCount::TagOverflows);
        } else if own.is_some_and(|own| seen[own].noted().epoch > noted.epoch) {
            // A later soft purge is in the cell, and an earlier hard one is to be noted: the floor keeps that.
            raise_floor(noted);
            return;
        }
        crate::seam::kill_point();
        if cells[at].compare_exchange(seen[at].0, new.0, SeqCst, Acquire).is_ok() {
            return;
        }
    }
}

/// Purges all entries whose key begins with `prefix`.
pub(crate) fn purge_prefix(volume: &Volume, prefix: &[u8], kind: Purge) -> Result<()> {
    if prefix.is_empty() {
        return purge_all(volume, kind);
    }
    if prefix.len() > KEY_BYTES_MAX {
        return Err(Error::KeyTooLong { bytes: prefix.len(), max: KEY_BYTES_MAX });
    }
    purge(volume, kind, |noted| note_prefix(volume, prefix, noted))
}

fn note_prefix(volume: &Volume, prefix: &[u8], noted: Noted) {
    let purges = volume.purges();
    let hash = purge_hash(&volume.secret, prefix);
    let loaded = || purges.rules().map(|rule| (rule, rule.load()));
    let is_same = |(rule, now): &(purges::Rule<'_>, Option<(usize, Noted)>)| {
        rule.hash() == hash && now.is_some_and(|(length, old)| length == prefix.len() && old.kind == noted.kind)
    };
    let free = loaded().find(is_same).or_else(|| loaded().find(|(_, now)| now.is_none()));
    let oldest = loaded().min_by_key(|(_, now)| now.map_or(0, |(_, old)| old.epoch));
    if let Some((rule, now)) = free.or(oldest) {
        if let (None, Some((_, old))) = (free, now) {
            purges.raise_floor(old);
            purges.tally(PurgeCount::RuleOverflows);
        }
        purges.set_newest_rule(u64::from(noted.epoch));
        rule.set(hash, prefix.len(), noted);
    }
}

/// Purges all entries.
pub(crate) fn purge_all(volume: &Volume, kind: Purge) -> Result<()> {
    purge(volume, kind, |noted| volume.purges().raise_floor(noted))
}

/// Called under the purge lock, before an epoch ends. Afterwards storage has a record that the next epochs may be
/// used.
fn reserve(volume: &Volume) -> Result<()> {
    let purges = volume.purges();
    if purges.epoch() >= EPOCHS {
        begin_epochs_anew(volume)?;
    }
    if purges.epoch() + RESERVE_LEFT >= purges.reserved() {
        purges.set_reserved(purges.epoch() + RESERVE);
        volume.sync_superblock()?;
    }
    Ok(())
}

/// After four billion purges: empties the volume and forgets all purges. Entries that are being written have an epoch
/// in the future, so they will not be stored.
fn begin_epochs_anew(volume: &Volume) -> Result<()> {
    crate::write::clear(volume)?;
    for number in 0..volume.layout.stripes as usize {
        Stripe::lock(volume, number)?.begin_sweeps_anew(0);
    }
    // Otherwise a power loss could bring entries back after their purges were forgotten.
    volume.sync_all()?;
    forget_all(volume);
    volume.purges().tally(PurgeCount::EpochsEnded);
    Ok(())
}

/// Recomputes a bucket's filter from its notes. Called under the purge lock, or while nobody else is attached.
pub(crate) fn renew_filter(volume: &Volume, line: u64) {
    let [floors, cells @ ..] = volume.tag_line(line);
    let bits = match floors.load(Acquire) {
        0 => cells.iter().map(|cell| Cell(cell.load(Acquire)).filter_bits()).fold(0, |all, bits| all | bits),
        _ => FILTER_FULL,
    };
    let filter = &volume.tag_filters()[line as usize];
    // Bytes that are lost in this process may still be intact for others, so they aren't overwritten.
    if filter.load(Acquire) != bits && !volume.has_failed() {
        filter.store(bits, SeqCst);
    }
}

fn forget_all(volume: &Volume) {
    let purges = volume.purges();
    for rule in purges.rules() {
        rule.clear();
    }
    for line in 0..volume.layout.tag_lines {
        for word in volume.tag_line(line) {
            word.store(0, SeqCst);
        }
        renew_filter(volume, line);
    }
    purges.clear_floors();
    purges.set_newest_rule(0);
    purges.set_retired(0);
    purges.set_reserved(RESERVE);
    purges.set_epoch(1);
}

/// Held to note purges, to forget them, or to keep others from doing so. Each store under it leaves notes that
/// readers can use.
pub(crate) struct PurgeLock<'a>(&'a Volume);

impl<'a> PurgeLock<'a> {
    pub(crate) fn acquire(volume: &'a Volume) -> Result<Self> {
        let got = lock::acquire(volume, volume.region.half(purges::LOCK_AT), "another purge")?;
        let lock = Self(volume);
        volume.check_intact()?;
        // Checked under the lock, since a resize holds it. The purge is then done in the volume that has replaced
        // this one.
        volume.check_present()?;
        if got == lock::Got::FromTheDead {
            finish(volume);
        }
        Ok(lock)
    }
}

/// Cleans up after a death under the lock. A note may name the present epoch, so that epoch is ended.
fn finish(volume: &Volume) {
    if volume.purges().epoch() < EPOCHS {
        volume.purges().end_epoch();
    }
}

impl Drop for PurgeLock<'_> {
    fn drop(&mut self) {
        lock::release(self.0.region.half(purges::LOCK_AT));
    }
}

/// Whether the notes can be true: none names an epoch in the future. `crashed`: the epoch's page may be older than
/// other pages, but no epoch from the reserved ones on was ever used.
pub(crate) fn is_sound(volume: &Volume, crashed: bool) -> bool {
    let purges = volume.purges();
    if crashed && purges.epoch() >= purges.reserved() {
        return false;
    }
    // A process that died before it ended the present epoch has left a note of it.
    let epoch = if crashed { purges.reserved() - 1 } else { purges.epoch() };
    let has_begun = |other: u32| u64::from(other) <= epoch;
    let are_sound = |floors: purges::Floors| has_begun(floors.hard()) && has_begun(floors.soft());
    (1..=EPOCHS).contains(&epoch)
        && are_sound(purges.floors())
        && purges.newest_rule() <= epoch
        && purges.retired() < epoch
        && purges.rules().filter_map(purges::Rule::load).all(|(_, noted)| has_begun(noted.epoch))
        && (0..volume.layout.tag_lines).all(|line| {
            let [floors, cells @ ..] = volume.tag_line(line);
            are_sound(purges::Floors(floors.load(Acquire)))
                && cells.iter().all(|cell| has_begun(Cell(cell.load(Acquire)).noted().epoch))
        })
}

/// Puts the notes in order for the first process of an attachment, when nobody holds the lock. After power loss the
/// notes stay, and the epochs continue after all that may have been used. If the notes aren't sound, the volume was
/// emptied, and nothing is purged.
pub(crate) fn put_in_order(volume: &Volume, sound: bool, crashed: bool) -> std::io::Result<()> {
    let purges = volume.purges();
    let lock = volume.region.half(purges::LOCK_AT);
    if !sound {
        // Otherwise a power loss could bring entries back after their purges were forgotten.
        volume.region.sync(0, volume.region.len())?;
        forget_all(volume);
    } else if crashed {
        let epoch = purges.reserved();
        crate::seam::kill_point();
        purges.set_reserved(epoch + RESERVE);
        crate::seam::kill_point();
        purges.set_epoch(epoch);
    } else if lock.load(Acquire) != 0 {
        finish(volume);
    }
    // After power loss, a filter may be older than its bucket. After a death between the two stores, it lets more
    // through than needed.
    for line in 0..volume.layout.tag_lines {
        renew_filter(volume, line);
    }
    // Last, so that a process that dies before leaves the work to the next.
    lock.store(0, Release);
    Ok(())
}
