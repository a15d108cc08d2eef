//! What is known of a folder, for as long as the kernel tells of no change: a request for what is known costs one system call, and
//! none of the file system's.
//!
//! # Why it is never stale
//!
//! To know what a path names is to have looked at some names in folders, and at some files. Of each of these *dependencies* the
//! kernel is asked to tell, by inotify, **before** it is looked at:
//!
//! - each folder on the way from `/`, for the one name that is looked up in it, also by way of symbolic links ([`crate::walk`]);
//! - each file that was found, by its inode, for its bytes and its attributes;
//! - the names that were looked for in vain.
//!
//! 1. A change of a dependency that happens before its watch is seen by the look, which comes after it.
//! 2. A change that happens after its watch is an event in the queue before the call that made the change returns.
//! 3. [`PathCache::lookup`] asks for the length of the queue first. Where there is something in it, it is taken out and the dependencies
//!    are made void under the write lock; what is known is read under the read lock. So who finds the queue empty after another
//!    has emptied it waits until that one has made void what it heard of.
//!
//! So a request that begins after a change has returned doesn't get what was known before it. Where the queue has overflowed,
//! or can't be read, everything is forgotten.
//!
//! # What the kernel doesn't tell
//!
//! A mount over a folder; in some versions, what comes by `io_uring` or `splice`; bytes written through a map of a file, which
//! not even a look can tell before the file has its new time. All of these give the file another version. So nothing is known for
//! longer than [`TRUST`] without its version being compared ([`PathCache::renew`]), which is done ahead of time, by a thread that may wait, where
//! it is asked for again and again; what is no file is looked at again. Of file systems that others change, too, nothing is known at all ([`crate::watches::is_local`]), nor of what the
//! kernel gives no watch for: there each request looks.
//!
//! # What strangers can make it keep
//!
//! Anybody can ask for names that aren't there, and each is a dependency. So all that is kept is bounded, by constants: paths by
//! [`KNOWN_MAX`] and [`PATH_BYTES_MAX`], names by [`NAMES_MAX`] and [`NAME_BYTES_MAX`], watches by [`WATCHES_MAX`]. For names that
//! aren't there that is some 40 MB at most. What is longer, or comes while there is no room, is looked at each time.
//!
//! # Without the kernel
//!
//! Where the user has said for how long a look is good ([`crate::Freshness::Interval`]), nothing is watched, and what was found is
//! known for so long, whatever happens. Where that gets too much, names that aren't there are forgotten first.

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

/// For so long something is known at most.
pub(crate) const TRUST: Duration = Duration::from_secs(1);
/// Of so many paths something is known at most.
const KNOWN_MAX: usize = 16_384;
/// So many watches are kept at most; each costs the kernel about a kilobyte.
const WATCHES_MAX: usize = 4 * KNOWN_MAX;
/// So many names are kept at most, of all folders together. A path takes one for each of its representations; those of folders are shared.
const NAMES_MAX: usize = 4 * KNOWN_MAX;
/// Longer paths are looked at each time.
const PATH_BYTES_MAX: usize = 512;
/// Longer names are looked at each time. Few file systems have any.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// What is known, by path. All workers share it.
#[derive(Debug)]
pub(crate) struct PathCache {
    /// None where nothing is watched.
    inotify: Option<OwnedFd>,
    /// For so long something is known at most.
    trust: Duration,
    /// What times are counted from.
    began: Instant,
    known_max: usize,
    names_max: usize,
    /// Whether somebody renews what is used.
    is_renewing: AtomicBool,
    state: RwLock<State>,
}

#[derive(Debug, Default)]
struct State {
    watches: Watches,
    known: HashMap<FilePath, Known>,
    /// When what is known no longer was last thrown out.
    swept: Option<Instant>,
}

#[derive(Debug)]
struct Known {
    found: Arc<Named>,
    dependencies: Vec<Arc<Dependency>>,
    /// When the look began, or what was found was seen to be the same; in milliseconds from when the path cache began.
    since_ms: AtomicU64,
    /// Whether it was asked for since it was last renewed.
    is_used: AtomicBool,
}

/// What is known of a path.
pub(crate) struct CachedPath {
    pub(crate) found: Arc<Named>,
    /// Its time will be over soon, and nobody else was told so: what is [due](PathCache::due) is to be renewed.
    pub(crate) is_due: bool,
}

impl PathCache {
    /// # Errors
    /// The system's, where it gives no inotify: a user may have some 128 of them.
    pub(crate) fn watching() -> io::Result<Self> {
        let inotify = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        Ok(Self { inotify: Some(inotify), ..Self::trusting(TRUST) })
    }

    /// One that watches nothing: what was found is known for so long.
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

    /// Whether what is to be known has to be watched.
    pub(crate) fn is_watching(&self) -> bool {
        self.inotify.is_some()
    }

    /// Whether a path may be known. Of others there is nothing to watch.
    pub(crate) fn keeps(path: &FilePath) -> bool {
        let path = path.relative();
        path.as_os_str().len() <= PATH_BYTES_MAX && path.iter().all(|name| name.len() <= NAME_BYTES_MAX)
    }

    /// What is known of a path; `now` is when the request came.
    pub(crate) fn lookup(&self, path: &FilePath, now: Instant) -> Option<CachedPath> {
        self.read_events();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let known = state.known.get(path)?;
        let age = self.age(known, now);
        if age >= self.trust || !known.is_valid() {
            return None;
        }
        // Else all who use it would write the same line of memory.
        if !known.is_used.load(Ordering::Relaxed) {
            known.is_used.store(true, Ordering::Relaxed);
        }
        // Half of it is enough for some system calls, so that nobody has to wait for them who asks again and again.
        let is_due = self.is_watching() && age >= self.trust / 2 && !self.is_renewing.swap(true, Ordering::Relaxed);
        Some(CachedPath { found: Arc::clone(&known.found), is_due })
    }

    /// What was asked for since it was last renewed, and was so a while ago: all of it at once, so that a thread is woken for many. Who has
    /// it says in the end that it is [done](Self::has_renewed).
    pub(crate) fn due(&self) -> Vec<FilePath> {
        let now = Instant::now();
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let used = state.known.iter().filter(|(_, known)| {
            // Earlier than it has to be, or they would be due one after the other.
            self.age(known, now) >= self.trust / 4 && known.is_used.load(Ordering::Relaxed)
        });
        used.map(|(path, _)| path.clone()).collect()
    }

    /// What was due is renewed.
    pub(crate) fn has_renewed(&self) {
        self.is_renewing.store(false, Ordering::Relaxed);
    }

    /// Goes on knowing a file for as long again, if `is_same` says that it is the same: of all that it rests on, the kernel has told no
    /// change, and what the kernel doesn't tell changes the file's version. That takes a system call, and a look some dozen. `None`: it takes
    /// a look.
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

    /// Takes in what the kernel has to tell, so that the dependencies are what they were when this was called, or later.
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

    /// For how long something is known.
    fn age(&self, known: &Known, now: Instant) -> Duration {
        // Not less than it is: what is cut off of `since` makes it older.
        let age = now.saturating_duration_since(self.began);
        age.saturating_sub(Duration::from_millis(known.since_ms.load(Ordering::Relaxed)))
    }

    /// Keeps what was found of a path that [may be known](Self::keeps), by a look that began at `since`, after all of its dependencies
    /// were made.
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
    /// Those of [`Watches::dependency`]; `NOSPC` also where as much is kept as may be.
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

    /// Throws out what is known no longer, which includes all that nobody has asked for of late. Not more often than that can make
    /// a difference: it looks at everything.
    fn sweep(&self, state: &mut State, now: Instant) {
        if state.swept.is_some_and(|swept| now.saturating_duration_since(swept) < self.trust.min(TRUST)) {
            return;
        }
        state.swept = Some(now);
        state.known.retain(|_, known| self.age(known, now) < self.trust && known.is_valid());
        if self.inotify.is_none() && state.known.len() >= self.known_max {
            // For hours, perhaps: strangers who ask for names that aren't there would keep out all that is there.
            state.known.retain(|_, known| !matches!(*known.found, Named::Nothing));
        }
        if let Some(inotify) = &self.inotify {
            state.watches.drop_unused(inotify);
        }
    }

    fn is_full(&self, watches: &Watches) -> bool {
        watches.count() >= WATCHES_MAX || watches.names_count() >= self.names_max
    }

    /// How many watches and names are kept.
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
