//! Purges, and epochs between them.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{bytes, needed};
use crate::status::{Failure, Status, done, guard};

/// What happens to the purged entries.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// They are removed.
    Hard = 0,
    /// They become stale, and stay usable for as long as their options allow.
    Soft = 1,
}

/// A moment between two purges of a cache. Only eyewall_now gives one.
#[repr(C)]
pub struct Epoch {
    /// Internal to the library.
    pub words: MaybeUninit<[u64; 2]>,
}

const _: () = assert!(size_of::<eyewall::Epoch>() <= 16 && align_of::<eyewall::Epoch>() <= 8);

impl Epoch {
    pub(crate) fn read(&self) -> eyewall::Epoch {
        // SAFETY: any words are an epoch, of some cache or of none.
        unsafe { self.words.as_ptr().cast::<eyewall::Epoch>().read() }
    }
}

/// A C caller may pass any number.
fn kind(kind: i32) -> Result<eyewall::Purge, Failure> {
    match kind {
        0 => Ok(eyewall::Purge::Hard),
        1 => Ok(eyewall::Purge::Soft),
        _ => Err(Failure::Argument("the kind of the purge is unknown: give EYEWALL_PURGE_HARD or EYEWALL_PURGE_SOFT")),
    }
}

/// Purges all entries with this tag that any process has stored until now. `purge` is an eyewall_purge. It takes
/// microseconds, however many entries have the tag.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_purge_tag(
    cache: Option<&Cache>,
    tag: *const c_void,
    tag_length: usize,
    purge: i32,
) -> Status {
    guard(|| {
        // SAFETY: the header says what bytes are.
        let tag = std::str::from_utf8(unsafe { bytes(tag, tag_length) }?);
        let tag = tag.map_err(|_| Failure::Argument("the tag is not UTF-8"))?;
        done(needed(cache)?.0.purge_tag(tag, kind(purge)?))
    })
}

/// Purges all entries whose keys begin with this prefix.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_purge_prefix(
    cache: Option<&Cache>,
    prefix: *const c_void,
    prefix_length: usize,
    purge: i32,
) -> Status {
    guard(|| {
        // SAFETY: the header says what bytes are.
        let prefix = unsafe { bytes(prefix, prefix_length) }?;
        done(needed(cache)?.0.purge_prefix(prefix, kind(purge)?))
    })
}

/// Purges all entries.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_purge_all(cache: Option<&Cache>, purge: i32) -> Status {
    guard(|| done(needed(cache)?.0.purge_all(kind(purge)?)))
}

/// The present moment, for eyewall_put_options.begun_in. Every purge after it removes an entry that is put with
/// it. It is valid for this cache while the cache is open.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_now(cache: Option<&Cache>, epoch: Option<&mut MaybeUninit<Epoch>>) -> Status {
    guard(|| {
        let to = needed(epoch)?.write(Epoch { words: MaybeUninit::zeroed() });
        let now = needed(cache)?.0.epoch()?;
        // SAFETY: checked above for size and alignment.
        unsafe { to.words.as_mut_ptr().cast::<eyewall::Epoch>().write(now) };
        Ok(Status::Ok)
    })
}
