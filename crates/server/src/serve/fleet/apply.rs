//! Purges of other nodes, applied to this one's volume, and the place of the volume in the log.
//!
//! The place is an entry of the volume: `eyewall:fleet:NAME`. So it is as old as the other entries, also in a copy of the file. If it was
//! evicted, the next start makes everything stale. After a power loss it may be younger than other parts of the volume, so it is void.
//! The number of power losses in it tells.

use std::sync::Arc;

use eyewall::{Cache, Lookup, PutOptions};
use eyewall_fleet::{Gap, Line, Notes, Place};
use eyewall_fleet_redis::Volume;

use crate::serve::purge::{PurgeError, PurgeRequest};
use crate::serve::reload::Reloader;
use crate::serve::shared::Shared;

/// A volume of this server. Its calls may wait.
pub(super) struct Applier {
    reloader: Arc<Reloader>,
    cache: Cache,
    key: String,
}

impl Applier {
    pub(super) fn new(reloader: &Arc<Reloader>, cache: &Cache, fleet: &str) -> Self {
        Self { reloader: Arc::clone(reloader), cache: cache.clone(), key: format!("eyewall:fleet:{fleet}") }
    }
}

impl Volume for Applier {
    /// Also sets the moment before which responses are not sent stale while they are revalidated.
    fn saved(&self) -> Option<Place> {
        let found = match self.cache.lookup(&self.key) {
            Ok(Lookup::Fresh(hit) | Lookup::Stale(hit)) => String::from_utf8(hit.value().to_vec()).ok()?,
            _ => return None,
        };
        let (crashes, found) = found.split_once(' ')?;
        let (softened_ms, place) = found.split_once(' ')?;
        if self.cache.crashes().ok()? != crashes.parse::<u64>().ok()? {
            tracing::warn!("this volume was copied, or the machine lost power: purges may be missing in it");
            return None;
        }
        self.reloader.shared().pages.soften_before(softened_ms.parse().ok()?);
        Place::parse(place)
    }

    fn save(&self, place: &Place) {
        let softened_ms = self.reloader.shared().pages.softened_before();
        // Without it, the volume has failed, and takes no entry either.
        let Ok(crashes) = self.cache.crashes() else { return };
        let text = format!("{crashes} {softened_ms} {}", place.to_text());
        // The look-up counts as a use, so that the entry stays.
        if self.cache.get(&self.key).is_ok_and(|hit| hit.is_some_and(|hit| hit.value() == text.as_bytes())) {
            return;
        }
        if let Err(error) = self.cache.put_with(&self.key, text, &PutOptions::new()) {
            tracing::debug!(%error, "the place in the purge log could not be saved");
        }
    }

    fn soften(&self, gap: Option<Gap>) -> bool {
        soften(&self.reloader.shared(), gap)
    }

    fn note(&self, line: &Line, notes: &mut Notes) {
        match PurgeRequest::decode(&line.purge) {
            Ok(purge_request) => self.reloader.shared().note(&purge_request, line, notes),
            Err(_) => notes.gap(),
        }
    }

    fn note_earlier(&self, line: &Line, notes: &mut Notes) -> bool {
        let purge_request = PurgeRequest::decode(&line.purge);
        purge_request.is_ok_and(|purge_request| self.reloader.shared().note_earlier(&purge_request, line, notes))
    }

    fn apply(&self, line: &Line) -> bool {
        apply(&self.reloader.shared(), line)
    }
}

/// Makes everything stale. False: the volume has failed to.
fn soften(shared: &Shared, gap: Option<Gap>) -> bool {
    match gap {
        Some(Gap::NoPlace) => tracing::info!("this volume follows the purge log of the fleet from now on"),
        Some(gap) => {
            let reason = gap.as_str();
            tracing::warn!(reason, "purges may be missing: everything that is stored will be revalidated");
        }
        None => tracing::debug!("cut off from the purge log: everything that is stored will be revalidated"),
    }
    shared.pages.store.logged(shared.pages.distrust()).is_some()
}

/// Applies the purge of a line. False: the volume has failed to.
fn apply(shared: &Shared, line: &Line) -> bool {
    let purge_request = match PurgeRequest::decode(&line.purge) {
        Ok(purge_request) => purge_request,
        Err(error) => {
            // A later version may know more. To be safe, it counts as a gap.
            tracing::warn!(line = line.number, %error, "the purge log has a line that this version can't read");
            return false;
        }
    };
    match shared.purge(&purge_request) {
        Ok(_) => true,
        Err(PurgeError::Volume(error)) => {
            tracing::warn!(%error, "a purge of the fleet could not be applied");
            false
        }
        Err(error) => {
            // Another node has other sites.
            tracing::debug!(line = line.number, %error, "a purge of the fleet has nothing to do with this node");
            true
        }
    }
}
