//! The errors of a benchmark run.

use std::fmt;
use std::path::{Path, PathBuf};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a benchmark could not run. A missed bar is not an error: it is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file, directory or process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// The attempted operation, with the path.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The engine returned an error.
    #[error("eyewall: {0}")]
    Engine(#[from] eyewall::Error),
    /// A peer returned an error.
    #[error("{store}: {what}")]
    Store {
        /// Which store.
        store: &'static str,
        /// Its message.
        what: String,
    },
    /// A store doesn't accept values of this size, or has no room now. Its content is unchanged.
    #[error("{store} refuses a value of {value_bytes} bytes; give it a larger cap, or smaller values")]
    Refused {
        /// Which store.
        store: &'static str,
        /// Bytes of the value.
        value_bytes: usize,
    },
    /// A line of a trace is not `key size`.
    #[error("{path}:{line}: {what}; a trace line is `key size`, two unsigned integers")]
    Trace {
        /// The trace.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The fault.
        what: String,
    },
    /// The definition of a workload is wrong.
    #[error("{path}: {what}", path = path.display())]
    Definition {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// A driver failed, or wrote a line that isn't valid.
    #[error("{driver}: {what}")]
    Driver {
        /// Its command.
        driver: String,
        /// What happened.
        what: String,
    },
    /// A child process could not do its work.
    #[error("a process started for it failed: {0}")]
    Child(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
    /// A condition of a workload did not hold, so its figures would mean nothing.
    #[error("invalid run: {0}")]
    Invalid(String),
}

impl Error {
    /// Wraps a system error with what was being done.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// A parameter of a case has a value that the procedure can't use.
    pub(crate) fn parameter(name: &str, value: Option<&impl fmt::Debug>, wanted: &str) -> Self {
        let given = value.map_or_else(|| "missing".to_owned(), |value| format!("{value:?}"));
        Self::Invalid(format!("the parameter {name} is {given}; the procedure wants {wanted}"))
    }

    /// Wraps a system error with what was being done to `path`.
    pub fn path(verb: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        Self::io(format!("{verb} {}", path.display()))
    }
}
