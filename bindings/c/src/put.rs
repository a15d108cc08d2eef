//! Changes at once.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{Counter, PutOptions as EnginePut, Touch};

use crate::open::Cache;
use crate::pointers::{Bytes, bytes, cleared, give, needed, objects};
use crate::purge::Epoch;
use crate::status::{Failure, Status, guard};

/// What goes with a value. Zero is the default of each. Wherever these are asked for, NULL means all defaults.
#[repr(C)]
pub struct PutOptions {
    /// Valid for so long. 0: until it is evicted.
    pub ttl_ms: u64,
    /// Usable for so long after that (eyewall_lookup). Without a ttl_ms it says nothing: a soft purge makes such an entry stale until
    /// it is evicted.
    pub stale_ms: u64,
    /// Up to 65,535 bytes of the caller's own, stored before the value.
    pub metadata: *const c_void,
    /// How many they are.
    pub metadata_length: usize,
    /// Labels by which entries are purged together: up to 32 of 1 to 255 bytes of UTF-8.
    pub tags: *const Bytes,
    /// How many.
    pub tags_count: usize,
    /// That the value was begun to be made at this moment: a purge since then counts, and the value isn't found then, though the
    /// call answers EYEWALL_OK. NULL: when the call begins.
    pub begun_in: *const Epoch,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

impl PutOptions {
    /// Has something done with these options.
    ///
    /// # Safety
    /// Its pointers are null, or to what the header says.
    #[inline]
    pub(crate) unsafe fn with<T>(
        options: Option<&Self>,
        work: impl FnOnce(&EnginePut<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(this) = options else { return work(&EnginePut::new()) };
        // SAFETY: the caller's promise.
        let (metadata, tags) =
            unsafe { (bytes(this.metadata, this.metadata_length)?, objects(this.tags, this.tags_count)?) };
        let tags = tags.iter().map(|tag| {
            // SAFETY: the caller's promise.
            std::str::from_utf8(unsafe { tag.read() }?).map_err(|_| Failure::Argument("a tag is not UTF-8"))
        });
        let tags = tags.collect::<Result<Vec<_>, _>>()?;
        let mut read = EnginePut::new().metadata(metadata).tags(&tags);
        if this.ttl_ms != 0 {
            read = read.ttl(Duration::from_millis(this.ttl_ms)).stale(Duration::from_millis(this.stale_ms));
        }
        // SAFETY: the caller's promise.
        if let Some(epoch) = unsafe { this.begun_in.as_ref() } {
            read = read.begun_in(epoch.read());
        }
        work(&read)
    }
}

/// An entry's new times and metadata. Zero leaves things as they are.
#[repr(C)]
pub struct TouchOptions {
    /// Whether ttl_ms and stale_ms count: from now on valid for ttl_ms (0: until it is evicted), and usable for stale_ms after.
    pub set_times: bool,
    /// Whether the metadata counts.
    pub set_metadata: bool,
    /// Whether the serial counts: only if the entry still has it.
    pub if_serial: bool,
    /// See set_times.
    pub ttl_ms: u64,
    /// See set_times.
    pub stale_ms: u64,
    /// See set_metadata.
    pub metadata: *const c_void,
    /// How many bytes of it.
    pub metadata_length: usize,
    /// See if_serial.
    pub serial: u64,
    /// That what the touch says was learnt at this moment: what a purge since then has made of the entry, it stays. NULL: now.
    pub begun_in: *const Epoch,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

/// How eyewall_increment counts.
#[repr(C)]
pub struct CounterOptions {
    /// What an absent counter is taken for, before the addition.
    pub start: i64,
    /// Whether min and max count: a sum outside of them becomes the nearer one.
    pub has_bounds: bool,
    /// See has_bounds.
    pub min: i64,
    /// See has_bounds.
    pub max: i64,
    /// Of a new counter; one that is there keeps its own. May be NULL.
    pub put: *const PutOptions,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

/// Has something stored with these options, and gives its serial; `otherwise` is the answer where it wasn't stored.
///
/// # Safety
/// Pointers of the options are null, or to what the header says.
#[inline]
pub(crate) unsafe fn store(
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
    otherwise: Status,
    work: impl FnOnce(&EnginePut<'_>) -> Result<Option<u64>, Failure>,
) -> Status {
    guard(|| {
        let serial = cleared(serial);
        // SAFETY: the caller's promise.
        let stored = unsafe { PutOptions::with(options, work) }?;
        give(serial, stored.unwrap_or_default());
        Ok(if stored.is_some() { Status::Ok } else { otherwise })
    })
}

/// Stores a value in place of any former entry; whatever must go to make room is evicted now. `serial` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_put(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: the header says what keys, values and options are.
    unsafe {
        store(options, serial, Status::Unmet, |options| {
            let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
            Ok(Some(needed(cache)?.0.put_with(key, value, options)?))
        })
    }
}

/// Notes that there is nothing under a key, and why: eyewall_lookup gives it as EYEWALL_NEGATIVE, eyewall_get misses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_put_negative(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    reason: u16,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: the header says what keys and options are.
    unsafe {
        store(options, serial, Status::Unmet, |options| {
            let key = bytes(key, key_length)?;
            Ok(Some(needed(cache)?.0.put_negative(key, reason, options)?))
        })
    }
}

/// Stores a value only if there is no valid entry; EYEWALL_UNMET: there was one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_add(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    value: *const c_void,
    value_length: usize,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: the header says what keys, values and options are.
    unsafe {
        store(options, serial, Status::Unmet, |options| {
            let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
            Ok(needed(cache)?.0.add(key, value, options)?)
        })
    }
}

/// Stores a value only if the entry still has the serial `expected`; EYEWALL_UNMET: it has another, has expired or is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_replace_if(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    expected: u64,
    value: *const c_void,
    value_length: usize,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: the header says what keys, values and options are.
    unsafe {
        store(options, serial, Status::Unmet, |options| {
            let (key, value) = (bytes(key, key_length)?, bytes(value, value_length)?);
            Ok(needed(cache)?.0.replace_if(key, expected, value, options)?)
        })
    }
}

/// Removes an entry; EYEWALL_MISS: there was no valid one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_remove(cache: Option<&Cache>, key: *const c_void, key_length: usize) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        Ok(if needed(cache)?.0.remove(key)? { Status::Ok } else { Status::Miss })
    })
}

/// Removes an entry if it still has this serial; EYEWALL_UNMET: it has another, has expired or is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_remove_if(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    serial: u64,
) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        Ok(if needed(cache)?.0.remove_if(key, serial)? { Status::Ok } else { Status::Unmet })
    })
}

/// Removes all entries; `removed` may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_clear(cache: Option<&Cache>, removed: Option<&mut MaybeUninit<u64>>) -> Status {
    guard(|| {
        let removed = cleared(removed);
        give(removed, needed(cache)?.0.clear()?);
        Ok(Status::Ok)
    })
}

/// Gives an entry, fresh or stale, new times and metadata; its value, age and tags stay. EYEWALL_MISS: there is none, or none of
/// the serial. With NULL, nothing changes but that soft purges so far don't mean it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_touch(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    options: Option<&TouchOptions>,
) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let mut touch = Touch::new();
        if let Some(options) = options {
            if options.set_times {
                let ttl = (options.ttl_ms != 0).then(|| Duration::from_millis(options.ttl_ms));
                touch = touch.ttl(ttl, Duration::from_millis(options.stale_ms));
            }
            if options.set_metadata {
                // SAFETY: as above.
                touch = touch.metadata(unsafe { bytes(options.metadata, options.metadata_length) }?);
            }
            if options.if_serial {
                touch = touch.if_serial(options.serial);
            }
            // SAFETY: as above.
            if let Some(epoch) = unsafe { options.begun_in.as_ref() } {
                touch = touch.begun_in(epoch.read());
            }
        }
        Ok(if needed(cache)?.0.touch(key, &touch)? { Status::Ok } else { Status::Miss })
    })
}

/// Adds to a counter, in one step over all processes; `sum` is what it is then, and may be NULL. A counter is an entry of eight
/// bytes, an int64_t in little-endian order; an absent one is created. `options` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_increment(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    by: i64,
    options: Option<&CounterOptions>,
    sum: Option<&mut MaybeUninit<i64>>,
) -> Status {
    guard(|| {
        let sum = cleared(sum);
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let cache = needed(cache)?;
        let mut counter = Counter::new();
        if let Some(options) = options {
            counter = counter.start(options.start);
            if options.has_bounds {
                counter = counter.bounds(options.min, options.max);
            }
        }
        // SAFETY: as above.
        let counted = unsafe {
            let put = options.and_then(|options| options.put.as_ref());
            PutOptions::with(put, |put| Ok(cache.0.increment(key, by, &counter.options(*put))?))
        }?;
        give(sum, counted);
        Ok(Status::Ok)
    })
}
