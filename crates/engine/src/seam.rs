//! Hooks for tests: kill points, and a reader that can be stopped. They compile to nothing without the feature
//! `seams`.

/// Called before each store that changes a stripe. A test lets the process die at the n-th one.
#[cfg(not(feature = "seams"))]
#[inline]
pub(crate) fn kill_point() {}

/// Called by a reader after it found a slot and before it claims the record.
#[cfg(not(feature = "seams"))]
#[inline]
pub(crate) fn before_pin() {}

/// Called before an entry of an earlier epoch is checked against the purges.
#[cfg(not(feature = "seams"))]
#[inline]
pub(crate) fn before_judging() {}

#[cfg(feature = "seams")]
pub(crate) use armed::{before_judging, before_pin, kill_point};

/// The hooks that tests set.
#[cfg(feature = "seams")]
pub(crate) mod armed {
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

    static STORES_LEFT: AtomicI64 = AtomicI64::new(i64::MAX);
    static STORES_TO_STOP: AtomicI64 = AtomicI64::new(i64::MAX);

    type Pause = Box<dyn FnOnce()>;
    thread_local! {
        static PAUSE: RefCell<Option<Pause>> = const { RefCell::new(None) };
        static PAUSE_BEFORE_JUDGING: RefCell<Option<Pause>> = const { RefCell::new(None) };
    }

    /// Lets this process make `stores` more stores to stripes. It is killed (SIGKILL) before the next one.
    pub fn die_after(stores: i64) {
        STORES_LEFT.store(stores, Relaxed);
    }

    /// Lets this process make `stores` more stores to stripes. It stops (SIGSTOP) before the next one, and continues
    /// when it gets SIGCONT.
    pub fn stop_after(stores: i64) {
        STORES_TO_STOP.store(stores, Relaxed);
    }

    /// The number of stores since [`die_after`] was called with `from`.
    pub fn stores_since(from: i64) -> i64 {
        from - STORES_LEFT.load(Relaxed)
    }

    /// Runs `pause` once, in this thread's next look-up, after it found a slot and before it claims the record.
    pub fn pause_before_pin(pause: impl FnOnce() + 'static) {
        PAUSE.with_borrow_mut(|slot| *slot = Some(Box::new(pause)));
    }

    /// Runs `pause` once, before this thread judges the next entry of an earlier purge epoch.
    pub fn pause_before_judging(pause: impl FnOnce() + 'static) {
        PAUSE_BEFORE_JUDGING.with_borrow_mut(|slot| *slot = Some(Box::new(pause)));
    }

    pub(crate) fn before_judging() {
        let pause = PAUSE_BEFORE_JUDGING.with_borrow_mut(Option::take);
        if let Some(pause) = pause {
            pause();
        }
    }

    pub(crate) fn kill_point() {
        if STORES_LEFT.fetch_sub(1, Relaxed) <= 0 {
            eyewall_region::liveness::kill_this_process();
        }
        if STORES_TO_STOP.fetch_sub(1, Relaxed) == 0 {
            eyewall_region::liveness::stop_this_process();
        }
    }

    pub(crate) fn before_pin() {
        let pause = PAUSE.with_borrow_mut(Option::take);
        if let Some(pause) = pause {
            pause();
        }
    }
}
