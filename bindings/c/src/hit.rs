//! Entries that are held.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, MaybeUninit};

use crate::pointers::{Bytes, cleared, give, milliseconds, needed};
use crate::status::{Failure, Status, guard, guard_or};

type Found = eyewall::Hit<'static>;

const _: () = assert!(size_of::<Found>() <= 64 && align_of::<Found>() <= align_of::<u64>());

/// An entry, held where it lies: as long as it isn't released, its bytes don't change, whatever is put, removed or evicted.
///
/// Memory of the caller's; what was in it before a call fills it isn't looked at, so release it first. It may be moved, and
/// copied if one of the copies is released and no other used. Hold it for as long as you read: what is held can't be evicted.
#[repr(C)]
pub struct Hit {
    /// The value. NULL: nothing is held.
    pub value: *const c_void,
    /// The value's bytes.
    pub value_length: usize,
    /// The library's.
    pub held: MaybeUninit<[u64; 8]>,
}

/// What is known of an entry beside its bytes.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Info {
    /// Names this version of the entry: grows with every put, within one key.
    pub serial: u64,
    /// When it was put, in milliseconds since 1970.
    pub created_ms: u64,
    /// How long it stays valid, in milliseconds; EYEWALL_FOREVER: until it is evicted.
    pub ttl_left_ms: u64,
    /// How long it may be used, fresh or stale.
    pub usable_left_ms: u64,
    /// Of a negative entry: why there is nothing.
    pub reason: u16,
    /// Whether it notes that there is nothing.
    pub is_negative: bool,
    /// Whether its time to live was over when it was looked up.
    pub is_stale: bool,
    /// Whether the bytes are a copy in this process's heap, since too much of the volume is held.
    pub is_copy: bool,
    /// With EYEWALL_SURVIVE_SIGBUS: whether what was read of it until now is what was put.
    pub is_intact: bool,
    /// For later versions.
    pub reserved: [u64; 4],
}

impl Hit {
    const NOTHING: Self = Self { value: std::ptr::null(), value_length: 0, held: MaybeUninit::uninit() };

    /// Fills memory of the caller's.
    #[inline]
    pub(crate) fn fill(to: &mut MaybeUninit<Self>, found: eyewall::Hit<'_>) {
        let value = found.value();
        let hit = to.write(Self { value: value.as_ptr().cast(), value_length: value.len(), ..Self::NOTHING });
        // SAFETY: checked above for size and alignment. The lifetime is that of the cache, which the caller closes last.
        unsafe {
            let found = ManuallyDrop::new(std::mem::transmute::<eyewall::Hit<'_>, Found>(found));
            hit.held.as_mut_ptr().cast::<ManuallyDrop<Found>>().write(found);
        }
    }

    #[inline]
    pub(crate) fn empty(to: &mut MaybeUninit<Self>) {
        to.write(Self::NOTHING);
    }

    /// Empties memory of the caller's, if there is any.
    #[inline]
    pub(crate) fn cleared(mut to: Option<&mut MaybeUninit<Self>>) -> Option<&mut MaybeUninit<Self>> {
        if let Some(to) = &mut to {
            Self::empty(to);
        }
        to
    }

    /// What it holds, if this process may read it.
    fn found(&self) -> Option<&Found> {
        // SAFETY: where there is a value, `fill` has written it.
        let found = (!self.value.is_null()).then(|| unsafe { &*self.held.as_ptr().cast::<Found>() });
        found.filter(|found| !found.is_inherited())
    }

    fn needed(hit: Option<&Self>) -> Result<&Found, Failure> {
        needed(hit)?
            .found()
            .ok_or(Failure::Argument("the hit holds nothing, or was held by the process that this one was forked from"))
    }
}

/// Gives up what is held, if anything is.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_release(hit: Option<&mut Hit>) {
    let Some(hit) = hit.filter(|hit| !hit.value.is_null()) else { return };
    hit.value = std::ptr::null();
    hit.value_length = 0;
    // SAFETY: there was a value, so that `fill` has written it, and it isn't found any more.
    guard_or((), || unsafe { hit.held.as_mut_ptr().cast::<Found>().drop_in_place() });
}

/// The entry's key.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_key(hit: Option<&Hit>) -> Bytes {
    guard_or(Bytes::NONE, || hit.and_then(Hit::found).map_or(Bytes::NONE, |found| Bytes::of(found.key())))
}

/// What was put as metadata; of no length if nothing was.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_metadata(hit: Option<&Hit>) -> Bytes {
    guard_or(Bytes::NONE, || hit.and_then(Hit::found).map_or(Bytes::NONE, |found| Bytes::of(found.metadata())))
}

/// One of the tags that it was put with, from 0 on; NULL: it hasn't so many.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_tag(hit: Option<&Hit>, number: usize) -> Bytes {
    guard_or(Bytes::NONE, || {
        let tag = hit.and_then(Hit::found).and_then(|found| found.tags().nth(number));
        tag.map_or(Bytes::NONE, |tag| Bytes::of(tag.as_bytes()))
    })
}

/// All else that is known of it.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_info(hit: Option<&Hit>, info: Option<&mut MaybeUninit<Info>>) -> Status {
    guard(|| {
        let info = needed(cleared(info))?;
        let found = Hit::needed(hit)?;
        let known = found.info();
        let created = known.created.duration_since(std::time::UNIX_EPOCH).ok();
        info.write(Info {
            serial: known.serial,
            created_ms: created.map_or(0, |since| milliseconds(Some(since))),
            ttl_left_ms: milliseconds(known.ttl_left),
            usable_left_ms: milliseconds(known.usable_left),
            reason: found.reason().unwrap_or_default(),
            is_negative: found.reason().is_some(),
            is_stale: known.stale,
            is_copy: found.is_copy(),
            is_intact: found.is_intact(),
            reserved: [0; 4],
        });
        Ok(Status::Ok)
    })
}

/// EYEWALL_OK if what was read of it until now is what was put. EYEWALL_ERROR_FAILED: bytes of the volume were lost under its map
/// (EYEWALL_SURVIVE_SIGBUS), and any of the entry's may read as zeros since. So it is asked behind the reads. It costs next to
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_check(hit: Option<&Hit>) -> Status {
    // Asked behind every get, and hardly ever in vain.
    if hit.and_then(Hit::found).is_some_and(eyewall::Hit::is_intact) {
        return Status::Ok;
    }
    guard(|| {
        Hit::needed(hit)?.check_intact()?;
        Ok(Status::Ok)
    })
}

/// Where the value lies in the volume's file, for who reads it by a descriptor of their own. EYEWALL_MISS: nowhere; it is a copy,
/// or the volume has no file.
///
/// The bytes are the value's only while it is held. sendfile and splice return before they are read: hold it until the other
/// side has received them, which a socket doesn't tell.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_file_range(
    hit: Option<&Hit>,
    offset: Option<&mut MaybeUninit<u64>>,
    length: Option<&mut MaybeUninit<u64>>,
) -> Status {
    guard(|| {
        let (offset, length) = (cleared(offset), cleared(length));
        let range = Hit::needed(hit)?.file_range();
        give(offset, range.as_ref().map_or(0, |range| range.start));
        give(length, range.as_ref().map_or(0, |range| range.end - range.start));
        Ok(if range.is_some() { Status::Ok } else { Status::Miss })
    })
}
