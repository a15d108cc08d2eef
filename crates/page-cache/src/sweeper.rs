//! The sweeper of the volume, which is told when there are many purges.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The function that is told that the volume should be swept.
#[derive(Default)]
pub(crate) struct Sweeper {
    told: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// It has been told, and hasn't swept yet.
    is_told: AtomicBool,
}

impl Sweeper {
    /// The first one stays.
    pub(crate) fn is(&self, told: impl Fn() + Send + Sync + 'static) {
        let _ = self.told.set(Box::new(told));
    }

    /// Tells it, once for each sweep.
    pub(crate) fn tell(&self) {
        if let Some(told) = self.told.get()
            && !self.is_told.swap(true, Ordering::Relaxed)
        {
            told();
        }
    }

    /// After a sweep. Until then, the purges that it covers still count.
    pub(crate) fn has_swept(&self) {
        self.is_told.store(false, Ordering::Relaxed);
    }
}

impl fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sweeper").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use eyewall::{Options, Purge};

    use super::*;
    use crate::store::{PurgeTarget, Store};

    #[test]
    fn purges_of_others_are_swept_too() {
        let cache = Options::new().size(4 << 20).heap().unwrap();
        while !cache.wants_sweep() {
            cache.purge_tag("of another process", Purge::Hard).unwrap();
        }
        let (store, wanted) = (Store::new(cache), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&wanted);
        store.tell_of_many_purges(move || {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        store.look_for_many_purges();
        store.purge(PurgeTarget::Tag("own"), Purge::Hard).unwrap();
        assert_eq!(wanted.load(Ordering::Relaxed), 1, "it was told once");
        store.sweep_while(|| true);
        store.purge(PurgeTarget::Tag("own"), Purge::Hard).unwrap();
        assert_eq!(wanted.load(Ordering::Relaxed), 1, "there is room again");
    }
}
