//! Purging: what is noted, and what it means for an entry.
//!
//! A purge is a note, made in a few stores: it ends the present epoch and says what of that epoch and before is purged.
//! Entries are judged as they are read; the dead are dropped by the hand, and by the sweep ([`sweep`]), which lets notes be
//! forgotten.

mod sweep;

use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};

use crate::error::{Error, Result};
use crate::format::hash::purge_hash;
use crate::format::purges::{self, Cell, EPOCHS, Noted, PurgeCount, RESERVE, RESERVE_LEFT};
use crate::format::record::{Flags, KEY_BYTES_MAX};
use crate::format::tags::{TAG_BYTES_MAX, Tags};
use crate::lock;
use crate::stripe::Stripe;
use crate::volume::Volume;

pub use crate::format::purges::Purge;
pub(crate) use sweep::{sweep, sync};

/// What purges have made of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// None of them meant it.
    Untouched,
    /// It is stale.
    Soft,
    /// It is gone.
    Hard,
}

/// What of an entry a purge looks at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) epoch: u32,
    pub(crate) flags: Flags,
    pub(crate) key: &'a [u8],
    /// With the tags' part.
    pub(crate) metadata: &'a [u8],
}

/// Judges an entry that isn't of the present epoch.
pub(crate) fn judge(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    let purges = volume.purges();
    let epoch = subject.epoch;
    let floors = purges.floors();
    // From an epoch that is still to come: of before the epochs began anew, or damaged.
    if epoch <= floors.hard() || u64::from(epoch) > purges.epoch() {
        return Verdict::Hard;
    }
    let mut verdict = if epoch <= floors.soft() { Verdict::Soft } else { Verdict::Untouched };
    if u64::from(epoch) <= purges.newest_rule() {
        verdict = verdict.and(judge_by_rules(volume, subject));
    }
    if verdict != Verdict::Hard && subject.flags.has(Flags::TAGGED) {
        verdict = verdict.and(judge_by_tags(volume, subject));
    }
    verdict
}

impl Verdict {
    /// The harder of both.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Hard, _) | (_, Self::Hard) => Self::Hard,
            (Self::Soft, _) | (_, Self::Soft) => Self::Soft,
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
    // Prefixes of one length are mostly purged together.
    let mut hashed = (0, 0);
    for rule in volume.purges().rules() {
        let Some((length, noted)) = rule.load() else { continue };
        let Some(prefix) = subject.key.get(..length) else { continue };
        if hashed.0 != length {
            hashed = (length, purge_hash(&volume.secret, prefix));
        }
        let found = Verdict::of(noted, subject.epoch);
        // Its state once more: the hash may be that of a rule that took its place.
        if found != Verdict::Untouched && rule.hash() == hashed.1 && rule.load() == Some((length, noted)) {
            verdict = verdict.and(found);
        }
    }
    verdict
}

fn judge_by_tags(volume: &Volume, subject: &Subject<'_>) -> Verdict {
    let Some(tags) = Tags::read(subject.metadata) else { return Verdict::Hard };
    let mut verdict = Verdict::Untouched;
    for hash in tags.hashes() {
        let [floors, cells @ ..] = volume.tag_line(hash);
        let floors = purges::Floors(floors.load(Acquire));
        if subject.epoch <= floors.hard() {
            return Verdict::Hard;
        }
        if subject.epoch <= floors.soft() {
            verdict = Verdict::Soft;
        }
        for cell in cells {
            let cell = Cell(cell.load(Acquire));
            if cell.is_of(hash) {
                verdict = verdict.and(Verdict::of(cell.noted(), subject.epoch));
            }
        }
    }
    verdict
}

/// Under the stripe's lock: whether what was begun in an earlier epoch must not be stored any more.
pub(crate) fn is_superseded(volume: &Volume, subject: &Subject<'_>) -> bool {
    let purges = volume.purges();
    if purges.epoch() == u64::from(subject.epoch) {
        return false;
    }
    // The rules first: one that was forgotten meanwhile has raised the epoch of the retired before.
    judge(volume, subject) == Verdict::Hard || u64::from(subject.epoch) <= purges.retired()
}

/// Purges all entries that carry `tag`.
pub(crate) fn purge_tag(volume: &Volume, tag: &str, kind: Purge) -> Result<()> {
    check_tag(tag)?;
    let epoch = end_epoch(volume)?;
    note_tag(volume, purge_hash(&volume.secret, tag.as_bytes()), Noted { kind, epoch });
    Ok(())
}

/// Refuses what can't be a tag.
pub(crate) fn check_tag(tag: &str) -> Result<()> {
    if tag.is_empty() || tag.len() > TAG_BYTES_MAX {
        return Err(Error::TagLength { bytes: tag.len(), max: TAG_BYTES_MAX });
    }
    Ok(())
}

/// Writes a purge into its tag's bucket. Anybody may do so at any time: each step is one exchange, after which what is noted
/// covers all that was.
fn note_tag(volume: &Volume, hash: u64, noted: Noted) {
    let new = Cell::new(hash, noted);
    let [floors, cells @ ..] = volume.tag_line(hash);
    loop {
        let seen: [Cell; 7] = std::array::from_fn(|cell| Cell(cells[cell].load(Acquire)));
        // A hard purge covers an earlier soft one of the same tag.
        let covers = |old: Cell| old.is_of(hash) && (noted.kind == Purge::Hard || old.noted().kind == Purge::Soft);
        let own = seen.iter().position(|old| covers(*old));
        if own.is_some_and(|own| seen[own].noted().epoch >= noted.epoch && seen[own].noted().kind == noted.kind) {
            return;
        }
        let place = own.or_else(|| seen.iter().position(|old| old.0 == 0));
        let oldest = (0..seen.len()).min_by_key(|cell| seen[*cell].noted().epoch).unwrap_or_default();
        let at = place.unwrap_or(oldest);
        if place.is_none() {
            // What gives way is noted by the floor first.
            purges::raise(floors, seen[at].noted());
            volume.purges().tally(PurgeCount::TagOverflows);
        } else if own.is_some_and(|own| seen[own].noted().epoch > noted.epoch) {
            // A later soft purge stands there, and a hard one of before is to be noted: the floor keeps it.
            purges::raise(floors, noted);
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
    prepare(volume)?;
    let hash = purge_hash(&volume.secret, prefix);
    let _lock = PurgeLock::acquire(volume)?;
    let purges = volume.purges();
    let noted = Noted { kind, epoch: purges.end_epoch() as u32 };
    let loaded = || purges.rules().map(|rule| (rule, rule.load()));
    let is_same = |(rule, now): &(purges::Rule<'_>, Option<(usize, Noted)>)| {
        rule.hash() == hash && now.is_some_and(|(length, old)| length == prefix.len() && old.kind == kind)
    };
    let free = loaded().find(is_same).or_else(|| loaded().find(|(_, now)| now.is_none()));
    let oldest = loaded().min_by_key(|(_, now)| now.map_or(0, |(_, old)| old.epoch));
    if let Some((rule, now)) = free.or(oldest) {
        if let (None, Some((_, old))) = (free, now) {
            purges.raise_floor(old);
            purges.tally(PurgeCount::RuleOverflows);
        }
        // The same rule may stand there: until it is noted anew, its newer form is covered by nothing but this order.
        purges.set_newest_rule(u64::from(noted.epoch));
        rule.set(hash, prefix.len(), noted);
    }
    purges.tally(PurgeCount::Purges);
    Ok(())
}

/// Purges everything.
pub(crate) fn purge_all(volume: &Volume, kind: Purge) -> Result<()> {
    let epoch = end_epoch(volume)?;
    volume.purges().raise_floor(Noted { kind, epoch });
    Ok(())
}

/// Ends the present epoch for a purge, which notes the epoch that ended.
fn end_epoch(volume: &Volume) -> Result<u32> {
    prepare(volume)?;
    volume.purges().tally(PurgeCount::Purges);
    Ok(volume.purges().end_epoch() as u32)
}

/// Before an epoch ends: storage knows that the next ones may be used.
fn prepare(volume: &Volume) -> Result<()> {
    volume.check_writable()?;
    volume.mark_unclean()?;
    let purges = volume.purges();
    if purges.epoch() + RESERVE_LEFT < purges.reserved() {
        return Ok(());
    }
    let _lock = PurgeLock::acquire(volume)?;
    if purges.epoch() >= EPOCHS {
        begin_epochs_anew(volume)?;
    }
    if purges.epoch() + RESERVE_LEFT >= purges.reserved() {
        purges.set_reserved(purges.epoch() + RESERVE);
        volume.sync_superblock()?;
    }
    Ok(())
}

/// After four billion purges: empties the volume and forgets all purges. What is being written has an epoch that is still
/// to come, and is not stored.
fn begin_epochs_anew(volume: &Volume) -> Result<()> {
    crate::write::clear(volume)?;
    for number in 0..volume.layout.stripes as usize {
        Stripe::lock(volume, number)?.begin_sweeps_anew(0);
    }
    // Else a power loss could bring entries back whose purges are forgotten.
    volume.sync_all()?;
    forget_all(volume);
    volume.purges().tally(PurgeCount::EpochsEnded);
    Ok(())
}

fn forget_all(volume: &Volume) {
    let purges = volume.purges();
    for rule in purges.rules() {
        rule.clear();
    }
    for line in 0..volume.layout.tag_lines {
        for word in volume.tag_line_number(line) {
            word.store(0, SeqCst);
        }
    }
    purges.clear_floors();
    purges.set_newest_rule(0);
    purges.set_retired(0);
    purges.set_reserved(RESERVE);
    purges.set_epoch(1);
}

/// Who changes the rules. Each store leaves rules that readers can use: nothing is to be repaired after a death.
struct PurgeLock<'a>(&'a Volume);

impl<'a> PurgeLock<'a> {
    fn acquire(volume: &'a Volume) -> Result<Self> {
        lock::acquire(volume, volume.region.half(purges::LOCK_AT), "another purge")?;
        Ok(Self(volume))
    }
}

impl Drop for PurgeLock<'_> {
    fn drop(&mut self) {
        lock::release(self.0.region.half(purges::LOCK_AT));
    }
}

/// Whether what is noted can be true: nothing of an epoch that hasn't ended. `crashed`: the epoch's page may be older than
/// others, but no epoch from the reserved ones on was ever used.
pub(crate) fn is_sound(volume: &Volume, crashed: bool) -> bool {
    let purges = volume.purges();
    if crashed && purges.epoch() > purges.reserved() {
        return false;
    }
    let epoch = if crashed { purges.reserved() } else { purges.epoch() };
    let has_ended = |other: u32| u64::from(other) < epoch;
    let are_sound = |floors: purges::Floors| has_ended(floors.hard()) && has_ended(floors.soft());
    (1..=EPOCHS).contains(&epoch)
        && are_sound(purges.floors())
        && purges.newest_rule() < epoch
        && purges.retired() < epoch
        && purges.rules().filter_map(purges::Rule::load).all(|(_, noted)| has_ended(noted.epoch))
        && (0..volume.layout.tag_lines).all(|line| {
            let [floors, cells @ ..] = volume.tag_line_number(line);
            are_sound(purges::Floors(floors.load(Acquire)))
                && cells.iter().all(|cell| has_ended(Cell(cell.load(Acquire)).noted().epoch))
        })
}

/// For the first process of an attachment: nobody holds the lock. After power loss what was noted stays, and the epochs go
/// on behind all that can have been used. Where it isn't sound, the volume was emptied, and nothing is purged.
pub(crate) fn put_in_order(volume: &Volume, sound: bool, crashed: bool) -> std::io::Result<()> {
    let purges = volume.purges();
    volume.region.half(purges::LOCK_AT).store(0, Release);
    if !sound {
        // Else a power loss could bring entries back whose purges are forgotten.
        volume.region.sync(0, volume.region.len())?;
        forget_all(volume);
    } else if crashed {
        let epoch = purges.reserved();
        crate::seam::kill_point();
        purges.set_reserved(epoch + RESERVE);
        crate::seam::kill_point();
        purges.set_epoch(epoch);
    }
    Ok(())
}
