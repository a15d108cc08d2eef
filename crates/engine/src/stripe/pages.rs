//! The pages of a tier's stripe: given step by step before it is used for the first time, given back under memory pressure.
//!
//! ```text
//!   none --a step each--> some --> all: may be written --give back--> leaving --a step each--> none
//! ```
//!
//! Shared memory that has no page when it is touched would get one, or the process SIGBUS where there is none left. So pages
//! are asked for by a call that can fail, and a stripe is written only when it has all of them.

use std::io;

use super::{RingId, Stripe, Word};
use crate::error::{Error, Result};
use crate::format::layout::PAGE;

/// Given at a time: some hundred microseconds' work.
const STEP_BYTES: u64 = 2 << 20;
/// Given back at a time, by whoever has asked for something: some milliseconds' work.
const STEP_BACK_BYTES: u64 = 16 << 20;
/// In [`Word::Present`], with the bytes of its data, from their start on, whose pages are gone: nothing is in the stripe, but the
/// other pages may be there.
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

    /// Whether giving back was begun, and isn't at its end.
    pub(crate) fn is_leaving(&self) -> bool {
        self.get(Word::Present) & LEAVING != 0
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

    /// Drops everything and gives all pages back.
    pub(crate) fn give_all_back(&mut self) -> Result<()> {
        while !self.give_back()? {}
        Ok(())
    }

    /// Drops everything and gives some pages back. True: none is left.
    ///
    /// # Errors
    /// `Pinned` while somebody holds some of it: then no slot names any of it, and the next that comes finishes it.
    pub(crate) fn give_back(&mut self) -> Result<bool> {
        if !self.is_leaving() {
            self.drop_all()?;
        }
        let layout = &self.volume.layout;
        let (first, bytes) = (layout.stripe_data_at(self.number), layout.stripe_data_bytes());
        let (start, end) = (first + (self.get(Word::Present) & !LEAVING).min(bytes), first + bytes);
        // Steps end between pages, so that each page lies in one of them.
        let next = if end - start > STEP_BACK_BYTES { (start + STEP_BACK_BYTES) / PAGE * PAGE } else { end };
        // Both rings are empty: no slot names any of the bytes, no pin holds any, we hold the lock, and nobody writes to the
        // stripe before it has its pages again.
        // A lock that was lost is nobody's.
        self.volume.check_intact()?;
        let given = self.volume.region.give_back(start as usize, (next - start) as usize);
        given.map_err(|error| Error::io("giving back the pages of", self.volume.name(), error))?;
        self.set(Word::Present, if next < end { LEAVING | (next - first) } else { 0 });
        Ok(next == end)
    }

    /// Empties both rings.
    fn drop_all(&mut self) -> Result<()> {
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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::options::Options;
    use crate::tier;

    #[test]
    fn a_large_stripe_is_given_back_step_by_step_and_to_its_last_page() {
        // In shared memory, as tiers are: 512 MiB of it are promised to nobody, and 20 taken.
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let options = Options::new().size(1 << 20).tier(512 << 20).tier_folder(folder.path());
        let cache = options.open(folder.path().join("volume")).unwrap();
        let behind = cache.volume().this.upgrade().unwrap();
        let tiers = tier::open(&options, &behind).unwrap().unwrap();
        let volume = &*tiers.of(&behind).unwrap().volume;
        let blocks = || volume.membership.path().unwrap().metadata().unwrap().blocks() * 512;
        let before = blocks();
        let mut stripe = Stripe::lock(volume, 3).unwrap();
        while stripe.present() < 20 << 20 {
            stripe.grow().unwrap();
        }
        assert_eq!(blocks() - before, (20 << 20) + PAGE, "they begin within a page");
        assert!(!stripe.give_back().unwrap());
        assert_eq!((stripe.is_leaving(), stripe.has_pages(), stripe.present()), (true, true, 0));
        assert!((4 << 20..=5 << 20).contains(&(blocks() - before)), "a step, and no more");
        stripe.give_all_back().unwrap();
        assert_eq!((stripe.is_leaving(), stripe.has_pages()), (false, false));
        assert!(blocks() - before <= 2 * PAGE, "but for pages that are shared with its neighbours");
    }
}
