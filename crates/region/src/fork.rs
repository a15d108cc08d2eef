//! What happens around `fork`.
//!
//! A child inherits the parent's memory, and with it every guard, lock word and cached slot number, but none
//! of the rights that they stand for. The **fork generation** tells the two apart: it is raised in each
//! child before any other code runs there, and whatever was made under another generation is void.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

static GENERATION: AtomicU32 = AtomicU32::new(1);
static INSTALL: Once = Once::new();
static CHILD: Mutex<Option<fn()>> = Mutex::new(None);
static GATE: Mutex<()> = Mutex::new(());

thread_local! {
    static HELD: std::cell::RefCell<Option<MutexGuard<'static, ()>>> = const { std::cell::RefCell::new(None) };
}

/// The number of forks between the first process of this program and this one, plus one.
#[inline]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

/// Held while process-wide tables change, and by the forking thread across `fork`: a child never starts
/// with such a table half written.
pub fn gate() -> MutexGuard<'static, ()> {
    GATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `child` in every later child of this process, right after `fork`, with the [`gate`] held.
///
/// It must not take the gate itself. Only the first call installs anything.
pub fn on_child(child: fn()) {
    INSTALL.call_once(|| {
        *CHILD.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        // SAFETY: the three handlers are plain functions that live as long as the program.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    });
}

extern "C" fn before() {
    HELD.with_borrow_mut(|held| *held = Some(gate()));
}

extern "C" fn after_in_parent() {
    HELD.with_borrow_mut(Option::take);
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Relaxed);
    let child = *CHILD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(child) = child {
        child();
    }
    HELD.with_borrow_mut(Option::take);
}
