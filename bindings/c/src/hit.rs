//! Held entries.

use std::ffi::c_void;
use std::mem::{ManuallyDrop, MaybeUninit};

use crate::pointers::{Bytes, cleared, give, milliseconds, needed};
use crate::status::{Failure, Status, guard, guard_or};

type Found = eyewall::Hit<'static>;

const _: () = assert!(size_of::<Found>() <= 64 && align_of::<Found>() <= align_of::<u64>());

/// A held entry. Until you release it, its bytes don't change, whatever is put, removed or evicted meanwhile.
///
/// The caller provides the memory. A call that fills it doesn't look at its former content, so release that
/// first. You may move a hit. You may copy it if you release one of the copies and don't use the others. Hold a
/// hit only while you read it: a held entry can't be evicted.
#[repr(C)]
pub struct Hit {
    /// The value. NULL: the hit holds nothing.
    pub value: *const c_void,
    /// Length of the value in bytes.
    pub value_length: usize,
    /// Internal to the library.
    pub held: MaybeUninit<[u64; 8]>,
}

/// Properties of an entry.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Info {
    /// Identifies this version of the entry. It grows with every put of the key.
    pub serial: u64,
    /// When it was put, in milliseconds since 1970.
    pub created_ms: u64,
    /// Remaining time to live in milliseconds. EYEWALL_FOREVER: valid until it is evicted.
    pub ttl_left_ms: u64,
    /// Remaining time in which it may be used, fresh or stale, in milliseconds.
    pub usable_left_ms: u64,
    /// The reason code of a negative entry.
    pub reason: u16,
    /// Whether it is a negative entry.
    pub is_negative: bool,
    /// Whether it was past its time to live at the look-up.
    pub is_stale: bool,
    /// Whether the bytes are a copy on this process's heap, because too much of the volume is held.
    pub is_copy: bool,
    /// With EYEWALL_SURVIVE_SIGBUS: whether the bytes that were read so far are those that were put.
    pub is_intact: bool,
    /// Reserved for later versions.
    pub reserved: [u64; 4],
}

impl Hit {
    const NOTHING: Self = Self { value: std::ptr::null(), value_length: 0, held: MaybeUninit::uninit() };

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

    /// Sets the caller's hit to empty, if the pointer isn't NULL.
    #[inline]
    pub(crate) fn cleared(mut to: Option<&mut MaybeUninit<Self>>) -> Option<&mut MaybeUninit<Self>> {
        if let Some(to) = &mut to {
            Self::empty(to);
        }
        to
    }

    /// The held entry, unless this process inherited it by a fork.
    fn found(&self) -> Option<&Found> {
        // SAFETY: where there is a value, `fill` has written it.
        let found = (!self.value.is_null()).then(|| unsafe { &*self.held.as_ptr().cast::<Found>() });
        found.filter(|found| !found.is_inherited())
    }

    fn needed(hit: Option<&Self>) -> Result<&Found, Failure> {
        needed(hit)?
            .found()
            .ok_or(Failure::Argument("the hit is empty, or this process inherited it by a fork: look the key up again"))
    }
}

/// Releases the hit. An empty hit may be released.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_release(hit: Option<&mut Hit>) {
    let Some(hit) = hit.filter(|hit| !hit.value.is_null()) else { return };
    hit.value = std::ptr::null();
    hit.value_length = 0;
    // SAFETY: there was a value, so that `fill` has written it, and it is marked as empty now.
    guard_or((), || unsafe { hit.held.as_mut_ptr().cast::<Found>().drop_in_place() });
}

/// The entry's key.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_key(hit: Option<&Hit>) -> Bytes {
    guard_or(Bytes::NONE, || hit.and_then(Hit::found).map_or(Bytes::NONE, |found| Bytes::of(found.key())))
}

/// The entry's metadata. Its length is 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_metadata(hit: Option<&Hit>) -> Bytes {
    guard_or(Bytes::NONE, || hit.and_then(Hit::found).map_or(Bytes::NONE, |found| Bytes::of(found.metadata())))
}

/// One of the entry's tags; `number` counts from 0. The data is NULL if there are fewer tags.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_tag(hit: Option<&Hit>, number: usize) -> Bytes {
    guard_or(Bytes::NONE, || {
        let tag = hit.and_then(Hit::found).and_then(|found| found.tags().nth(number));
        tag.map_or(Bytes::NONE, |tag| Bytes::of(tag.as_bytes()))
    })
}

/// The entry's other properties.
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

/// Call it after you have read the value. EYEWALL_OK: the bytes that you read are those that were put.
/// EYEWALL_ERROR_FAILED: bytes of the volume were lost under its map (EYEWALL_SURVIVE_SIGBUS), and any bytes of
/// the entry may have read as zeros since. The call costs next to nothing.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_hit_check(hit: Option<&Hit>) -> Status {
    // Callers ask after every get, and the hit is almost always intact: no call into `guard`.
    if hit.and_then(Hit::found).is_some_and(eyewall::Hit::is_intact) {
        return Status::Ok;
    }
    guard(|| {
        Hit::needed(hit)?.check_intact()?;
        Ok(Status::Ok)
    })
}

/// The value's range in the volume's file, for callers that read the file through their own descriptor.
/// EYEWALL_MISS: the hit is a copy, or the volume has no file.
///
/// The range holds the value only while the hit is held. sendfile and splice return before the bytes are read:
/// hold the hit until the peer has received them, which a socket doesn't report.
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
