//! The pages of a tier's stripe: taken step by step before its first use, and given back under memory pressure.
//!
//! ```text
//!   none --a step each--> some --> all: may be written --give back--> leaving --a step each--> none
//! ```
//!
//! When shared memory without a page is touched, the kernel allocates one, or sends SIGBUS if none is left. So the
//! engine asks for pages by a call that can fail, and writes a stripe only once it has all of its pages.

use std::io;

use super::{RingId, Stripe, Word};
use crate::error::{Error, Result};
use crate::format::layout::PAGE;

/// How much is taken at a time: the work of some hundred microseconds.
const STEP_BYTES: u64 = 2 << 20;
/// How much is given back at a time, by a process in the middle of a call: the work of some milliseconds.
const STEP_BACK_BYTES: u64 = 16 << 20;
/// A flag in [`Word::Present`]: the stripe is empty, and the pages of its first bytes are gone, as many as the word
/// counts. The other pages may still be there.
const LEAVING: u64 = 1 << 63;

impl Stripe<'_> {
    /// How many bytes of its data, counted from their start, have pages.
    pub(crate) fn present(&self) -> u64 {
        let word = self.get(Word::Present);
        if word & LEAVING == 0 { word.min(self.volume.layout.stripe_data_bytes()) } else { 0 }
    }

    /// Whether there may be pages to give back.
    pub(crate) fn has_pages(&self) -> bool {
        self.get(Word::Present) != 0
    }

    /// Whether giving back was begun and isn't complete.
    pub(crate) fn is_leaving(&self) -> bool {
        self.get(Word::Present) & LEAVING != 0
    }

    /// How many bytes have no page yet. The stripe may be written only if all have one.
    pub(crate) fn missing(&self) -> u64 {
        self.volume.layout.stripe_data_bytes() - self.present()
    }

    /// Takes the next pages, and returns for how many bytes.
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

    /// Drops everything and gives some pages back. Returns true if none is left.
    ///
    /// # Errors
    /// `Pinned` while somebody holds bytes of it. Then no slot names any of it, and the next caller finishes the
    /// work.
    pub(crate) fn give_back(&mut self) -> Result<bool> {
        if !self.is_leaving() {
            self.drop_all()?;
        }
        let layout = &self.volume.layout;
        let (first, bytes) = (layout.stripe_data_at(self.number), layout.stripe_data_bytes());
        let (start, end) = (first + (self.get(Word::Present) & !LEAVING).min(bytes), first + bytes);
        // Steps end between pages, so each page lies in one of them.
        let next = if end - start > STEP_BACK_BYTES { (start + STEP_BACK_BYTES) / PAGE * PAGE } else { end };
        // Both rings are empty: no slot names any of the bytes, and no pin holds any. We hold the lock, and nobody
        // writes to the stripe before it has its pages again. A lost lock belongs to nobody, hence this check.
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
        // Lost words would have said that nothing must be emptied, and that no pin holds anything.
        self.volume.check_intact()?;
        for word in
            [Word::Entries, Word::LiveBytes, Word::MainEntries, Word::MainBytes, Word::FillerBytes, Word::Recount]
        {
            self.set(word, 0);
        }
        // A death before the pages are gone leaves them to the next process that gives pages back.
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
        // In shared memory, as tiers are. The tier may take 512 MiB, and takes 20.
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
        assert_eq!(blocks() - before, (20 << 20) + PAGE, "the stripe begins within a page");
        assert!(!stripe.give_back().unwrap());
        assert_eq!((stripe.is_leaving(), stripe.has_pages(), stripe.present()), (true, true, 0));
        assert!((4 << 20..=5 << 20).contains(&(blocks() - before)), "one step and no more");
        stripe.give_all_back().unwrap();
        assert_eq!((stripe.is_leaving(), stripe.has_pages()), (false, false));
        assert!(blocks() - before <= 2 * PAGE, "except for pages shared with its neighbours");
    }
}
