//! Iteration over all entries.

use std::mem::MaybeUninit;

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{cleared_box, give_boxed, needed, take_boxed};
use crate::status::{Status, guard, guard_or};

/// An iteration over all entries.
pub struct Iter {
    walk: eyewall::Iter<'static>,
    cache: &'static eyewall::Cache,
}

/// Begins an iteration over all valid entries, in no order. With `all` it includes stale and negative entries. It
/// may or may not meet entries that are put or evicted meanwhile. It meets every other entry once.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_iter_begin(
    cache: Option<&Cache>,
    all: bool,
    iter: Option<&mut MaybeUninit<*mut Iter>>,
) -> Status {
    guard(|| {
        let iter = needed(cleared_box(iter))?;
        // SAFETY: the lifetime is that of the cache, which the caller closes last.
        let cache = unsafe { &*std::ptr::from_ref(&needed(cache)?.0) };
        give_boxed(iter, Iter { walk: if all { cache.iter_all() } else { cache.iter() }, cache });
        Ok(Status::Ok)
    })
}

/// The next entry; release it. EYEWALL_END: there are no more entries, or the volume was resized since the
/// iteration began.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_iter_next(iter: Option<&mut Iter>, hit: Option<&mut MaybeUninit<Hit>>) -> Status {
    guard(|| {
        let hit = needed(Hit::cleared(hit))?;
        let iter = needed(iter)?;
        let Some(entry) = iter.walk.next() else {
            // A failed volume ends the iteration, too: ask, so that the caller gets the error.
            iter.cache.epoch()?;
            return Ok(Status::End);
        };
        Hit::fill(hit, entry);
        Ok(Status::Ok)
    })
}

/// Ends an iteration, finished or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_iter_end(iter: *mut Iter) {
    // SAFETY: an iterator of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(iter) }));
}
