//! Extents: what lies where in a volume's rings.

use serde::Serialize;

use crate::cache::Cache;
use crate::error::Result;
use crate::stripe::{RingId, Stripe};
use crate::volume::Volume;

pub use crate::stripe::ExtentKind;

/// Consecutive bytes of a ring that are of the same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Extent {
    /// The number of the stripe.
    pub stripe: u64,
    /// The ring of the stripe.
    pub ring: RingKind,
    /// Bytes from the start of the ring.
    pub start: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// What the bytes hold.
    pub kind: ExtentKind,
}

/// The two rings of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RingKind {
    /// Takes new entries.
    Small,
    /// Keeps entries that had enough hits.
    Main,
}

impl From<RingId> for RingKind {
    fn from(id: RingId) -> Self {
        match id {
            RingId::Small => Self::Small,
            RingId::Main => Self::Main,
        }
    }
}

impl Cache {
    /// Calls `f` with the extents of each stripe in turn: those of the small ring, then those of main, each from its
    /// start. Neighbours differ in kind, and the extents of a ring cover it completely.
    ///
    /// Each stripe is examined under its lock; `f` runs without it. A read-only opener examines stripes without the
    /// lock, so bytes that change meanwhile may look damaged.
    ///
    /// # Errors
    /// [`Busy`](crate::Error::Busy).
    pub fn extents(&self, mut f: impl FnMut(&[Extent])) -> Result<()> {
        self.vouched(|volume| {
            for number in 0..volume.layout.stripes as usize {
                f(&of_stripe(volume, number)?);
            }
            Ok(())
        })
    }
}

fn of_stripe(volume: &Volume, number: usize) -> Result<Vec<Extent>> {
    let may_lock = volume.check_writable().is_ok();
    let stripe = if may_lock { Stripe::lock(volume, number)? } else { Stripe::unlocked(volume, number) };
    let named = stripe.landmarks();
    let mut extents: Vec<Extent> = Vec::new();
    for id in RingId::BOTH {
        let mut pieces: Vec<(u64, u64, ExtentKind)> = Vec::new();
        stripe.survey(id, &named, |start, bytes, kind| match pieces.last_mut() {
            Some((last, length, same)) if *same == kind && *last + *length == start => *length += bytes,
            _ => pieces.push((start, bytes, kind)),
        });
        // The survey begins at the log's tail; the extents begin at the ring's start.
        pieces.sort_unstable_by_key(|(start, ..)| *start);
        let first = extents.len();
        for (start, bytes, kind) in pieces {
            match extents[first..].last_mut() {
                Some(last) if last.kind == kind => last.bytes += bytes,
                _ => extents.push(Extent { stripe: number as u64, ring: id.into(), start, bytes, kind }),
            }
        }
    }
    Ok(extents)
}
