//! Purges, and the moments between them.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use crate::open::Cache;
use crate::pointers::{bytes, needed};
use crate::status::{Failure, Status, done, guard};

/// What becomes of entries that are purged.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// They are gone.
    Hard = 0,
    /// They are stale: usable for as long as they say.
    Soft = 1,
}

/// A moment between two purges of a cache. Only what eyewall_now has filled is one.
#[repr(C)]
pub struct Epoch {
    /// The library's.
    pub words: MaybeUninit<[u64; 2]>,
}

const _: () = assert!(size_of::<eyewall::Epoch>() <= 16 && align_of::<eyewall::Epoch>() <= 8);

impl Epoch {
    pub(crate) fn read(&self) -> eyewall::Epoch {
        // SAFETY: any words are an epoch, of some cache or of none.
        unsafe { self.words.as_ptr().cast::<eyewall::Epoch>().read() }
    }
}

/// C may say anything here.
fn kind(kind: i32) -> Result<eyewall::Purge, Failure> {
    match kind {
        0 => Ok(eyewall::Purge::Hard),
        1 => Ok(eyewall::Purge::Soft),
        _ => Err(Failure::Argument("a purge is EYEWALL_PURGE_HARD or EYEWALL_PURGE_SOFT")),
    }
}

/// Purges all entries with this tag, stored until now by whomever; `purge` is an eyewall_purge. It takes microseconds, however many
/// they are.
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

/// Purges all entries whose keys begin so.
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

/// Now, as purges count: what is put with it later (eyewall_put_options.begun_in) is meant by all purges since. Of this cache, for
/// as long as it is open.
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
