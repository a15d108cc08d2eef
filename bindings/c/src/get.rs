//! Look-ups.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use eyewall::Lookup;

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{Bytes, bytes, cleared, give, needed, objects};
use crate::status::{Failure, Outcome, Status, guard};

type Entry<'a> = eyewall::Hit<'a>;

/// The caller's memory for a copy of an entry, and what it received. `value` and `metadata` may be NULL if their
/// capacity is 0.
#[repr(C)]
pub struct Copy {
    /// Where to copy the value.
    pub value: *mut c_void,
    /// How many bytes have room there.
    pub value_capacity: usize,
    /// Where to copy the metadata.
    pub metadata: *mut c_void,
    /// How many bytes have room there.
    pub metadata_capacity: usize,
    /// Result: the length of the value, even if it has no room.
    pub value_length: usize,
    /// Result: the length of the metadata, even if it has no room.
    pub metadata_length: usize,
    /// Result: identifies this version of the entry, as in eyewall_info.
    pub serial: u64,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

/// Looks a key up by `work`, and fills `hit` with the entry that it finds.
///
/// # Safety
/// The key is what the header says.
#[inline]
unsafe fn look<'a>(
    cache: Option<&'a Cache>,
    (key, key_length): (*const c_void, usize),
    hit: Option<&mut MaybeUninit<Hit>>,
    work: impl FnOnce(&'a eyewall::Cache, &[u8]) -> eyewall::Result<Option<(Entry<'a>, Status)>>,
) -> Status {
    guard(|| {
        let hit = needed(Hit::cleared(hit))?;
        // SAFETY: the caller's promise.
        let key = unsafe { bytes(key, key_length) }?;
        let Some((entry, status)) = work(&needed(cache)?.0, key)? else { return Ok(Status::Miss) };
        Hit::fill(hit, entry);
        Ok(status)
    })
}

fn valid(entry: Entry<'_>) -> (Entry<'_>, Status) {
    (entry, Status::Ok)
}

fn known(found: Lookup<'_>) -> Option<(Entry<'_>, Status)> {
    match found {
        Lookup::Fresh(entry) => Some((entry, Status::Ok)),
        Lookup::Stale(entry) => Some((entry, Status::Stale)),
        Lookup::Negative(entry) => Some((entry, Status::Negative)),
        Lookup::Miss => None,
    }
}

/// Looks up the valid entry of a key, without copying it. EYEWALL_OK: release `hit`. EYEWALL_MISS: there is no
/// valid entry. It takes no lock. It makes no system call, except at a thread's first call and, for volumes on a
/// disk, at about one call in 256.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_get(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    hit: Option<&mut MaybeUninit<Hit>>,
) -> Status {
    // SAFETY: the header says what keys are.
    unsafe { look(cache, (key, key_length), hit, |cache, key| Ok(cache.get(key)?.map(valid))) }
}

/// As eyewall_get, but the look-up doesn't raise the entry's frequency, and the statistics don't count it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_peek(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    hit: Option<&mut MaybeUninit<Hit>>,
) -> Status {
    // SAFETY: the header says what keys are.
    unsafe { look(cache, (key, key_length), hit, |cache, key| Ok(cache.peek(key)?.map(valid))) }
}

/// Looks up a key whatever state its entry is in. EYEWALL_OK, EYEWALL_STALE and EYEWALL_NEGATIVE fill `hit`;
/// release it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_lookup(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    hit: Option<&mut MaybeUninit<Hit>>,
) -> Status {
    // SAFETY: the header says what keys are.
    unsafe { look(cache, (key, key_length), hit, |cache, key| Ok(known(cache.lookup(key)?))) }
}

/// EYEWALL_OK: there is a valid entry. EYEWALL_MISS: there is none. The call doesn't raise the entry's frequency.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_contains(cache: Option<&Cache>, key: *const c_void, key_length: usize) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        Ok(if needed(cache)?.0.contains(key)? { Status::Ok } else { Status::Miss })
    })
}

/// Copies the value of a key to the caller's buffer; there is nothing to release. EYEWALL_TOO_SMALL: nothing was
/// copied, and `length` says how many bytes the value has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_get_copy(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    buffer: *mut c_void,
    capacity: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    guard(|| {
        let length = needed(cleared(length))?;
        if buffer.is_null() && capacity != 0 {
            return Err(Failure::Argument("the buffer is NULL"));
        }
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let Some(entry) = needed(cache)?.0.get(key)? else { return Ok(Status::Miss) };
        length.write(entry.len());
        if entry.len() > capacity {
            return Ok(Status::TooSmall);
        }
        // SAFETY: the buffer is the caller's, so large at least, and no part of the volume.
        unsafe { std::ptr::copy_nonoverlapping(entry.as_ptr(), buffer.cast::<u8>(), entry.len()) };
        entry.check_intact()?;
        Ok(Status::Ok)
    })
}

/// Copies the value and the metadata of a key to the caller's memory, and says the entry's serial; there is nothing
/// to release. EYEWALL_TOO_SMALL: nothing was copied, since one of the two has no room; `copy` says their lengths. It
/// is one call where eyewall_get would be three, for languages whose calls into C are dear.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_get_entry(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    copy: Option<&mut Copy>,
) -> Status {
    guard(|| {
        let copy = needed(copy)?;
        (copy.value_length, copy.metadata_length, copy.serial) = (0, 0, 0);
        if (copy.value.is_null() && copy.value_capacity != 0)
            || (copy.metadata.is_null() && copy.metadata_capacity != 0)
        {
            return Err(Failure::Argument("the memory for the value or for the metadata is NULL"));
        }
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let Some(entry) = needed(cache)?.0.get(key)? else { return Ok(Status::Miss) };
        let (value, metadata) = (entry.value(), entry.metadata());
        (copy.value_length, copy.metadata_length, copy.serial) = (value.len(), metadata.len(), entry.serial());
        if value.len() > copy.value_capacity || metadata.len() > copy.metadata_capacity {
            return Ok(Status::TooSmall);
        }
        for (from, to) in [(value, copy.value), (metadata, copy.metadata)] {
            if !from.is_empty() {
                // SAFETY: the memory is the caller's, so large at least, and no part of the volume.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast::<u8>(), from.len()) };
            }
        }
        entry.check_intact()?;
        Ok(Status::Ok)
    })
}

/// Looks up `count` keys at once, which is faster than one by one. `hits` is an array of `count` hits. A key
/// without an entry gives a hit whose value is NULL. Release each of the others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_get_many(
    cache: Option<&Cache>,
    keys: *const Bytes,
    count: usize,
    hits: *mut MaybeUninit<Hit>,
) -> Status {
    guard(|| {
        // SAFETY: the header says what arrays are; and memory that isn't filled yet may be written.
        unsafe { objects(hits.cast_const(), count) }?;
        let hit = |number: usize| {
            // SAFETY: there are so many, and nobody else looks at them now.
            unsafe { &mut *hits.add(number) }
        };
        (0..count).for_each(|number| Hit::empty(hit(number)));
        // SAFETY: as above.
        let keys = unsafe { objects(keys, count) }?;
        get_many(needed(cache)?, keys, hit)
    })
}

fn get_many<'h>(cache: &Cache, keys: &[Bytes], hit: impl Fn(usize) -> &'h mut MaybeUninit<Hit>) -> Outcome {
    // SAFETY: the header says what keys are.
    let keys = keys.iter().map(|key| unsafe { key.read() }).collect::<Result<Vec<_>, _>>()?;
    for (number, entry) in cache.0.get_many(&keys)?.into_iter().enumerate() {
        if let Some(entry) = entry {
            Hit::fill(hit(number), entry);
        }
    }
    Ok(Status::Ok)
}

/// Whether eyewall_get and reading the whole value would avoid waiting for storage. EYEWALL_OK: `resident` has
/// the answer. EYEWALL_MISS: there is no entry. Threads that mustn't wait for storage, such as event loops, ask
/// this first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_is_resident(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    resident: Option<&mut MaybeUninit<bool>>,
) -> Status {
    guard(|| {
        let resident = cleared(resident);
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let answer = needed(cache)?.0.is_resident(key)?;
        give(resident, answer.unwrap_or_default());
        Ok(if answer.is_some() { Status::Ok } else { Status::Miss })
    })
}

/// Reads those bytes of the entry into memory that aren't there yet. It waits for storage.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_prefault(cache: Option<&Cache>, key: *const c_void, key_length: usize) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        Ok(if needed(cache)?.0.prefault(key)? { Status::Ok } else { Status::Miss })
    })
}
