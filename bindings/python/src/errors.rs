//! Turns errors into exceptions, whose classes are in `eyewall/_errors.py`.

use eyewall::Error;
use pyo3::prelude::*;

/// Replaces names of the Rust interface in the engine's messages by those of Python.
const WORDS: [(&str, &str); 4] = [
    ("open with create(true)", "open it without must_exist"),
    ("read_only(true)", "read_only=True"),
    ("put_aside_broken(true)", "put_aside_broken=True"),
    ("drop some hits", "release some views"),
];

/// Makes an exception of an error.
pub(crate) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for eyewall::Result<T> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| raised(py, &error))
    }
}

#[cold]
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let mut words = error.to_string();
    for (engine, python) in WORDS {
        words = words.replace(engine, python);
    }
    exception(py, class_of(error), &words)
}

/// An exception of one of the package's classes.
#[cold]
pub(crate) fn exception(py: Python<'_>, class: &str, words: &str) -> PyErr {
    let made = py.import("eyewall._errors").and_then(|errors| errors.getattr(class)?.call1((words,)));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

#[cold]
pub(crate) fn closed(py: Python<'_>) -> PyErr {
    exception(py, "ClosedError", "the cache is closed; open another")
}

/// The error for a claim, flight or writer that has ended.
#[cold]
pub(crate) fn ended(py: Python<'_>, what: &str) -> PyErr {
    exception(py, "EndedError", &format!("the {what} has ended; begin another"))
}

fn class_of(error: &Error) -> &'static str {
    match error {
        Error::KeyEmpty => "KeyEmptyError",
        Error::KeyTooLong { .. } => "KeyTooLongError",
        Error::MetadataTooLong { .. } => "MetadataTooLongError",
        Error::TooManyTags { .. } => "TooManyTagsError",
        Error::TagLength { .. } => "TagLengthError",
        Error::NotACounter { .. } => "NotACounterError",
        Error::EntryTooLarge { .. } => "EntryTooLargeError",
        Error::Pinned { .. } => "PinnedError",
        Error::Busy { .. } => "BusyError",
        Error::Interrupted { .. } => "InterruptedWriteError",
        Error::ReadOnly { .. } => "ReadOnlyError",
        Error::NotFound { .. } => "NotFoundError",
        Error::Foreign { .. } => "ForeignError",
        Error::Version { .. } | Error::ByteOrder { .. } => "VersionError",
        Error::Corrupt { .. } => "CorruptError",
        Error::OptionsDiffer { .. } => "OptionsDifferError",
        Error::SizeTooSmall { .. } | Error::SizeTooLarge { .. } | Error::EntryMaxOutOfRange { .. } => "OutOfRangeError",
        Error::NoTier { .. } => "NoTierError",
        Error::NoSpace { .. } => "NoSpaceError",
        Error::TooManyProcesses { .. } => "TooManyProcessesError",
        Error::Failed { .. } | Error::Moved { .. } => "FailedError",
        Error::Io { .. } | Error::Outbox { .. } => "StorageError",
        // Only calls that this package lacks give these errors.
        _ => "Error",
    }
}
