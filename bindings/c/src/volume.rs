//! What is known of an open volume, and what can be done for it as a whole.

use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{Bytes, cleared, give, needed};
use crate::status::{Status, done, guard, guard_or};

/// Bytes of the volume, all overhead included.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_size(cache: Option<&Cache>) -> u64 {
    guard_or(0, || cache.map_or(0, |cache| cache.0.size()))
}

/// The largest entry that the volume takes: 48 bytes, key, metadata and value.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_entry_bytes_max(cache: Option<&Cache>) -> u64 {
    guard_or(0, || cache.map_or(0, |cache| cache.0.entry_bytes_max()))
}

/// Whether it was opened with EYEWALL_READ_ONLY.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_is_read_only(cache: Option<&Cache>) -> bool {
    guard_or(false, || cache.is_some_and(|cache| cache.0.is_read_only()))
}

/// Whether bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS): all calls answer EYEWALL_ERROR_FAILED then, for good.
/// Release and end what was got, close the cache, and open the path again once the file was replaced.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_is_failed(cache: Option<&Cache>) -> bool {
    guard_or(false, || cache.is_some_and(|cache| cache.0.is_failed()))
}

/// Why the volume's size is no promise on its file system: writing may then end in SIGBUS when the disk is full. Of no length where
/// it is one. Valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_storage_warning(cache: Option<&Cache>) -> Bytes {
    guard_or(Bytes::NONE, || {
        let warning = cache.and_then(|cache| cache.0.storage_warning());
        warning.map_or(Bytes::NONE, |warning| Bytes::of(warning.as_bytes()))
    })
}

/// Maps every page now, so that no later read faults; reads the file if it isn't in memory. EYEWALL_ERROR_IO on kernels before 5.14.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_populate(cache: Option<&Cache>) -> Status {
    guard(|| done(needed(cache)?.0.populate()))
}

/// Drops what is purged or has lived its time, now, and brings the volume to storage if there was any. Nobody has to call it.
/// `dropped` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_sweep(cache: Option<&Cache>, dropped: Option<&mut MaybeUninit<u64>>) -> Status {
    guard(|| {
        let dropped = cleared(dropped);
        give(dropped, needed(cache)?.0.sweep()?);
        Ok(Status::Ok)
    })
}

/// Brings everything that was stored, removed and purged before this call to storage, and waits for it.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_sync(cache: Option<&Cache>) -> Status {
    guard(|| done(needed(cache)?.0.sync()))
}
