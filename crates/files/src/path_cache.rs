//! Remembers what paths of a folder name, while inotify reports no change. A request for a known path costs one system call, and none
//! of the file system.
//!
//! # Why it is never stale
//!
//! What a path names depends on some names in folders, and on some files. The cache sets an inotify watch for each of these
//! *dependencies* **before** it looks at it:
//!
//! - each folder on the way from `/`, including symbolic links, for the name that is looked up in it ([`crate::walk`]);
//! - each found file, by its inode, for its bytes and attributes;
//! - the names that were not found.
//!
//! 1. If a dependency changes before its watch is set, the look, which comes later, sees the change.
//! 2. If it changes after that, the event is in the queue before the call that made the change returns.
//! 3. [`PathCache::lookup`] first asks for the length of the queue. If the queue isn't empty, it reads the events and makes
//!    dependencies void under the write lock. It reads what is known under the read lock. So a thread that finds the queue empty,
//!    because another thread has emptied it, waits until that thread has made the dependencies void.
//!
//! So a request that begins after a change has returned doesn't get what was known before. If the queue overflowed or can't be read,
//! the cache forgets everything.
//!
//! # What inotify doesn't report
//!
//! inotify doesn't report a mount over a folder; in some kernels, writes by `io_uring` or `splice`; and writes through a map of a
//! file, which a look doesn't see either before the file has its new time. All of these give the file another version. So the cache
//! compares the version at least every [`TRUST`] ([`PathCache::renew`]). For paths in frequent use, a blocking thread does so ahead of
//! time. A path that names no file is looked up again. Nothing is remembered of file systems that other machines change
//! ([`crate::watches::is_local`]), or if the kernel gives no watch: there each request looks.
//!
//! # Limits of memory
//!
//! Any client can ask for missing names, and each is a dependency. So constants bound everything: paths by [`KNOWN_MAX`] and
//! [`PATH_BYTES_MAX`], names by [`NAMES_MAX`] and [`NAME_BYTES_MAX`], watches by [`WATCHES_MAX`]. Missing names take some 40 MB at
//! most. Longer paths and names, and those that find no room, are looked up each time.
//!
//! # Without inotify
//!
//! If the user sets how long a look counts ([`crate::Freshness::Interval`]), nothing is watched, and a result is known for that time,
//! whatever happens. If there is no room, missing names are forgotten first.

use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use rustix::io::Errno;

use crate::path::FilePath;
use crate::representation::Named;
use crate::watches::{About, Dependency, Watches};

/// How long a result is known at most.
pub(crate) const TRUST: Duration = Duration::from_secs(1);
/// The maximum number of known paths.
const KNOWN_MAX: usize = 16_384;
/// The maximum number of watches; each costs the kernel about a kilobyte.
const WATCHES_MAX: usize = 4 * KNOWN_MAX;
/// The maximum number of names in all folders together. A path takes one for each of its representations; paths
/// share the names of folders.
const NAMES_MAX: usize = 4 * KNOWN_MAX;
/// Longer paths are looked up each time.
const PATH_BYTES_MAX: usize = 512;
/// Longer names are looked up each time. Few file systems have any.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// The known paths. All workers share them.
#[derive(Debug)]
pub(crate) struct PathCache {
    /// `None` if nothing is watched.
    inotify: Option<OwnedFd>,
    /// How long a result is known at most.
    trust: Duration,
    /// The origin of times.
    began: Instant,
    known_max: usize,
    names_max: usize,
    /// Whether a thread is renewing the paths in use.
    is_renewing: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    watches: Watches,
    known: HashMap<FilePath, Known>,
    /// When outdated paths were last removed.
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    found: Arc<Named>,
    dependencies: Vec<Arc<Dependency>>,
    /// When the look began, or the file was last seen unchanged; in milliseconds since the creation of the
    /// path cache.
    since_ms: AtomicU64,
    /// Whether it was requested since it was last renewed.
    is_used: AtomicBool,
}

/// The result for a path.
pub(crate) struct CachedPath {
    pub(crate) found: Arc<Named>,
    /// It expires soon, and no other caller was told: renew all that is [due](PathCache::due).
    pub(crate) is_due: bool,
}

impl PathCache {
    /// # Errors
    /// The system's error if it gives no inotify instance: a user may have some 128 of them.
    pub(crate) fn watching() -> io::Result<Self> {
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        Ok(Self { inotify: Some(inotify), ..Self::trusting(TRUST) })
    }

    /// Creates one that watches nothing: results are known for so long.
    pub(crate) fn trusting(trust: Duration) -> Self {
        Self {
            inotify: None,
            trust,
            began: Instant::now(),
            known_max: KNOWN_MAX,
            names_max: NAMES_MAX,
            is_renewing: AtomicBool::new(false),
            state: RwLock::default(),
        }
    }

    /// Whether known paths must be watched.
    pub(crate) fn is_watching(&self) -> bool {
        self.inotify.is_some()
    }

    /// Whether a path may be known. Other paths need no watches.
    pub(crate) fn keeps(path: &FilePath) -> bool {
        let path = path.relative();
        path.as_os_str().len() <= PATH_BYTES_MAX && path.iter().all(|name| name.len() <= NAME_BYTES_MAX)
    }

    /// Returns what is known of a path; `now` is when the request came.
    pub(crate) fn lookup(&self, path: &FilePath, now: Instant) -> Option<CachedPath> {
        self.read_events();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let known = state.known.get(path)?;
        let age = self.age(known, now);
        if age >= self.trust || !known.is_valid() {
            return None;
        }
        // Write only a change: otherwise all threads would write the same cache line.
        if !known.is_used.load(Ordering::Relaxed) {
            known.is_used.store(true, Ordering::Relaxed);
        }
        // Half of the time suffices for some system calls, so that no request for a busy path waits for
        // them.
        let is_due = self.is_watching() && age >= self.trust / 2 && !self.is_renewing.swap(true, Ordering::Relaxed);
        Some(CachedPath { found: Arc::clone(&known.found), is_due })
    }

    /// All paths that were requested since their last renewal, and are about to expire; so one wake-up of a
    /// thread serves many. The caller calls [`Self::has_renewed`] at the end.
    pub(crate) fn due(&self) -> Vec<FilePath> {
        let now = Instant::now();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let used = state.known.iter().filter(|(_, known)| {
            // Earlier than necessary, or they would be due one after the other.
            self.age(known, now) >= self.trust / 4 && known.is_used.load(Ordering::Relaxed)
        });
        used.map(|(path, _)| path.clone()).collect()
    }

    /// Ends a renewal.
    pub(crate) fn has_renewed(&self) {
        self.is_renewing.store(false, Ordering::Relaxed);
    }

    /// Keeps a file known for as long again, if `is_same` says that its version is the same. The kernel has
    /// reported no change of its dependencies, and a change that it doesn't report changes the version. That
    /// takes one system call, while a look takes some dozen. `None`: a look is needed.
    pub(crate) fn renew(&self, path: &FilePath, is_same: impl FnOnce(&Named) -> bool) -> Option<Arc<Named>> {
        if !self.is_watching() {
            return None;
        }
        self.read_events();
        let found = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            let known = state.known.get(path).filter(|known| known.is_valid())?;
            Arc::clone(&known.found)
        };
        let now = Instant::now();
        if !is_same(&found) {
            return None;
        }
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let known = state.known.get(path).filter(|known| known.is_valid() && Arc::ptr_eq(&known.found, &found))?;
        known.since_ms.fetch_max(self.milliseconds(now), Ordering::Relaxed);
        known.is_used.store(false, Ordering::Relaxed);
        Some(found)
    }

    /// Reads the kernel's events, so that dependencies are valid as of this call, or later.
    fn read_events(&self) {
        if let Some(inotify) = &self.inotify
            && !rustix::io::ioctl_fionread(inotify).is_ok_and(|bytes| bytes == 0)
        {
            let mut state = self.change();
            if !state.watches.read_events(inotify) {
                state.known.clear();
                state.watches.invalidate_all(inotify);
            }
        }
    }

    fn milliseconds(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.began).as_millis() as u64
    }

    /// How long a result is known.
    fn age(&self, known: &Known, now: Instant) -> Duration {
        // Round up: `since` was rounded down, which makes the result older.
        let age = now.saturating_duration_since(self.began);
        age.saturating_sub(Duration::from_millis(known.since_ms.load(Ordering::Relaxed)))
    }

    /// Stores the result for a path that [may be known](Self::keeps), by a look that began at `since`, after
    /// its dependencies were created.
    pub(crate) fn insert(
        &self,
        path: &FilePath,
        found: &Arc<Named>,
        dependencies: Vec<Arc<Dependency>>,
        since: Instant,
    ) {
        let mut state = self.change();
        if state.known.len() >= self.known_max && !state.known.contains_key(path) {
            self.sweep(&mut state, since);
            if state.known.len() >= self.known_max {
                return;
            }
        }
        let known = Known {
            found: Arc::clone(found),
            dependencies,
            since_ms: AtomicU64::new(self.milliseconds(since)),
            is_used: AtomicBool::new(false),
        };
        state.known.insert(path.clone(), known);
    }

    /// A dependency of a look that comes after this call.
    ///
    /// # Errors
    /// Those of [`Watches::dependency`]; `NOSPC` also if a limit is reached.
    pub(crate) fn dependency(&self, place: BorrowedFd<'_>, about: About<'_>) -> io::Result<Arc<Dependency>> {
        let inotify = self.inotify.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let mut state = self.change();
        if self.is_full(&state.watches) {
            self.sweep(&mut state, Instant::now());
            if self.is_full(&state.watches) {
                return Err(Errno::NOSPC.into());
            }
        }
        match state.watches.dependency(inotify, place, about) {
            Err(error) if error.raw_os_error() == Some(Errno::NOSPC.raw_os_error()) => {
                self.sweep(&mut state, Instant::now());
                state.watches.dependency(inotify, place, about)
            }
            other => other,
        }
    }

    /// Removes outdated results, including those that were not requested recently. It scans everything, so it
    /// runs only if that can make a difference.
    fn sweep(&self, state: &mut State, now: Instant) {
        if state.swept.is_some_and(|swept| now.saturating_duration_since(swept) < self.trust.min(TRUST)) {
            return;
        }
        state.swept = Some(now);
        state.known.retain(|_, known| self.age(known, now) < self.trust && known.is_valid());
        if self.inotify.is_none() && state.known.len() >= self.known_max {
            // Otherwise requests for missing names could keep existing files out for hours.
            state.known.retain(|_, known| !matches!(*known.found, Named::Nothing));
        }
        if let Some(inotify) = &self.inotify {
            state.watches.drop_unused(inotify);
        }
    }

    fn is_full(&self, watches: &Watches) -> bool {
        watches.count() >= WATCHES_MAX || watches.names_count() >= self.names_max
    }

    /// The number of watches and names.
    #[cfg(test)]
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.change();
        (state.watches.count(), state.watches.names_count())
    }

    fn change(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn is_valid(&self) -> bool {
        self.dependencies.iter().all(|dependency| dependency.is_valid())
    }
}

#[cfg(test)]
mod tests;
