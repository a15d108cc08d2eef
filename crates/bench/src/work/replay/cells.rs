//! Which traces are replayed at which caps.

const KIB: u64 = 1024;

/// The cap of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cap {
    /// The volume file's bytes, rounded down to whole pages.
    Bytes(u64),
    /// As many values of one size as fit the data area; for traces that record no sizes.
    Objects {
        /// How many.
        objects: u64,
        /// Bytes of each.
        value_bytes: u64,
    },
}

/// A trace at a cap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    /// File name without `.txt.gz`.
    pub(super) trace: &'static str,
    /// The cap as a share of the trace's distinct bytes or objects, in percent.
    pub(super) percent: u64,
    /// The cap.
    pub(super) cap: Cap,
    /// Object hit ratio that the engine is held to; none: a cell to tune on that is not scored.
    pub(super) reference_percent: Option<f64>,
}

impl Cell {
    pub(super) fn name(&self) -> String {
        let held = if self.reference_percent.is_some() { "" } else { " (not scored)" };
        format!("{} {} %{held}", self.trace, self.percent)
    }

    /// Points that the engine may stay below its reference.
    pub(super) fn points_below_max(&self) -> f64 {
        match self.cap {
            Cap::Bytes(bytes) if bytes < 8_000_000 => 4.0,
            _ => 2.0,
        }
    }
}

const fn sized(trace: &'static str, percent: u64, cap_bytes: u64, reference_percent: Option<f64>) -> Cell {
    Cell { trace, percent, cap: Cap::Bytes(cap_bytes), reference_percent }
}

const fn equal(
    trace: &'static str,
    percent: u64,
    objects: u64,
    value_bytes: u64,
    reference_percent: Option<f64>,
) -> Cell {
    Cell { trace, percent, cap: Cap::Objects { objects, value_bytes }, reference_percent }
}

/// Cells of one trace stand together. The references are the object hit ratios published with the traces: S3-FIFO with
/// size thresholds where sizes are known, plain S3-FIFO where not.
pub(super) const CELLS: &[Cell] = &[
    sized("nasa-web", 1, 1_093_593, Some(75.2)),
    sized("nasa-web", 3, 3_280_779, None),
    sized("nasa-web", 10, 10_935_931, Some(86.7)),
    sized("adaptsize-web", 1, 3_042_135, Some(26.6)),
    sized("adaptsize-web", 3, 9_126_407, None),
    sized("adaptsize-web", 10, 30_421_357, Some(34.5)),
    // 138 values of 1 KiB are less than the smallest volume.
    equal("web12", 1, 138, 5 * KIB, None),
    equal("web12", 3, 413, 2 * KIB, None),
    equal("web12", 10, 1_376, KIB, Some(71.9)),
    equal("corda", 1, 905, KIB, Some(33.3)),
    equal("corda", 3, 2_714, KIB, None),
    equal("corda", 10, 9_047, KIB, None),
];
