//! Checking a whole volume.

use serde::Serialize;

use crate::error::{Error, Result};
use crate::stripe::Stripe;
use crate::volume::Volume;

/// What [`crate::Cache::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Live entries.
    pub entries: u64,
    /// Records of all logs: entries, dead ones, filler.
    pub records: u64,
    /// What contradicts the format's invariants, one sentence each.
    pub problems: Vec<String>,
}

impl Report {
    /// Whether nothing was found wrong.
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Walks every stripe under its lock: logs, index, and the counts of both.
pub(crate) fn verify(volume: &Volume) -> Result<Report> {
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
        let stripe = Stripe::lock(volume, number)?;
        stripe.recount_if_needed();
        let audit = stripe.audit();
        report.entries += audit.entries;
        report.records += audit.records;
        report.problems.extend(stripe.compare(&audit));
        report.problems.extend(audit.problems);
    }
    Ok(report)
}
