//! Entries that are written piece by piece, and read meanwhile.

use std::ffi::c_void;
use std::io::{self, Write as _};
use std::mem::MaybeUninit;
use std::time::Duration;

use eyewall::{Committed, Error};

use crate::open::Cache;
use crate::pointers::{Bytes, bytes, give, give_boxed, needed, take_boxed};
use crate::put::PutOptions;
use crate::status::{Failure, Status, guard, guard_or};

/// An entry that is being written. Nobody finds it before it is committed.
pub struct Writer(eyewall::Writer);

/// Reads an entry while somebody writes it.
pub struct Follower(eyewall::Follower);

/// The length of a value that isn't known yet.
pub const EYEWALL_LENGTH_UNKNOWN: u64 = u64::MAX;

/// Begins an entry whose value comes piece by piece. With its length known, nothing is copied twice.
///
/// It claims the key: another writer, claim or fill of it waits. Plain puts and removes don't; they supersede what is written.
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
        let writer = needed(writer)?;
        writer.write(std::ptr::null_mut());
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

/// Takes all of these bytes, or, after an error, none. After EYEWALL_ERROR_PINNED and EYEWALL_ERROR_BUSY the same call may be
/// tried again; after other errors nothing will come of the entry.
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
        Err(_) => Failure::Argument("the writer took less than all, and said nothing"),
    }
}

/// Makes what was written the entry, and ends the writer. EYEWALL_SUPERSEDED: somebody else has changed the entry since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_commit(writer: *mut Writer, serial: Option<&mut MaybeUninit<u64>>) -> Status {
    guard(|| {
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

/// Gives up what was written, and ends the writer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_writer_abort(writer: *mut Writer) {
    // SAFETY: a writer of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(writer) }));
}

/// Reads what a writer, of this process or another, is writing to a key, from its first byte on: EYEWALL_OK, or EYEWALL_MISS where
/// nobody writes it. The bytes come before their writer has vouched for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follow(
    cache: Option<&Cache>,
    key: *const c_void,
    key_length: usize,
    follower: Option<&mut MaybeUninit<*mut Follower>>,
) -> Status {
    guard(|| {
        let follower = needed(follower)?;
        follower.write(std::ptr::null_mut());
        // SAFETY: the header says what keys are.
        let key = unsafe { bytes(key, key_length) }?;
        let Some(followed) = needed(cache)?.0.follow(key)? else { return Ok(Status::Miss) };
        give_boxed(follower, Follower(followed));
        Ok(Status::Ok)
    })
}

/// Copies what comes next; waits for it for up to `deadline_ms`. EYEWALL_OK: so many bytes; EYEWALL_END: that was all, and the entry
/// was stored; EYEWALL_ERROR_INTERRUPTED: nothing will come of it, and what was read is part of no entry.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follower_read(
    follower: Option<&mut Follower>,
    buffer: *mut c_void,
    capacity: usize,
    deadline_ms: u64,
    length: Option<&mut MaybeUninit<usize>>,
) -> Status {
    guard(|| {
        let length = needed(length)?;
        length.write(0);
        if buffer.is_null() || capacity == 0 || capacity > isize::MAX as usize {
            return Err(Failure::Argument("the buffer is NULL, or has no bytes"));
        }
        // SAFETY: the buffer is the caller's and has so many bytes. They are made bytes of ours before they are looked at.
        let buffer = unsafe {
            buffer.write_bytes(0, capacity);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), capacity)
        };
        let read = needed(follower)?.0.read(buffer, Duration::from_millis(deadline_ms))?;
        length.write(read);
        Ok(if read == 0 { Status::End } else { Status::Ok })
    })
}

/// The metadata that the entry will have; the follower's.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_follower_metadata(follower: Option<&Follower>) -> Bytes {
    guard_or(Bytes::NONE, || follower.map_or(Bytes::NONE, |follower| Bytes::of(follower.0.metadata())))
}

/// Reads no further.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_follower_end(follower: *mut Follower) {
    // SAFETY: a follower of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(follower) }));
}
