//! A volume that no server has, for the node that applies the purges of the fleet there.
//!
//! The place in the log is an entry of the volume: `eyewall:fleet:NAME`, as a server has it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyewall::{Cache, Lookup, Purge as Kind, PutOptions};
use eyewall_fleet::{AsOf, Covers, Gap, Line, Notes, Place};
use eyewall_fleet_redis::Volume;

use crate::epochs::Epochs;
use crate::words::{Purging, Subject};

/// The volume.
pub(crate) struct Bare {
    cache: Cache,
    key: String,
    epochs: Arc<Mutex<Epochs>>,
}

impl Bare {
    /// The volume of `cache`, in the fleet of this name.
    pub(crate) fn new(cache: &Cache, fleet: &str) -> Self {
        Self { cache: cache.for_node(), key: format!("eyewall:fleet:{fleet}"), epochs: Arc::default() }
    }

    /// The epochs in which its lines were applied.
    pub(crate) fn epochs(&self) -> Arc<Mutex<Epochs>> {
        Arc::clone(&self.epochs)
    }

    fn epochs_now(&self) -> MutexGuard<'_, Epochs> {
        self.epochs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All lines up to this one are applied.
    fn has_applied(&self, as_of: AsOf) {
        if let Ok(epoch) = self.cache.epoch() {
            self.epochs_now().note(epoch.number(), as_of);
        }
    }

    fn purge(&self, subject: &Subject, kind: Kind) -> eyewall::Result<()> {
        match subject {
            // A tag of all sites is the tag of entries everywhere.
            Subject::EntryTag(tag) | Subject::Tag { tag, host: None } => self.cache.purge_tag(tag, kind),
            Subject::EntryPrefix(prefix) => self.cache.purge_prefix(prefix, kind),
            Subject::Everything => self.cache.purge_all(kind),
            // A bare volume has no sites.
            Subject::Url(_) | Subject::Tag { .. } | Subject::Prefix(_) | Subject::Host(_) => Ok(()),
        }
    }
}

impl Volume for Bare {
    fn saved(&self) -> Option<Place> {
        match self.cache.lookup(&self.key) {
            Ok(Lookup::Fresh(hit) | Lookup::Stale(hit)) => {
                let (crashes, place) = std::str::from_utf8(hit.value()).ok()?.split_once(' ')?;
                if self.cache.crashes().ok()? != crashes.parse::<u64>().ok()? {
                    tracing::warn!("this volume was copied, or the machine lost power: purges may be missing in it");
                    return None;
                }
                Place::parse(place)
            }
            _ => None,
        }
    }

    fn save(&self, place: &Place) {
        self.has_applied(AsOf::of(place));
        // Without it, the volume has failed, and takes no entry either.
        let Ok(crashes) = self.cache.crashes() else { return };
        let text = format!("{crashes} {}", place.to_text());
        // The look-up counts as a use, so that the entry stays.
        if self.cache.get(&self.key).is_ok_and(|hit| hit.is_some_and(|hit| hit.value() == text.as_bytes())) {
            return;
        }
        if let Err(error) = self.cache.put_with(&self.key, text, &PutOptions::new()) {
            tracing::debug!(%error, "the place in the purge log could not be saved");
        }
    }

    fn soften(&self, gap: Option<Gap>) -> bool {
        self.epochs_now().gap();
        match gap {
            Some(Gap::NoPlace) => tracing::info!("this volume follows the purge log of the fleet from now on"),
            Some(gap) => tracing::warn!(reason = gap.as_str(), "purges may be missing: all entries become stale"),
            None => tracing::debug!("cut off from the purge log: all entries become stale"),
        }
        is_done(self.cache.purge_all(Kind::Soft))
    }

    fn note(&self, line: &Line, notes: &mut Notes) {
        match Purging::decode(&line.purge) {
            Ok(purging) => notes.add(line, purging.subjects.iter().filter_map(covers)),
            Err(_) => notes.gap(),
        }
    }

    fn apply(&self, line: &Line) -> bool {
        match Purging::decode(&line.purge) {
            Ok(purging) => {
                let is_done = purging.subjects.iter().all(|subject| is_done(self.purge(subject, purging.kind())));
                if is_done {
                    // The place is saved later, and work that begins now is right about this line. A line of another reign than the one that
                    // is followed is applied only if none can be lost.
                    let (written_in, reign) = (line.reign.clone(), line.reign.clone());
                    self.has_applied(AsOf { line: line.number, written_in, reign });
                }
                is_done
            }
            Err(error) => {
                // A later version may know more. To be safe, it counts as a gap.
                tracing::warn!(line = line.number, %error, "the purge log has a line that this version can't read");
                false
            }
        }
    }
}

/// What a subject covers in a bare volume: the same as [`Bare::purge`].
fn covers(subject: &Subject) -> Option<Covers<'_>> {
    match subject {
        Subject::EntryTag(tag) | Subject::Tag { tag, host: None } => Some(Covers::Tag(tag)),
        Subject::EntryPrefix(prefix) => Some(Covers::Prefix(prefix)),
        Subject::Everything => Some(Covers::Everything),
        Subject::Url(_) | Subject::Tag { .. } | Subject::Prefix(_) | Subject::Host(_) => None,
    }
}

fn is_done(outcome: eyewall::Result<()>) -> bool {
    match outcome {
        // A tag or prefix that is too long has no entries.
        Ok(()) | Err(eyewall::Error::TagLength { .. } | eyewall::Error::KeyTooLong { .. }) => true,
        Err(error) => {
            tracing::warn!(%error, "a purge of the fleet could not be applied");
            false
        }
    }
}
