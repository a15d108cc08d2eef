//! Checks of the pointers that callers pass.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::slice;
use std::time::Duration;

use crate::status::Failure;

/// A string of bytes, without a terminating zero.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Bytes {
    /// The first byte.
    pub data: *const c_void,
    /// The number of bytes.
    pub length: usize,
}

impl Bytes {
    pub(crate) const NONE: Self = Self { data: std::ptr::null(), length: 0 };

    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr().cast(), length: bytes.len() }
    }

    /// # Safety
    /// As for [`bytes`].
    pub(crate) unsafe fn read<'a>(self) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller's.
        unsafe { bytes(self.data, self.length) }
    }
}

/// # Safety
/// `data` is null, or so many bytes can be read there that nobody writes for as long as the slice is used.
#[inline]
pub(crate) unsafe fn bytes<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    if data.is_null() || length > isize::MAX as usize {
        return Err(Failure::Argument(
            "a pointer to bytes is NULL though its length is not 0, or the length is more than memory can hold",
        ));
    }
    // SAFETY: not null, not too long, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(data.cast(), length) })
}

/// # Safety
/// `data` is null, or so many objects of the type lie there, that nobody writes for as long as the slice is used.
pub(crate) unsafe fn objects<'a, T>(data: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() || count.checked_mul(size_of::<T>()).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Failure::Argument(
            "a pointer to an array is NULL though its count is not 0, or the count is more than memory can hold",
        ));
    }
    // SAFETY: not null, not too long, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(data, count) })
}

/// Refuses NULL.
#[inline]
pub(crate) fn needed<T>(pointer: Option<T>) -> Result<T, Failure> {
    pointer.ok_or(Failure::Argument("a required pointer is NULL: eyewall.h says which pointers of the call may be"))
}

/// Clears the place of a result, so that a call that fails leaves nothing there.
#[inline]
pub(crate) fn cleared<T: Default>(mut to: Option<&mut MaybeUninit<T>>) -> Option<&mut MaybeUninit<T>> {
    if let Some(to) = &mut to {
        to.write(T::default());
    }
    to
}

/// As [`cleared`], for a boxed result.
pub(crate) fn cleared_box<T>(mut to: Option<&mut MaybeUninit<*mut T>>) -> Option<&mut MaybeUninit<*mut T>> {
    if let Some(to) = &mut to {
        to.write(std::ptr::null_mut());
    }
    to
}

/// Writes a result, unless the caller passed NULL.
#[inline]
pub(crate) fn give<T>(to: Option<&mut MaybeUninit<T>>, result: T) {
    if let Some(to) = to {
        to.write(result);
    }
}

/// Writes a boxed result. The caller owns it until [`take_boxed`].
pub(crate) fn give_boxed<T>(to: &mut MaybeUninit<*mut T>, result: T) {
    to.write(Box::into_raw(Box::new(result)));
}

/// Takes back the box of [`give_boxed`].
///
/// # Safety
/// `pointer` is null, or came from there and wasn't taken back yet.
pub(crate) unsafe fn take_boxed<T>(pointer: *mut T) -> Option<Box<T>> {
    // SAFETY: the caller's promise.
    (!pointer.is_null()).then(|| unsafe { Box::from_raw(pointer) })
}

pub(crate) fn milliseconds(duration: Option<Duration>) -> u64 {
    duration.map_or(crate::EYEWALL_FOREVER, |duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
