//! Entries that one caller makes while the others wait (request collapsing).

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{FillOptions, Filled, Filling, NotStored};

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{bytes, cleared, cleared_box, give, give_boxed, needed, take_boxed};
use crate::put::{self, PutOptions};
use crate::status::{Failure, Status, guard, guard_or};

/// The right, and the duty, to make one entry that others wait for. Also known as single flight.
pub struct Flight(eyewall::Flight<'static>);

/// Looks up a key. If it has no valid entry, one caller over all threads and processes gets the right to make it.
/// The others wait for that caller, up to `deadline_ms`.
///
/// EYEWALL_OK: `hit` holds the entry; release it. EYEWALL_STALE, only with `use_stale`: `hit` holds a stale
/// entry, which another caller is renewing; release it. EYEWALL_NEGATIVE: there is nothing, and `reason` (may be
/// NULL) says why. EYEWALL_FILL: make the entry, and end the `flight`. If this process dies, one of the waiting
/// callers makes the entry. EYEWALL_ERROR_BUSY: the deadline passed.
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

/// Stores the value and ends the flight, even after an error. EYEWALL_SUPERSEDED: another caller changed the
/// entry after the flight began, and nothing was stored. `serial` may be NULL.
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

/// Stores a negative entry, so that nobody tries again for `ttl_ms` (0: until it is evicted), and ends the
/// flight. If the negative entry can't be stored, the next caller tries again.
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

/// Ends the flight without an entry. One of the waiting callers makes it instead.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_flight_end(flight: *mut Flight) {
    // SAFETY: a flight of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(flight) }));
}
