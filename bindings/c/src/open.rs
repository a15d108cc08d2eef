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
/// Opens the volume for reading only. All hits are copies then.
pub const EYEWALL_READ_ONLY: u32 = 2;
/// A new volume overwrites dead entries with zeros.
pub const EYEWALL_SECURE_ERASE: u32 = 4;
/// If the volume's file is truncated or its storage fails, calls return an error and the process is not killed.
/// Installs a handler of SIGBUS.
pub const EYEWALL_SURVIVE_SIGBUS: u32 = 8;
/// After a crash of the machine, empty the volume. Without it, entries that can be verified are kept.
pub const EYEWALL_CLEAR_UNCLEAN: u32 = 16;
/// Use eyewall_open_options.group.
pub const EYEWALL_SET_GROUP: u32 = 32;
/// Rename a broken file to NAME.broken-SECONDS_SINCE_1970 and create a new volume in its place. Broken means
/// empty, shorter than its header says, or with a damaged header. One such file is kept. Without the flag,
/// opening it returns EYEWALL_ERROR_CORRUPT. A file that is not a volume is never renamed.
pub const EYEWALL_PUT_ASIDE_BROKEN: u32 = 64;
/// Verify the checksum of each hit before returning it. A damaged entry is removed, and is a miss. That reads the
/// whole value each time. Without the flag, the library trusts entries that this process has verified once.
pub const EYEWALL_VERIFY_HITS: u32 = 128;
/// The volume belongs to a fleet: purges of all processes wait in a file beside it, NAME.purges, for `eyewall serve`
/// or `eyewall fleet agent`, which pass them on to other machines. Without the flag, they do so as soon as one of
/// these programs has made the file. Fills ask the agent for what other machines have made, if it shares objects. The
/// flag has no effect with EYEWALL_READ_ONLY.
pub const EYEWALL_FLEET: u32 = 256;

const FLAGS: u32 = EYEWALL_MUST_EXIST
    | EYEWALL_READ_ONLY
    | EYEWALL_SECURE_ERASE
    | EYEWALL_SURVIVE_SIGBUS
    | EYEWALL_CLEAR_UNCLEAN
    | EYEWALL_SET_GROUP
    | EYEWALL_PUT_ASIDE_BROKEN
    | EYEWALL_VERIFY_HITS
    | EYEWALL_FLEET;

/// Options of opening or creating a volume. A field that is 0 has its default, so `{ .size = 1 << 30 }` is
/// enough.
///
/// The creation of a volume fixes its shape (size, entry_size_hint, entry_bytes_max). Asking for another shape
/// later is an error. Leaving a field 0 accepts the volume as it is.
#[repr(C)]
pub struct OpenOptions {
    /// Size of the volume in bytes, including all overhead: a hard cap. 0: 64 MiB. At least 512 KiB.
    pub size: u64,
    /// The largest entry in bytes: 48, plus key, metadata and value. 0: a sixteenth of the size, at most 4
    /// MiB. At most a quarter of the size.
    pub entry_bytes_max: u64,
    /// Size of a typical entry in bytes, which determines the initial size of the index. 0: 1024.
    pub entry_size_hint: u32,
    /// EYEWALL_MUST_EXIST and the other flags, joined by |.
    pub flags: u32,
    /// Permission bits of a new volume; the umask doesn't apply. 0: 0600. Readers trust every user who can
    /// write the volume.
    pub mode: u32,
    /// With EYEWALL_SET_GROUP: the group of a new volume.
    pub group: u32,
    /// How long a call waits for a stopped process, or for another caller's claim, in milliseconds. 0: 1000.
    pub lock_deadline_ms: u64,
    /// Maximum size in bytes of a tier: shared memory in front of a volume on a disk, which holds copies of
    /// hot entries. 0: none.
    pub tier_bytes: u64,
    /// The folder of the tier's file. NULL: /dev/shm.
    pub tier_folder: *const c_char,
    /// Reserved for later versions; must be zero.
    pub reserved: [u64; 4],
}

impl OpenOptions {
    /// # Safety
    /// The folder is null or ends with a zero.
    unsafe fn read(options: Option<&Self>) -> Result<Options, Failure> {
        let Some(this) = options else { return Ok(Options::new()) };
        if this.flags & !FLAGS != 0 || this.reserved != [0; 4] {
            return Err(Failure::Argument(
                "the options have unknown flags or nonzero reserved fields: set the whole struct to zero first",
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
            .fleet(has(EYEWALL_FLEET))
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

/// Opens the volume at `path`, and creates it if there is none. `options` may be NULL. Several caches of one
/// volume in a process share one attachment.
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
        let opened = unsafe { OpenOptions::read(options) }?.open(path)?;
        let is_of_fleet = options.is_some_and(|options| options.flags & EYEWALL_FLEET != 0);
        give_boxed(cache, Cache(if is_of_fleet { eyewall_fleet_client::join(&opened) } else { opened }));
        Ok(Status::Ok)
    })
}

/// Creates a volume in shared memory that has no name. This process shares it with the processes that it forks.
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

/// Closes the cache. End and release everything that came from it first. A forked child that closes its parent's
/// cache leaves the parent's open. A child that ends by _exit needn't close it.
///
/// The last process that closes a volume writes it to storage, which may take seconds, and marks it as clean. If
/// that process ends without closing, the volume keeps what has reached storage by then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eyewall_close(cache: *mut Cache) {
    // SAFETY: a cache of the caller's, who ends it.
    guard_or((), || drop(unsafe { take_boxed(cache) }));
}
