//! Checking a whole volume, and putting right what can be.

use serde::Serialize;

use crate::cache::Cache;
use crate::error::{Error, Result};
use crate::stripe::{Stripe, Walk};
use crate::volume::Volume;

/// So much of a stripe is read for its checksums before its lock is given back, at least.
const DEEP_BYTES_AT_ONCE: u64 = 1 << 20;
/// So many problems of one kind are told for each stripe; more of them say nothing new.
const TOLD_MAX: usize = 20;

/// What [`Cache::verify_with`] does beside walking the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Check {
    deep: bool,
    repair: bool,
}

impl Check {
    /// Neither reads values nor changes anything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether every live entry is read, and held against its checksum.
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Whether what contradicts the format is dropped: rings whose log doesn't read as one, slots that name no entry of
    /// theirs, entries that fail their checksum. Counts are taken anew.
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
    /// Records of all logs: entries, dead ones, filler.
    pub records: u64,
    /// Entries that were held against their checksums.
    pub entries_read: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// What contradicts the format's invariants, one sentence each.
    pub problems: Vec<String>,
    /// What was done about it.
    pub repairs: Repairs,
}

/// What [`Check::repair`] has dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Repairs {
    /// Rings that were emptied, because their log doesn't read as one.
    pub rings_emptied: u64,
    /// Rings that are to be emptied, and can't be as long as readers hold bytes in them; puts will do it.
    pub rings_held: u64,
    /// Slots that named no entry of theirs.
    pub slots_dropped: u64,
    /// Entries that failed their checksum.
    pub entries_dropped: u64,
    /// Stripes that were counted anew.
    pub stripes_counted: u64,
}

impl Report {
    /// Whether nothing was found wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Cache {
    /// As [`Cache::verify`]; on demand it reads every entry, and drops what is damaged.
    ///
    /// Reading gives a stripe's lock back after each MiB, so that writers wait for less than a millisecond; walking the logs,
    /// and repairing them, holds it until the stripe is through.
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

/// Walks every stripe under its lock: logs, index, and the counts of both.
pub(crate) fn verify(volume: &Volume, check: Check) -> Result<Report> {
    let mut report = Report::default();
    if volume.read_only {
        let path = volume.membership.path().unwrap_or_else(|| "the volume".as_ref()).to_owned();
        return Err(Error::ReadOnly { path, advice: "verifying needs the stripes' locks; open it for writing" });
    }
    volume.check_writable()?;
    volume.mark_unclean()?;
    for number in 0..volume.layout.stripes as usize {
        // One chunk after the other: others get the lock in between.
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
