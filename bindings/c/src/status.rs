//! Statuses, and the boundary that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use eyewall::Error;

/// The result of a call. From 0 on it is an answer. Below 0 it is an error, which eyewall_error_message explains.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The call succeeded, and found what it looked for.
    Ok = 0,
    /// There is no valid entry.
    Miss = 1,
    /// There is a stale entry: it may be used, and should be renewed.
    Stale = 2,
    /// There is a negative entry; eyewall_info has its reason.
    Negative = 3,
    /// The condition doesn't hold, and nothing was changed.
    Unmet = 4,
    /// Another caller put, removed or purged the entry after this change began. The change counts as done
    /// before that, and nothing of it is stored.
    Superseded = 5,
    /// There is no entry. The caller has to make it and to end its eyewall_flight.
    Fill = 6,
    /// There is no more.
    End = 7,
    /// The buffer is too small. The returned length says how large it must be.
    TooSmall = 8,

    /// A required pointer is NULL, or an argument is invalid.
    ErrorArgument = -1,
    /// The key has no bytes.
    ErrorKeyEmpty = -2,
    /// The key has more than 65,535 bytes, or is longer than the volume allows.
    ErrorKeyTooLong = -3,
    /// The metadata, including tags, has more than 65,535 bytes.
    ErrorMetadataTooLong = -4,
    /// The put has more than 32 tags.
    ErrorTooManyTags = -5,
    /// A tag has no bytes, or more than 255.
    ErrorTagLength = -6,
    /// eyewall_increment found an entry that is not a counter.
    ErrorNotACounter = -7,
    /// The entry is larger than the volume's entry_bytes_max.
    ErrorEntryTooLarge = -8,
    /// Readers hold too many entries, so the cache can't make room. Release hits and try again. If the call
    /// ended a claim or a flight, begin a new one.
    ErrorPinned = -9,
    /// Another process or thread held the key or a lock until the deadline. Try again.
    ErrorBusy = -10,
    /// The writer of the entry gave up, or was superseded.
    ErrorInterrupted = -11,
    /// The volume was opened for reading only, or the file permits only reading.
    ErrorReadOnly = -12,
    /// There is no volume, and EYEWALL_MUST_EXIST is set.
    ErrorNotFound = -13,
    /// The file is not a volume. It was left unchanged.
    ErrorForeign = -14,
    /// The file has another version of the format, or comes from a machine with another byte order.
    ErrorVersion = -15,
    /// The file is damaged.
    ErrorCorrupt = -16,
    /// The volume has another size, hint or limit than the options ask for.
    ErrorOptionsDiffer = -17,
    /// The size, or entry_bytes_max, is out of range.
    ErrorOutOfRange = -18,
    /// The volume can't have the tier that the options ask for.
    ErrorNoTier = -19,
    /// The file system has no room for the volume.
    ErrorNoSpace = -20,
    /// The volume's table of processes is full.
    ErrorTooManyProcesses = -21,
    /// Bytes of the volume were lost under its map, or another file took its place. Close the volume and open
    /// it again.
    ErrorFailed = -22,
    /// The operating system refused a call.
    ErrorIo = -23,
    /// A bug in the library. Please report it with its message.
    ErrorInternal = -24,
}

/// Why a call failed.
pub(crate) enum Failure {
    Engine(Error),
    Argument(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

pub(crate) type Outcome = Result<Status, Failure>;

/// The status of a call that returns nothing but errors.
pub(crate) fn done(work: Result<(), eyewall::Error>) -> Outcome {
    Ok(work.map(|()| Status::Ok)?)
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

impl Failure {
    fn status(&self) -> Status {
        match self {
            Self::Argument(_) => Status::ErrorArgument,
            Self::Engine(error) => status_of(error),
        }
    }
}

fn status_of(error: &Error) -> Status {
    match error {
        Error::KeyEmpty => Status::ErrorKeyEmpty,
        Error::KeyTooLong { .. } => Status::ErrorKeyTooLong,
        Error::MetadataTooLong { .. } => Status::ErrorMetadataTooLong,
        Error::TooManyTags { .. } => Status::ErrorTooManyTags,
        Error::TagLength { .. } => Status::ErrorTagLength,
        Error::NotACounter { .. } => Status::ErrorNotACounter,
        Error::EntryTooLarge { .. } => Status::ErrorEntryTooLarge,
        Error::Pinned { .. } => Status::ErrorPinned,
        Error::Busy { .. } => Status::ErrorBusy,
        Error::Interrupted { .. } => Status::ErrorInterrupted,
        Error::ReadOnly { .. } => Status::ErrorReadOnly,
        Error::NotFound { .. } => Status::ErrorNotFound,
        Error::Foreign { .. } => Status::ErrorForeign,
        Error::Version { .. } | Error::ByteOrder { .. } => Status::ErrorVersion,
        Error::Corrupt { .. } => Status::ErrorCorrupt,
        Error::OptionsDiffer { .. } => Status::ErrorOptionsDiffer,
        Error::SizeTooSmall { .. } | Error::SizeTooLarge { .. } | Error::EntryMaxOutOfRange { .. } => {
            Status::ErrorOutOfRange
        }
        Error::NoTier { .. } => Status::ErrorNoTier,
        Error::NoSpace { .. } => Status::ErrorNoSpace,
        Error::TooManyProcesses { .. } => Status::ErrorTooManyProcesses,
        Error::Failed { .. } | Error::Moved { .. } => Status::ErrorFailed,
        Error::Io { .. } | Error::Outbox { .. } => Status::ErrorIo,
        // Only calls that the C interface lacks give these errors.
        _ => Status::ErrorInternal,
    }
}

/// The boundary to C: turns errors and panics of `work` into a status.
#[inline]
pub(crate) fn guard(work: impl FnOnce() -> Outcome) -> Status {
    // After a panic, the closure's own state is dropped. The engine may be left half-way, and repairs itself.
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => failed(&failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("an unknown panic");
            remember(text);
            Status::ErrorInternal
        }
    }
}

/// These may move between threads, as the header promises.
const fn moves_between_threads<T: Send>() {}
const _: () = {
    moves_between_threads::<eyewall::Hit<'static>>();
    moves_between_threads::<eyewall::Claimed<'static>>();
    moves_between_threads::<eyewall::Flight<'static>>();
    moves_between_threads::<eyewall::Iter<'static>>();
    moves_between_threads::<eyewall::Writer>();
    moves_between_threads::<eyewall::Follower>();
    // Several threads use a cache at once.
    moves_between_threads::<&'static eyewall::Cache>();
};

/// As [`guard`], for functions that return no status.
pub(crate) fn guard_or<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

#[cold]
fn failed(failure: &Failure) -> Status {
    match failure {
        Failure::Argument(what) => remember(what),
        Failure::Engine(error) => remember(&error.to_string()),
    }
    failure.status()
}

fn remember(text: &str) {
    let message = CString::new(text.replace('\0', "?")).unwrap_or_default();
    // A thread that is ending has dropped its message already.
    let _ = MESSAGE.try_with(|last| last.replace(message));
}

/// This thread's last error: one sentence in English that says what happened and what to do. Valid until the
/// thread's next error.
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_error_message() -> *const c_char {
    let none: &CStr = c"";
    MESSAGE.try_with(|last| last.borrow().as_ptr()).unwrap_or(none.as_ptr())
}

/// The version of this library, as "1.2.3".
#[unsafe(no_mangle)]
pub extern "C" fn eyewall_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };
    VERSION.as_ptr()
}
