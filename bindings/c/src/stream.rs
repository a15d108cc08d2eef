//! Entries that a writer writes piece by piece, while followers read them.

use std::ffi::c_void;
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{Committed, Error};

use crate::open::Cache;
use crate::pointers::{Bytes, bytes, cleared, cleared_box, give, give_boxed, needed, take_boxed};
use crate::put::PutOptions;
use crate::status::{Failure, Status, guard, guard_or};

/// An entry in progress. Look-ups don't find it before it is committed.
pub struct Writer(eyewall::Writer);

/// Reads an entry while a writer writes it.
pub struct Follower(eyewall::Follower);

/// The length of a value that isn't known in advance.
pub const EYEWALL_LENGTH_UNKNOWN: u64 = u64::MAX;

/// Begins an entry whose value comes piece by piece. If the length is known, no byte is copied twice.
///
/// The writer claims the key: other writers, claims and fills of it wait. Plain puts and removes don't wait; they
/// supersede the writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_begin(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    value_length: u64,
    options: Option<&PutOptions>,
    writer: Option<&mut MaybeUninit<*mut Writer>>,
) -> Status {
    guard(|| {
        let writer = needed(cleared_box(writer))?;
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let cache = needed(cache)?;
        let length = Some(value_length).filter(|length| *length != EYEWALL_LENGTH_UNKNOWN);
        // SAFETY: the header says what options are.
        let begun = unsafe { PutOptions::with(options, |options| Ok(cache.0.writer(key, options, length)?)) }?;
        give_boxed(writer, Writer(begun));
        Ok(Status::Ok)
    })
}

/// Appends all of these bytes or, after an error, none. After EYEWALL_ERROR_PINNED and EYEWALL_ERROR_BUSY the
/// same call may be repeated. After any other error the entry can't be committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_write(
    writer: Option<&mut Writer>,
    data: *const c_void,
    length: usize,
) -> Status {
    guard(|| {
        // SAFETY: the header says what bytes are.
        let data = unsafe { bytes(data, length) }?;
        match needed(writer)?.0.write_all(data) {
            Ok(()) => Ok(Status::Ok),
            Err(error) => Err(of_writing(error)),
        }
    })
}

fn of_writing(error: io::Error) -> Failure {
    match error.downcast::<Error>() {
        Ok(error) => Failure::Engine(error),
        Err(_) => Failure::Argument("the writer failed without an error of the cache"),
    }
}

/// Publishes the entry and ends the writer. EYEWALL_SUPERSEDED: another caller changed the entry after the writer
/// began, and nothing was stored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_commit(writer: *mut Writer, serial: Option<&mut MaybeUninit<u64>>) -> Status {
    guard(|| {
        let serial = cleared(serial);
        // SAFETY: a writer of the caller's, who ends it.
        let writer = needed(unsafe { take_boxed(writer) })?;
        let stored = match writer.0.commit()? {
            Committed::Stored(serial) => Some(serial),
            Committed::Superseded => None,
        };
        give(serial, stored.unwrap_or_default());
        Ok(if stored.is_some() { Status::Ok } else { Status::Superseded })
    })
}

/// Discards the bytes and ends the writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_abort(writer: *mut Writer) {
    // SAFETY: a writer of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(writer) }));
}

/// Follows the writer of a key, in any process, from the first byte of the value. EYEWALL_OK: end the `follower`.
/// EYEWALL_MISS: nobody writes the key, or this thread can't hold more entries. The bytes arrive before the
/// writer commits them, so they may turn out to be part of no entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follow(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    follower: Option<&mut MaybeUninit<*mut Follower>>,
) -> Status {
    guard(|| {
        let follower = needed(cleared_box(follower))?;
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let Some(followed) = needed(cache)?.0.follow(key)? else { return Ok(Status::Miss) };
        give_boxed(follower, Follower(followed));
        Ok(Status::Ok)
    })
}

/// Copies the next bytes; waits for them for up to `deadline_ms`. EYEWALL_OK: `length` says how many.
/// EYEWALL_END: the value is complete and stored. EYEWALL_ERROR_INTERRUPTED: the entry will not come, and the
/// bytes that were read are part of no entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follower_read(
    follower: Option<&mut Follower>,
    buffer: *mut c_void,
    capacity: usize,
    deadline_ms: u64,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    guard(|| {
        let length = needed(cleared(length))?;
        if buffer.is_null() || capacity == 0 || capacity > isize::MAX as usize {
            return Err(Failure::Argument("the buffer is NULL, or its capacity is 0"));
        }
        // SAFETY: the buffer is the caller's and has so many bytes. The zeros initialise them.
        let buffer = unsafe {
            buffer.write_bytes(0, capacity);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), capacity)
        };
        let read = needed(follower)?.0.read(buffer, Duration::from_millis(deadline_ms))?;
        length.write(read);
        Ok(if read == 0 { Status::End } else { Status::Ok })
    })
}

/// The metadata of the entry in progress. Valid until the follower is ended.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_follower_metadata(follower: Option<&Follower>) -> Bytes {
    guard_or(Bytes::NONE, || follower.map_or(Bytes::NONE, |follower| Bytes::of(follower.0.metadata())))
}

/// Ends a follower.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follower_end(follower: *mut Follower) {
    // SAFETY: a follower of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(follower) }));
}
