//! Properties of an open volume, and operations on the whole volume.

use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{Bytes, cleared, give, needed};
use crate::status::{Status, done, guard, guard_or};

/// Size of the volume in bytes, including all overhead.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_size(cache: Option<&Cache>) -> u64 {
    guard_or(0, || cache.map_or(0, |cache| cache.0.size()))
}

/// The largest accepted entry in bytes: 48, plus key, metadata and value.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_entry_bytes_max(cache: Option<&Cache>) -> u64 {
    guard_or(0, || cache.map_or(0, |cache| cache.0.entry_bytes_max()))
}

/// Whether the cache was opened with EYEWALL_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_is_read_only(cache: Option<&Cache>) -> bool {
    guard_or(false, || cache.is_some_and(|cache| cache.0.is_read_only()))
}

/// Whether bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS). All calls then return
/// EYEWALL_ERROR_FAILED, for good. Release and end everything that came from the cache, close it, replace the
/// file, and open the path again.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_is_failed(cache: Option<&Cache>) -> bool {
    guard_or(false, || cache.is_some_and(|cache| cache.0.is_failed()))
}

/// Why the file system doesn't guarantee the volume's size, so that a write may end in SIGBUS when the disk is
/// full. The length is 0 if the size is guaranteed. Valid forever.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_storage_warning(cache: Option<&Cache>) -> Bytes {
    guard_or(Bytes::NONE, || {
        let warning = cache.and_then(|cache| cache.0.storage_warning());
        warning.map_or(Bytes::NONE, |warning| Bytes::of(warning.as_bytes()))
    })
}

/// Maps every page now, so that later reads cause no page fault. Reads the file if it isn't in memory.
/// EYEWALL_ERROR_IO on kernels before 5.14.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_populate(cache: Option<&Cache>) -> Status {
    guard(|| done(needed(cache)?.0.populate()))
}

/// Removes purged and expired entries now, and syncs the volume to storage if there were any. It is never
/// necessary. `dropped` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_sweep(cache: Option<&Cache>, dropped: Option<&mut MaybeUninit<u64>>) -> Status {
    guard(|| {
        let dropped = cleared(dropped);
        give(dropped, needed(cache)?.0.sweep()?);
        Ok(Status::Ok)
    })
}

/// Syncs to storage everything that was stored, removed or purged before this call, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_sync(cache: Option<&Cache>) -> Status {
    guard(|| done(needed(cache)?.0.sync()))
}
