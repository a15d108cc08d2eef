//! Checks of a whole volume, and repairs of what can be repaired.

use serde::Serialize;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::stripe::{Stripe, Walk};
use crate::volume::Volume;

/// How many bytes of a stripe are at least read for their checksums before its lock is released.
const DEEP_BYTES_AT_ONCE: u64 = 1 << 20;
/// How many problems of one kind are reported for each stripe. More of them say nothing new.
const TOLD_MAX: usize = 20;

/// What [`Cache::verify_with`] does in addition to walking the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Check {
    deep: bool,
    repair: bool,
}

impl Check {
    /// Reads no values and changes nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to read every live entry and compare it with its checksum.
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Whether to drop what contradicts the format: rings whose log can't be read as one, slots that don't name an
    /// entry of theirs, and entries that fail their checksum. Also recounts.
    pub fn repair(mut self, repair: bool) -> Self {
        self.repair = repair;
        self
    }
}

/// What [`Cache::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Live entries.
    pub entries: u64,
    /// Records of all logs: live entries, dead entries and filler.
    pub records: u64,
    /// Entries that were compared with their checksums.
    pub entries_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// What contradicts the invariants of the format, one sentence each.
    pub problems: Vec<String>,
    /// The repairs.
    pub repairs: Repairs,
}

/// What [`Check::repair`] dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Repairs {
    /// Rings that were emptied, because their log couldn't be read as one.
    pub rings_emptied: u64,
    /// Rings that must be emptied and can't be yet, because readers hold bytes in them. Later puts will do it.
    pub rings_held: u64,
    /// Slots that didn't name an entry of theirs.
    pub slots_dropped: u64,
    /// Entries that failed their checksum.
    pub entries_dropped: u64,
    /// Stripes that were recounted.
    pub stripes_counted: u64,
}

impl Report {
    /// Whether no problem was found.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Cache {
    /// Like [`Cache::verify`]; if asked, also reads every entry and drops what is damaged.
    ///
    /// Reading releases a stripe's lock after each MiB, so writers wait for less than a millisecond. Walking and
    /// repairing the logs hold it until the stripe is done.
    ///
    /// ```
    /// use eyewall::{Check, Options};
    ///
    /// let cache = Options::new().heap()?;
    /// cache.put("key", "value")?;
    /// let report = cache.verify_with(&Check::new().deep(true))?;
    /// assert!(report.is_sound() && report.entries_read == 1);
    /// # Ok::<(), eyewall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly), [`Busy`](crate::Error::Busy).
    pub fn verify_with(&self, check: &Check) -> Result<Report> {
        self.vouched(|volume| verify(volume, *check))
    }
}

/// Checks logs, index and counts of every stripe under its lock.
pub(crate) fn verify(volume: &Volume, check: Check) -> Result<Report> {
    let mut report = Report::default();
    if volume.read_only {
        let path = volume.membership.path().unwrap_or_else(|| "the volume".as_ref()).to_owned();
        return Err(Error::ReadOnly {
            path,
            advice: "verifying needs write access, to lock stripes; open it for writing",
        });
    }
    volume.check_writable()?;
    volume.mark_unclean()?;
    for number in 0..volume.layout.stripes as usize {
        // Chunk by chunk, so that others get the lock in between.
        while Stripe::lock(volume, number)?.tile_more() {}
        walk(volume, number, check, &mut report)?;
        if check.deep {
            read(volume, number, check, &mut report)?;
        }
    }
    Ok(report)
}

fn walk(volume: &Volume, number: usize, check: Check, report: &mut Report) -> Result<()> {
    let mut stripe = Stripe::lock(volume, number)?;
    stripe.recount_if_needed();
    let audit = stripe.audit();
    report.entries += audit.entries;
    report.records += audit.records;
    let found = report.problems.len();
    report.problems.extend(stripe.compare(&audit));
    report.problems.extend(told(audit.problems, number));
    if check.repair && report.problems.len() > found {
        let mended = stripe.mend();
        report.repairs.rings_emptied += mended.rings_emptied;
        report.repairs.rings_held += mended.rings_held;
        report.repairs.slots_dropped += mended.slots_dropped;
        report.repairs.stripes_counted += 1;
    }
    Ok(())
}

/// Reads every live entry of a stripe.
fn read(volume: &Volume, number: usize, check: Check, report: &mut Report) -> Result<()> {
    let mut problems = Vec::new();
    let mut walk = Some(Walk::default());
    while let Some(mut next) = walk {
        let stripe = Stripe::lock(volume, number)?;
        let buckets = stripe.buckets();
        let enough = report.bytes_read + DEEP_BYTES_AT_ONCE;
        walk = loop {
            let Some((first, second)) = next.class(buckets) else { break None };
            for bucket in [Some(first), second].into_iter().flatten() {
                let seen = stripe.read_bucket(bucket, check.repair);
                report.entries_read += seen.entries;
                report.bytes_read += seen.bytes;
                report.repairs.entries_dropped += seen.dropped;
                let damaged = |position| format!("stripe {number}: the entry at {position} fails its checksum");
                problems.extend(seen.damaged.into_iter().map(damaged));
            }
            next = next.next(buckets);
            if report.bytes_read >= enough {
                break Some(next);
            }
        };
    }
    report.problems.extend(told(problems, number));
    Ok(())
}

fn told(mut problems: Vec<String>, stripe: usize) -> Vec<String> {
    if let Some(more) = problems.len().checked_sub(TOLD_MAX + 1) {
        problems.truncate(TOLD_MAX);
        problems.push(format!("stripe {stripe}: {} more like these", more + 1));
    }
    problems
}
