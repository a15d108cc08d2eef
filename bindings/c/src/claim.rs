//! Changes under a key's claim.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use eyewall::{Claimed, Updated};

use crate::hit::Hit;
use crate::open::Cache;
use crate::pointers::{bytes, cleared_box, give_boxed, needed, take_boxed};
use crate::put::{self, PutOptions};
use crate::status::{Status, guard, guard_or};

/// The right to change one key. One thread of one process has it at a time.
pub struct Claim(Claimed<'static>);

/// Claims a key and looks its entry up. EYEWALL_OK: `hit` holds the entry; release it. EYEWALL_MISS: there is no
/// entry. In both cases the caller owns `claim` and must end it.
///
/// While the claim stands, other claims, writers and fills of the key wait, up to the lock deadline. If this
/// process dies, they continue. Plain puts and removes don't wait: they supersede what the claim stores. Release
/// the hit before you store, since a held entry can't be evicted to make room.
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

/// Stores a value and ends the claim, even after an error. To retry, claim the key again. EYEWALL_SUPERSEDED:
/// another caller changed the entry after the claim began, and nothing was stored. `serial` may be NULL.
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

/// Removes the entry, if there is one, and ends the claim. EYEWALL_SUPERSEDED: another caller changed the entry
/// after the claim began.
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

/// Ends the claim and leaves the entry unchanged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_claim_end(claim: *mut Claim) {
    // SAFETY: a claim of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(claim) }));
}
