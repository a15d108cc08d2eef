//! Opening and closing.

use std::ffi::{CStr, OsStr, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use eyewall::{Options, Unclean};

use crate::pointers::{cleared_box, give_boxed, needed, take_boxed};
use crate::status::{Failure, Status, guard, guard_or};

/// An open volume.
pub struct Cache(pub(crate) eyewall::Cache);

/// The volume must exist.
pub const EYEWALL_MUST_EXIST: u32 = 1;
/// For looking only. Hits are copies then.
pub const EYEWALL_READ_ONLY: u32 = 2;
/// A new volume overwrites what dies with zeros.
pub const EYEWALL_SECURE_ERASE: u32 = 4;
/// Calls fail, instead of the process, when the volume's file is truncated or its storage fails. Installs a handler of SIGBUS.
pub const EYEWALL_SURVIVE_SIGBUS: u32 = 8;
/// A volume that a crash of the machine has left is emptied, instead of kept as far as it can be verified.
pub const EYEWALL_CLEAR_UNCLEAN: u32 = 16;
/// eyewall_open_options.group counts.
pub const EYEWALL_SET_GROUP: u32 = 32;
/// A file that is broken (empty, shorter than its header says, or with a damaged header) is renamed to
/// NAME.broken-SECONDS_SINCE_1970, and a new volume takes its place; one such file is kept. Without it that is
/// EYEWALL_ERROR_CORRUPT. A file that is no volume is never renamed.
pub const EYEWALL_PUT_ASIDE_BROKEN: u32 = 64;
/// Each hit is held against its checksum before it is handed out; a wrong one is dropped, and is a miss. It reads the whole value
/// each time. Without it, entries that this process found intact once are trusted.
pub const EYEWALL_VERIFY_HITS: u32 = 128;

const FLAGS: u32 = EYEWALL_MUST_EXIST
    | EYEWALL_READ_ONLY
    | EYEWALL_SECURE_ERASE
    | EYEWALL_SURVIVE_SIGBUS
    | EYEWALL_CLEAR_UNCLEAN
    | EYEWALL_SET_GROUP
    | EYEWALL_PUT_ASIDE_BROKEN
    | EYEWALL_VERIFY_HITS;

/// How a volume is opened or created. Zero is the default of each, so that `{ .size = 1 << 30 }` will do.
///
/// The shape (size, entry_size_hint, entry_bytes_max) is fixed when the volume is created. To ask for another one later is an
/// error; not to ask takes the volume as it is.
#[repr(C)]
pub struct OpenOptions {
    /// Bytes of the volume, all overhead included: a hard cap. 0: 64 MiB. At least 512 KiB.
    pub size: u64,
    /// The largest entry: 48 bytes, key, metadata and value. 0: a sixteenth of the size, at most 4 MiB. Up to a quarter of the
    /// size.
    pub entry_bytes_max: u64,
    /// Bytes of a typical entry, for the size of the index. 0: 1024.
    pub entry_size_hint: u32,
    /// EYEWALL_MUST_EXIST and its like, joined by |.
    pub flags: u32,
    /// Permission bits of a new volume, whatever the umask. 0: 0600. Who may write it is trusted.
    pub mode: u32,
    /// With EYEWALL_SET_GROUP: the group of a new volume.
    pub group: u32,
    /// How long a call waits for a stopped process, or for another's claim. 0: 1000.
    pub lock_deadline_ms: u64,
    /// Up to so much shared memory is put before the volume, for copies of what is asked for often. 0: none.
    pub tier_bytes: u64,
    /// The folder of the tier's file. NULL: /dev/shm.
    pub tier_folder: *const c_char,
    /// For later versions; zero.
    pub reserved: [u64; 4],
}

impl OpenOptions {
    /// # Safety
    /// The folder is null or ends with a zero.
    unsafe fn read(options: Option<&Self>) -> Result<Options, Failure> {
        let Some(this) = options else { return Ok(Options::new()) };
        if this.flags & !FLAGS != 0 || this.reserved != [0; 4] {
            return Err(Failure::Argument(
                "the options say what this library doesn't know; set what isn't named to zero",
            ));
        }
        let has = |flag: u32| this.flags & flag != 0;
        let mut read = Options::new()
            .create(!has(EYEWALL_MUST_EXIST))
            .read_only(has(EYEWALL_READ_ONLY))
            .secure_erase(has(EYEWALL_SECURE_ERASE))
            .survive_sigbus(has(EYEWALL_SURVIVE_SIGBUS))
            .put_aside_broken(has(EYEWALL_PUT_ASIDE_BROKEN))
            .verify_hits(has(EYEWALL_VERIFY_HITS))
            .unclean(if has(EYEWALL_CLEAR_UNCLEAN) { Unclean::Clear } else { Unclean::Keep });
        if this.size != 0 {
            read = read.size(this.size);
        }
        if this.entry_bytes_max != 0 {
            read = read.entry_bytes_max(this.entry_bytes_max);
        }
        if this.entry_size_hint != 0 {
            read = read.entry_size_hint(this.entry_size_hint);
        }
        if this.mode != 0 {
            read = read.mode(this.mode);
        }
        if has(EYEWALL_SET_GROUP) {
            read = read.group(this.group);
        }
        if this.lock_deadline_ms != 0 {
            read = read.lock_deadline(Duration::from_millis(this.lock_deadline_ms));
        }
        if this.tier_bytes != 0 {
            read = read.tier(this.tier_bytes);
        }
        // SAFETY: the caller's promise.
        if let Some(folder) = unsafe { path(this.tier_folder) } {
            read = read.tier_folder(folder);
        }
        Ok(read)
    }
}

/// # Safety
/// `pointer` is null or points to bytes that end with a zero.
unsafe fn path<'a>(pointer: *const c_char) -> Option<&'a Path> {
    // SAFETY: not null, and the caller's promise.
    (!pointer.is_null()).then(|| Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(pointer) }.to_bytes())))
}

/// Opens the volume at `path`; creates it if there is none. `options` may be NULL. Opening one volume several times in a process
/// is one attachment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_open(
    path: *const c_char,
    options: Option<&OpenOptions>,
    cache: Option<&mut MaybeUninit<*mut Cache>>,
) -> Status {
    guard(|| {
        let cache = needed(cleared_box(cache))?;
        // SAFETY: the header says what paths are.
        let path = needed(unsafe { self::path(path) })?;
        if path.as_os_str().is_empty() {
            return Err(Failure::Argument("the volume's path is empty"));
        }
        // SAFETY: as above.
        give_boxed(cache, Cache(unsafe { OpenOptions::read(options) }?.open(path)?));
        Ok(Status::Ok)
    })
}

/// A volume in shared memory that has no name: this process shares it with those that it forks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_open_anonymous(
    options: Option<&OpenOptions>,
    cache: Option<&mut MaybeUninit<*mut Cache>>,
) -> Status {
    guard(|| {
        let cache = needed(cleared_box(cache))?;
        // SAFETY: the header says what paths are.
        give_boxed(cache, Cache(unsafe { OpenOptions::read(options) }?.anonymous()?));
        Ok(Status::Ok)
    })
}

/// Leaves the volume; what was got from the cache has to be ended before. A forked child that closes its parent's cache leaves the
/// parent's as it is; one that ends by _exit needn't. The last process that leaves writes it to storage, which may take seconds, and marks it as in order; one
/// that ends without leaves what has reached storage until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_close(cache: *mut Cache) {
    // SAFETY: a cache of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(cache) }));
}
