//! Purges of this node that nobody waits for, until it has read their lines.
//!
//! They have no number yet, so the notes can't judge by them. Until then, the node takes no foreign response that they cover. If too many
//! wait, one purge of everything takes the place of the others.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};

use eyewall_fleet::{Covers, Subject};

use crate::handle::locked;

/// What they cover.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    hasher: RandomState,
    covered: Mutex<Covered>,
}

#[derive(Debug, Default)]
struct Covered {
    /// By the hash of a tag or an address: how many purges cover it.
    counts: HashMap<u64, u32>,
    /// How many cover more than that.
    wide: u32,
    /// Some have found no place, so a purge of everything is due.
    is_missing: bool,
}

/// One of these purges. Drop it once its line is read.
#[derive(Debug)]
pub(crate) struct Pending {
    unread: Arc<Unread>,
    hashes: Vec<u64>,
    is_wide: bool,
}

impl Unread {
    /// A purge begins to wait.
    pub(crate) fn begin<'a>(self: &Arc<Self>, covers: impl IntoIterator<Item = Covers<'a>>) -> Pending {
        let (mut hashes, mut is_wide) = (Vec::new(), false);
        for covers in covers {
            match covers {
                Covers::Address(address) => hashes.push(self.of_address(address)),
                Covers::Tag(tag) => hashes.push(self.of_tag(tag)),
                Covers::Prefix(_) | Covers::Everything => is_wide = true,
            }
        }
        let mut covered = locked(&self.covered);
        for hash in &hashes {
            *covered.counts.entry(*hash).or_default() += 1;
        }
        covered.wide += u32::from(is_wide);
        drop(covered);
        Pending { unread: Arc::clone(self), hashes, is_wide }
    }

    /// Whether one that waits covers this.
    pub(crate) fn covers(&self, subject: Subject<'_>) -> bool {
        let covered = locked(&self.covered);
        let has = |hash| covered.counts.contains_key(&hash);
        covered.is_missing
            || covered.wide > 0
            || !covered.counts.is_empty()
                && (has(self.of_address(subject.address)) || subject.tags.iter().any(|tag| has(self.of_tag(tag))))
    }

    /// One has found no place in the queue. Until a purge of everything is read, everything is covered.
    pub(crate) fn is_missing(&self) {
        locked(&self.covered).is_missing = true;
    }

    /// The purge of everything that is due, if it is.
    pub(crate) fn missing(self: &Arc<Self>) -> Option<Pending> {
        let mut covered = locked(&self.covered);
        let is_due = std::mem::take(&mut covered.is_missing);
        covered.wide += u32::from(is_due);
        is_due.then(|| Pending { unread: Arc::clone(self), hashes: Vec::new(), is_wide: true })
    }

    fn of_address(&self, address: &str) -> u64 {
        self.hasher.hash_one((0u8, address))
    }

    fn of_tag(&self, tag: &str) -> u64 {
        self.hasher.hash_one((1u8, tag))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut covered = locked(&self.unread.covered);
        for hash in &self.hashes {
            if let Some(count) = covered.counts.get_mut(hash) {
                *count -= 1;
                if *count == 0 {
                    covered.counts.remove(hash);
                }
            }
        }
        covered.wide -= u32::from(self.is_wide);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_covered_until_it_is_read() {
        let (unread, tags) = (Arc::new(Unread::default()), ["t".to_owned()]);
        let covers = |address| unread.covers(Subject { address, key: b"", tags: &tags });
        let of_page = unread.begin([Covers::Address("/a")]);
        assert!(covers("/a") && !covers("/b"));
        let [again, of_tag] = [Covers::Address("/a"), Covers::Tag("t")].map(|covers| unread.begin([covers]));
        assert!(covers("/b"));
        drop((of_page, of_tag));
        assert!(covers("/a") && !covers("/b"));
        drop(again);
        assert!(!covers("/a") && unread.missing().is_none());
        unread.is_missing();
        assert!(covers("/b"));
        let everything = unread.missing().unwrap();
        assert!(covers("/b") && unread.missing().is_none());
        drop(everything);
        assert!(!covers("/b"));
    }
}
