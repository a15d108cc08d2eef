//! The files that are sent from themselves. All responses from a file share one descriptor. It stays open for a moment after them, so that the
//! next request needn't open the file again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;

use crate::sendable::Sendable;
use crate::store::Store;

/// The maximum number of files that are kept open without a request.
const FILES_MAX: usize = 64;
/// A file that nobody asked for during this time is closed. An open file keeps its room on the disk although it was removed.
const UNUSED: Duration = Duration::from_secs(1);

/// The open file of a representation, as long as somebody holds it: a response, or [`OpenFiles`].
#[derive(Debug, Default)]
pub(crate) struct SharedFile(Mutex<Weak<Sendable>>);

impl SharedFile {
    /// The file, if it is open.
    pub(crate) fn find(&self) -> Option<Arc<Sendable>> {
        self.file().upgrade()
    }

    /// Shares a file that was just opened. Returns the one to use, which another request may have opened first.
    pub(crate) fn share(&self, opened: Sendable) -> Arc<Sendable> {
        let mut file = self.file();
        file.upgrade().unwrap_or_else(|| {
            let opened = Arc::new(opened);
            *file = Arc::downgrade(&opened);
            opened
        })
    }

    fn file(&self) -> MutexGuard<'_, Weak<Sendable>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files of a process that stay open for a moment.
#[derive(Default)]
pub(crate) struct OpenFiles(Mutex<Vec<OpenFile>>);

struct OpenFile {
    sendable: Arc<Sendable>,
    used: Instant,
}

impl OpenFiles {
    /// Keeps a file open from its last use on. Returns whether it is the only one, so that the caller has to [close](close_unused) it some
    /// time, and a file that had to give way. Drop that one where closing may wait: the last descriptor of a removed file gives its room back.
    #[must_use]
    fn keep(&self, sendable: &Arc<Sendable>, now: Instant) -> (bool, Option<OpenFile>) {
        let mut files = self.files();
        if let Some(file) = files.iter_mut().find(|file| Arc::ptr_eq(&file.sendable, sendable)) {
            file.used = now;
            return (false, None);
        }
        let is_first = files.is_empty();
        let oldest = files.iter().enumerate().min_by_key(|(_, file)| file.used).map(|(place, _)| place);
        let closed = oldest.filter(|_| files.len() >= FILES_MAX).map(|oldest| files.swap_remove(oldest));
        files.push(OpenFile { sendable: Arc::clone(sendable), used: now });
        (is_first, closed)
    }

    /// Takes out those that nobody has used for a while. Returns also whether some are left.
    fn take_unused(&self, now: Instant) -> (Vec<OpenFile>, bool) {
        let mut files = self.files();
        let unused = files.extract_if(.., |file| now.saturating_duration_since(file.used) >= UNUSED).collect();
        (unused, !files.is_empty())
    }

    fn files(&self) -> MutexGuard<'_, Vec<OpenFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a file open for a moment after this request. It needs a Tokio runtime.
pub(crate) fn keep(store: &Arc<Store>, sendable: &Arc<Sendable>) {
    let (is_first, closed) = store.open_files.keep(sendable, Instant::now());
    if let Some(closed) = closed {
        spawn_blocking(move || drop(closed));
    }
    if is_first {
        tokio::spawn(close_unused(Arc::downgrade(store)));
    }
}

/// Closes files that are not used any more, until none is left.
async fn close_unused(store: Weak<Store>) {
    loop {
        tokio::time::sleep(UNUSED).await;
        let Some((unused, is_some_left)) = store.upgrade().map(|store| store.open_files.take_unused(Instant::now()))
        else {
            return;
        };
        spawn_blocking(move || drop(unused));
        if !is_some_left {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` if the folder for temporary files is of a kind that isn't sent so.
    fn sendable() -> Option<Sendable> {
        Sendable::of(&Arc::new(tempfile::tempfile().unwrap()))
    }

    #[test]
    fn a_request_shares_the_file_of_a_response_that_is_being_sent() {
        let (Some(first), Some(second)) = (sendable(), sendable()) else { return };
        let (shared, open_files, now) = (SharedFile::default(), OpenFiles::default(), Instant::now());
        assert!(shared.find().is_none());
        let response = shared.share(first);
        assert!(Arc::ptr_eq(&shared.share(second), &response), "two requests opened it at the same time");
        assert!(open_files.keep(&response, now).0);
        let (unused, is_some_left) = open_files.take_unused(now + UNUSED);
        assert!(unused.len() == 1 && !is_some_left);
        drop(unused);
        let next = shared.find().expect("a response holds it");
        assert!(Arc::ptr_eq(&next, &response) && open_files.keep(&next, now).0);
        drop((response, next));
        assert!(shared.find().is_some(), "it stays open for a moment");
        assert!(open_files.take_unused(now).0.is_empty());
        drop(open_files.take_unused(now + UNUSED));
        assert!(shared.find().is_none());
    }

    #[test]
    fn the_one_used_longest_ago_gives_way() {
        let Some(files) = (0..=FILES_MAX).map(|_| sendable().map(Arc::new)).collect::<Option<Vec<_>>>() else { return };
        let (open_files, now) = (OpenFiles::default(), Instant::now());
        for file in &files[..FILES_MAX] {
            assert!(open_files.keep(file, now).1.is_none());
        }
        for file in files[..FILES_MAX].iter().filter(|file| !Arc::ptr_eq(file, &files[5])) {
            assert!(open_files.keep(file, now + UNUSED).1.is_none());
        }
        let closed = open_files.keep(&files[FILES_MAX], now + UNUSED).1.unwrap();
        assert!(Arc::ptr_eq(&closed.sendable, &files[5]));
    }
}
