//! Files that are sent from themselves stay open for a moment, so that the next request for one needn't open it again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::representation::Representation;
use crate::sendable::Sendable;
use crate::store::Store;

/// The maximum number of files that are kept open without a request.
const FILES_MAX: usize = 64;
/// A file that nobody asked for during this time is closed. An open file keeps its room on the disk although it was removed.
const UNUSED: Duration = Duration::from_secs(1);

/// The open files of a process.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Vec<OpenFile>>);

struct OpenFile {
    representation: Arc<Representation>,
    sendable: Sendable,
    used: Instant,
}

impl OpenFiles {
    /// The file of a representation, if it is open.
    pub(crate) fn find(&self, representation: &Arc<Representation>) -> Option<Sendable> {
        let mut files = self.files();
        let file = files.iter_mut().find(|file| Arc::ptr_eq(&file.representation, representation))?;
        file.used = Instant::now();
        Some(file.sendable.clone())
    }

    /// Keeps a file open. Returns whether it is the first one, so that the caller has to [close](close_unused) it some time.
    #[must_use]
    pub(crate) fn keep(&self, representation: &Arc<Representation>, sendable: &Sendable) -> bool {
        let mut files = self.files();
        if files.iter().any(|file| Arc::ptr_eq(&file.representation, representation)) {
            return false;
        }
        let is_first = files.is_empty();
        if files.len() >= FILES_MAX
            && let Some((oldest, _)) = files.iter().enumerate().min_by_key(|(_, file)| file.used)
        {
            files.swap_remove(oldest);
        }
        let (representation, sendable) = (Arc::clone(representation), sendable.clone());
        files.push(OpenFile { representation, sendable, used: Instant::now() });
        is_first
    }

    /// Closes those that nobody has used for a while. Returns whether some are left.
    fn close_unused(&self, now: Instant) -> bool {
        let mut files = self.files();
        files.retain(|file| now.saturating_duration_since(file.used) < UNUSED);
        !files.is_empty()
    }

    fn files(&self) -> MutexGuard<'_, Vec<OpenFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes files that are not used any more, until none is left.
pub(crate) async fn close_unused(store: Weak<Store>) {
    loop {
        tokio::time::sleep(UNUSED).await;
        if store.upgrade().is_none_or(|store| !store.open_files.close_unused(Instant::now())) {
            return;
        }
    }
}
