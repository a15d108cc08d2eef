//! What happens around `fork`.
//!
//! A child inherits the parent's memory, and with it every guard, lock word and cached slot number, but none of the
//! rights behind them. The **fork generation** tells them apart. It is raised in each child before any other code
//! runs there, and everything made under another generation is void.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(1);
static INSTALL: Once = Once::new();
static CHILD: Mutex<Option<fn()>> = Mutex::new(None);
static GATE: Mutex<()> = Mutex::new(());
/// Descriptors of [`Private`] files. Accessed only while the gate is held.
static PRIVATE: Mutex<Vec<RawFd>> = Mutex::new(Vec::new());

thread_local! {
    static HELD: std::cell::RefCell<Option<MutexGuard<'static, ()>>> = const { std::cell::RefCell::new(None) };
}

/// The number of forks between the first process of this program and this one, plus one.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// The right to change process-wide tables, until it is dropped.
#[derive(Debug)]
pub struct Gate {
    /// `None` inside the hook of a child, whose thread holds the gate already.
    _held: Option<MutexGuard<'static, ()>>,
}

/// Acquires the fork gate. It is held while process-wide tables change, and by the forking thread across `fork`, so a
/// child never starts with such a table half written. Nobody may wait for another process while holding it.
pub fn gate() -> Gate {
    let mine = HELD.try_with(|held| held.borrow().is_some()).unwrap_or(false);
    Gate { _held: (!mine).then(lock_gate) }
}

fn lock_gate() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that no forked child gets: the fork hook closes the child's descriptor.
///
/// Locks that belong to a file description last until its last descriptor is closed. Without the hook, a child that
/// another thread forks would keep them as long as it lives.
#[derive(Debug)]
pub struct Private {
    /// `None` only in `drop`.
    file: Option<File>,
}

impl Private {
    /// Opens a file by `open`, which must return a descriptor that nobody else has.
    ///
    /// # Errors
    /// What `open` returns.
    pub fn open(open: impl FnOnce() -> io::Result<File>) -> io::Result<Self> {
        let _gate = gate();
        let file = open()?;
        private().push(file.as_raw_fd());
        Ok(Self { file: Some(file) })
    }
}

impl Deref for Private {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("the file is there until the drop"),
        }
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        let _gate = gate();
        if let Some(file) = self.file.take() {
            private().retain(|descriptor| *descriptor != file.as_raw_fd());
        }
    }
}

fn private() -> MutexGuard<'static, Vec<RawFd>> {
    PRIVATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `child` in every later child of this process, right after `fork`, with the [`gate`] held.
///
/// Only the first call installs a hook.
pub fn on_child(child: fn()) {
    INSTALL.call_once(|| {
        *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        // SAFETY: the three handlers are plain functions that live as long as the program.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    });
}

extern "C" fn before() {
    HELD.with_borrow_mut(|held| *held = Some(lock_gate()));
}

extern "C" fn after_in_parent() {
    HELD.with_borrow_mut(Option::take);
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Relaxed);
    for descriptor in private().drain(..) {
        // SAFETY: the descriptor is this process's copy of one whose owner, a thread of the parent, doesn't exist
        // here.
        unsafe { libc::close(descriptor) };
    }
    let child = *CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(child) = child {
        child();
    }
    HELD.with_borrow_mut(Option::take);
}
