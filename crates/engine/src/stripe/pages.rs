//! The pages of a tier's stripe: given step by step before it is used for the first time, given back under memory pressure.
//!
//! ```text
//!   none --a step each--> some --> all: may be written --give back--> leaving --> none
//! ```
//!
//! Shared memory that has no page when it is touched would get one, or the process SIGBUS where there is none left. So pages
//! are asked for by a call that can fail, and a stripe is written only when it has all of them.

use std::io;

use super::{RingId, Stripe, Word};
use crate::error::{Error, Result};

/// Given at a time: some hundred microseconds' work.
const STEP_BYTES: u64 = 2 << 20;
/// In [`Word::Present`]: nothing is in the stripe, but its pages may be there.
const LEAVING: u64 = 1 << 63;

impl Stripe<'_> {
    /// So many bytes of its data, from their start on, have pages.
    pub(crate) fn present(&self) -> u64 {
        let word = self.get(Word::Present);
        if word & LEAVING == 0 { word.min(self.volume.layout.stripe_data_bytes()) } else { 0 }
    }

    /// Whether there may be pages to give back.
    pub(crate) fn has_pages(&self) -> bool {
        self.get(Word::Present) != 0
    }

    /// How many bytes have no page yet; written may be only what has all.
    pub(crate) fn missing(&self) -> u64 {
        self.volume.layout.stripe_data_bytes() - self.present()
    }

    /// Gives the next pages; returns for how many bytes.
    pub(crate) fn grow(&self) -> io::Result<u64> {
        let bytes = self.missing().min(STEP_BYTES);
        let Some(door) = self.volume.membership.door() else { return Ok(0) };
        let start = self.volume.layout.stripe_data_at(self.number) + self.present();
        door.give_blocks(start, bytes)?;
        self.set(Word::Present, self.present() + bytes);
        Ok(bytes)
    }

    /// Drops everything and gives the pages back.
    ///
    /// # Errors
    /// `Pinned` while somebody holds some of it: then no slot names any of it, and the next that comes finishes it.
    pub(crate) fn give_back(&mut self) -> Result<()> {
        for id in RingId::BOTH {
            self.demand_reset(id);
        }
        for id in RingId::BOTH {
            self.finish_reset(id)?;
        }
        // Words that were lost would have said that nothing was to be emptied, and pins that nobody holds any.
        self.volume.check_intact()?;
        for word in
            [Word::Entries, Word::LiveBytes, Word::MainEntries, Word::MainBytes, Word::FillerBytes, Word::Recount]
        {
            self.set(word, 0);
        }
        // A death before the pages are gone leaves them to whoever gives back next.
        self.set(Word::Present, LEAVING);
        let layout = &self.volume.layout;
        let (start, bytes) = (layout.stripe_data_at(self.number) as usize, layout.stripe_data_bytes() as usize);
        // Both rings are empty: no slot names any of the bytes, no pin holds any, we hold the lock, and nobody writes to the
        // stripe before it has its pages again.
        let given = self.volume.region.give_back(start, bytes);
        given.map_err(|error| Error::io("giving back the pages of", self.volume.name(), error))?;
        self.set(Word::Present, 0);
        Ok(())
    }
}
