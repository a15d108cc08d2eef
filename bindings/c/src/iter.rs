//! All entries.

use std::mem::MaybeUninit;

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{cleared_box, give_boxed, needed, take_boxed};
use crate::status::{Status, guard, guard_or};

/// A walk over all entries.
pub struct Iter {
    walk: eyewall::Iter<'static>,
    cache: &'static eyewall::Cache,
}

/// Begins a walk over all valid entries, in no order; with `all`, over stale and negative ones, too. What is put or evicted
/// meanwhile may be met or not; what stays is met once.
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

/// The next entry, which has to be released; EYEWALL_END: there are no more, or the volume was resized since the walk began.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_iter_next(iter: Option<&mut Iter>, hit: Option<&mut MaybeUninit<Hit>>) -> Status {
    guard(|| {
        let hit = needed(Hit::cleared(hit))?;
        let iter = needed(iter)?;
        let Some(entry) = iter.walk.next() else {
            // A volume that has failed ends walks, and has every call say so.
            iter.cache.epoch()?;
            return Ok(Status::End);
        };
        Hit::fill(hit, entry);
        Ok(Status::Ok)
    })
}

/// Ends a walk, wherever it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_iter_end(iter: *mut Iter) {
    // SAFETY: an iterator of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(iter) }));
}
