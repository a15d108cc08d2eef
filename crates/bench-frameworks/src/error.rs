//! Why the program can't serve.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The result of everything in this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why the program can't serve.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The folder can't be served.
    #[error("{} is no folder; --root names the folder whose files are served", .0.display())]
    Root(PathBuf),
    /// The server can't listen on the address.
    #[error("listening on {address}: {source}")]
    Listen {
        /// The address as given.
        address: SocketAddr,
        /// The system's answer.
        source: io::Error,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempt.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The volume could not be opened.
    #[error("the volume: {0}")]
    Volume(#[from] eyewall::Error),
    /// Rocket's own error.
    #[error("Rocket: {0}")]
    Rocket(String),
}

impl Error {
    /// Wraps a system error with the attempted operation.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
