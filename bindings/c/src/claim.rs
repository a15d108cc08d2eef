//! Changes under a key's claim.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use eyewall::{Claimed, Updated};

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{bytes, cleared_box, give_boxed, needed, take_boxed};
use crate::put::{self, PutOptions};
use crate::status::{Status, guard, guard_or};

/// The right to change one key, one at a time over all processes.
pub struct Claim(Claimed<'static>);

/// Claims a key, to look at its entry and change it: EYEWALL_OK, and `hit` has the entry, which has to be released; or
/// EYEWALL_MISS: there is none. With both, `claim` is the caller's to end.
///
/// As long as it isn't ended, other claims, writers and fills of the key wait for it, up to the lock deadline; if this process
/// dies, they go on. Plain puts and removes don't wait: they supersede what is stored by the claim. Release the entry before the claim
/// stores: what is held can't make room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_claim_begin(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    claim: Option<&mut MaybeUninit<*mut Claim>>,
    hit: Option<&mut MaybeUninit<Hit>>,
) -> Status {
    guard(|| {
        let (claim, hit) = (cleared_box(claim), Hit::cleared(hit));
        let (claim, hit) = (needed(claim)?, needed(hit)?);
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let mut claimed = needed(cache)?.0.claim(key)?;
        let entry = claimed.take_entry();
        // SAFETY: the lifetime is that of the cache, which the caller closes last.
        give_boxed(claim, Claim(unsafe { std::mem::transmute::<Claimed<'_>, Claimed<'static>>(claimed) }));
        let Some(entry) = entry else { return Ok(Status::Miss) };
        Hit::fill(hit, entry);
        Ok(Status::Ok)
    })
}

/// Stores a value, and ends the claim, after errors, too: to try again, claim again. EYEWALL_SUPERSEDED: somebody else has changed the
/// entry since. `serial` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_claim_put(
    claim: *mut Claim,
    value: *const c_void,
    value_length: usize,
    options: Option<&PutOptions>,
    serial: Option<&mut MaybeUninit<u64>>,
) -> Status {
    // SAFETY: a claim of the caller's, who ends it; the header says what values and options are.
    unsafe {
        let claim = take_boxed(claim);
        put::store(options, serial, Status::Superseded, |options| {
            let updated = needed(claim)?.0.put(bytes(value, value_length)?, options)?;
            Ok(if let Updated::Stored(serial) = updated { Some(serial) } else { None })
        })
    }
}

/// Removes the entry, if there is one, and ends the claim. EYEWALL_SUPERSEDED: somebody else has changed the entry since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_claim_remove(claim: *mut Claim) -> Status {
    guard(|| {
        // SAFETY: a claim of the caller's, who ends it.
        let claim = needed(unsafe { take_boxed(claim) })?;
        Ok(match claim.0.remove()? {
            Updated::Superseded => Status::Superseded,
            _ => Status::Ok,
        })
    })
}

/// Ends the claim, and leaves the entry as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_claim_end(claim: *mut Claim) {
    // SAFETY: a claim of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(claim) }));
}
