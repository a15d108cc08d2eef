//! Entries that are made once for all that ask.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{FillOptions, Filled, Filling, NotStored};

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{bytes, cleared, cleared_box, give, give_boxed, needed, take_boxed};
use crate::put::{self, PutOptions};
use crate::status::{Failure, Status, guard, guard_or};

/// The right, and the duty, to make one entry that others wait for.
pub struct Flight(eyewall::Flight<'static>);

/// The entry of a key; or, where there is none, the right to make it, which one caller over all threads and processes has at a
/// time, while the others wait for up to `deadline_ms`.
///
/// EYEWALL_OK: `hit` has the entry, and has to be released. EYEWALL_STALE, if `use_stale`: so it has, and somebody else is making it
/// anew. EYEWALL_NEGATIVE: there is nothing, and `reason` (may be NULL) says why. EYEWALL_FILL: make it, and end the `flight`; if
/// this process dies, one of those that wait is the next to make it. EYEWALL_ERROR_BUSY: the deadline came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_fill_begin(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    deadline_ms: u64,
    use_stale: bool,
    hit: Option<&mut MaybeUninit<Hit>>,
    reason: Option<&mut MaybeUninit<u16>>,
    flight: Option<&mut MaybeUninit<*mut Flight>>,
) -> Status {
    guard(|| {
        let (hit, reason, flight) = (Hit::cleared(hit), cleared(reason), cleared_box(flight));
        let (hit, flight) = (needed(hit)?, needed(flight)?);
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let options = FillOptions::new().use_stale(use_stale);
        let (status, known) = match needed(cache)?.0.begin_fill(key, Duration::from_millis(deadline_ms), &options)? {
            Filling::Ours(ours) => {
                // SAFETY: the lifetime is that of the cache, which the caller closes last.
                let ours = unsafe { std::mem::transmute::<eyewall::Flight<'_>, eyewall::Flight<'static>>(ours) };
                give_boxed(flight, Flight(ours));
                (Status::Fill, 0)
            }
            Filling::Found(Filled::Hit(found)) => {
                Hit::fill(hit, found);
                (Status::Ok, 0)
            }
            Filling::Found(Filled::Stale(found)) => {
                Hit::fill(hit, found);
                (Status::Stale, 0)
            }
            Filling::Found(Filled::Negative(known)) => (Status::Negative, known),
            Filling::Found(Filled::Stored { .. } | Filled::NotStored { .. }) => {
                unreachable!("nothing was made yet")
            }
        };
        give(reason, known);
        Ok(status)
    })
}

/// Stores the value that was made, and ends the flight, after errors, too. EYEWALL_SUPERSEDED: somebody else has changed the entry since. `serial`
/// may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_flight_store(
    flight: *mut Flight,
    value: *const c_void,
    value_length: usize,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: a flight of the caller's, who ends it; the header says what values and options are.
    unsafe {
        let flight = take_boxed(flight);
        put::store(options, serial, Status::Superseded, |options| {
            match needed(flight)?.0.store(bytes(value, value_length)?, options) {
                Ok(serial) => Ok(Some(serial)),
                Err(NotStored::Superseded) => Ok(None),
                Err(NotStored::Refused(error)) => Err(Failure::Engine(error)),
            }
        })
    }
}

/// Notes that there is nothing, for so long (0: until it is evicted), so that nobody tries again; and ends the flight. Where that can't
/// be stored, it isn't known: the next one asks again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_flight_remember(flight: *mut Flight, reason: u16, ttl_ms: u64) -> Status {
    guard(|| {
        // SAFETY: a flight of the caller's, who ends it.
        let flight = needed(unsafe { take_boxed(flight) })?;
        let ttl = if ttl_ms == 0 { Duration::MAX } else { Duration::from_millis(ttl_ms) };
        flight.0.remember(reason, ttl);
        Ok(Status::Ok)
    })
}

/// Ends the flight without an entry: one of those that wait is the next to make it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_flight_end(flight: *mut Flight) {
    // SAFETY: a flight of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(flight) }));
}
