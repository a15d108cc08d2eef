//! Answers and errors, and the border that no panic crosses.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use eyewall::Error;

/// What a call has come to. From 0 on: answers. Below 0: errors, whose words eyewall_error_message has.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was done; what was asked for was found.
    Ok = 0,
    /// There is no valid entry.
    Miss = 1,
    /// There is an entry that may still be used, and ought to be made anew.
    Stale = 2,
    /// Somebody has noted that there is nothing; eyewall_info has the reason.
    Negative = 3,
    /// The condition doesn't hold: nothing was changed.
    Unmet = 4,
    /// Somebody has put, removed or purged the entry since this change of it began: it counts as done before that, and nothing
    /// is left of it.
    Superseded = 5,
    /// There is nothing, and the caller is the one to make it, and to end its eyewall_flight.
    Fill = 6,
    /// That was all.
    End = 7,
    /// The buffer is too small; the length that was asked for says how large it has to be.
    TooSmall = 8,

    /// A pointer is NULL that must not be, or what it points to isn't what it has to be.
    ErrorArgument = -1,
    /// A key of no bytes.
    ErrorKeyEmpty = -2,
    /// A key of more than 65,535 bytes, or more than the volume's limit.
    ErrorKeyTooLong = -3,
    /// More than 65,535 bytes of metadata, tags included.
    ErrorMetadataTooLong = -4,
    /// More than 32 tags.
    ErrorTooManyTags = -5,
    /// A tag of no bytes, or of more than 255.
    ErrorTagLength = -6,
    /// An entry that is to be counted up holds something else.
    ErrorNotACounter = -7,
    /// The entry is larger than the volume's limit (entry_bytes_max).
    ErrorEntryTooLarge = -8,
    /// Readers hold too much of the cache to make room; release hits, and try again (a claim or flight that was ended by it begins anew).
    ErrorPinned = -9,
    /// Another process or thread held what was needed until the deadline; try again.
    ErrorBusy = -10,
    /// The writer of an entry gave up, or was superseded.
    ErrorInterrupted = -11,
    /// The volume, or the right to it, is for reading only.
    ErrorReadOnly = -12,
    /// There is no volume, and it wasn't to be created.
    ErrorNotFound = -13,
    /// The file is no volume; it was left as it is.
    ErrorForeign = -14,
    /// The file is of another version of the format, or of a machine of another byte order.
    ErrorVersion = -15,
    /// The file contradicts itself.
    ErrorCorrupt = -16,
    /// The volume was created with another size, hint or limit than the options ask for.
    ErrorOptionsDiffer = -17,
    /// The size, or entry_bytes_max, is out of range.
    ErrorOutOfRange = -18,
    /// A tier that the volume can't have.
    ErrorNoTier = -19,
    /// The storage has no room for the volume.
    ErrorNoSpace = -20,
    /// The volume's table of processes is full.
    ErrorTooManyProcesses = -21,
    /// Bytes of the volume were lost under its map, or another file has taken its place: close it, and open it again.
    ErrorFailed = -22,
    /// The operating system refused.
    ErrorIo = -23,
    /// A fault of the library; please report it, with its message.
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

/// The answer of a call that has none but errors.
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
        Error::Io { .. } => Status::ErrorIo,
        // Of calls that C doesn't have.
        _ => Status::ErrorInternal,
    }
}

/// The border: what is done inside neither panics nor fails for who calls.
#[inline]
pub(crate) fn guard(work: impl FnOnce() -> Outcome) -> Status {
    // After a panic nothing is used that the closure could have left half done but the engine, which stands that.
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

/// What may go from thread to thread, as the header says.
const fn moves_between_threads<T: Send>() {}
const _: () = {
    moves_between_threads::<eyewall::Hit<'static>>();
    moves_between_threads::<eyewall::Claimed<'static>>();
    moves_between_threads::<eyewall::Flight<'static>>();
    moves_between_threads::<eyewall::Iter<'static>>();
    moves_between_threads::<eyewall::Writer>();
    moves_between_threads::<eyewall::Follower>();
    // A cache is used by several threads at once.
    moves_between_threads::<&'static eyewall::Cache>();
};

/// As [`guard`], of what gives no status.
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
    // A thread that ends has no message any more.
    let _ = MESSAGE.try_with(|last| last.replace(message));
}

/// What this thread's last error was, and what to do about it: one sentence in English. Valid until the thread's next error.
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
