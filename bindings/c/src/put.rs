//! Changes in one call.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{Counter, PutOptions as EnginePut, Touch};

use crate::open::Cache;
use crate::pointers::{Bytes, bytes, cleared, give, needed, objects};
use crate::purge::Epoch;
use crate::status::{Failure, Status, guard};

/// Options of a put. A field that is 0 has its default, and NULL in place of the options means all defaults.
#[repr(C)]
pub struct PutOptions {
    /// Time to live in milliseconds. 0: until the entry is evicted.
    pub ttl_ms: u64,
    /// How long the entry stays usable after its ttl_ms (eyewall_lookup), in milliseconds. It has no effect
    /// without a ttl_ms: a soft purge then makes the entry stale until it is evicted.
    pub stale_ms: u64,
    /// Up to 65,535 bytes of the caller's own, stored before the value.
    pub metadata: *const c_void,
    /// How many they are.
    pub metadata_length: usize,
    /// Labels by which entries are purged together: up to 32, each of 1 to 255 bytes of UTF-8.
    pub tags: *const Bytes,
    /// How many.
    pub tags_count: usize,
    /// When work on the value began. If a purge since then applies to the entry, the entry isn't found,
    /// though the call returns EYEWALL_OK. NULL: the beginning of the call.
    pub begun_in: *const Epoch,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

impl PutOptions {
    /// Calls `work` with these options.
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

/// New times and metadata of an entry. A field that is 0 leaves them unchanged.
#[repr(C)]
pub struct TouchOptions {
    /// Whether to set ttl_ms and stale_ms: valid from now for ttl_ms (0: until it is evicted), and usable for
    /// stale_ms after that.
    pub set_times: bool,
    /// Whether to set the metadata.
    pub set_metadata: bool,
    /// Whether to touch the entry only if it still has the serial.
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
    /// When the caller learned what the touch says. A purge since then keeps its effect on the entry. NULL:
    /// now.
    pub begun_in: *const Epoch,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

/// How eyewall_increment counts.
#[repr(C)]
pub struct CounterOptions {
    /// Value of an absent counter before the addition.
    pub start: i64,
    /// Whether min and max apply: a sum outside of them becomes the nearer one.
    pub has_bounds: bool,
    /// See has_bounds.
    pub min: i64,
    /// See has_bounds.
    pub max: i64,
    /// Options of a new counter. An existing counter keeps its own. May be NULL.
    pub put: *const PutOptions,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

/// Stores by `work` with these options, and returns the serial; `otherwise` is the status if nothing was stored.
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

/// Stores a value in place of any former entry, and evicts other entries now if it needs room. `serial` may be NULL.
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

/// Stores a negative entry, with a reason code. eyewall_lookup returns it as EYEWALL_NEGATIVE; eyewall_get
/// misses.
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

/// Stores a value only if there is no valid entry. EYEWALL_UNMET: there was one.
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

/// Stores a value only if the entry still has the serial `expected`. EYEWALL_UNMET: it has another serial,
/// expired, or is gone.
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

/// Removes an entry. EYEWALL_MISS: there was no valid one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_remove(cache: Option<&Cache>, key: *const c_void, key_length: usize) -> Status {
    guard(|| {
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        Ok(if needed(cache)?.0.remove(key)? { Status::Ok } else { Status::Miss })
    })
}

/// Removes an entry if it still has this serial. EYEWALL_UNMET: it has another serial, expired, or is gone.
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

/// Gives a fresh or stale entry new times and metadata. Its value, age and tags stay. EYEWALL_MISS: there is no
/// entry, or none with the serial. With NULL, the call only exempts the entry from earlier soft purges.
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

/// Adds to a counter, atomically over all processes. `sum` is the new value and may be NULL. A counter is an
/// entry of eight bytes, an int64_t in little-endian order. An absent counter is created. `options` may be NULL.
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
