//! Why a program of this crate gives up.

/// The result of everything in this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// Why a program of this crate gives up. Failures during the measurement are counted instead.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// The attempted operation, with the path or the address.
        what: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// An address can't be used.
    #[error("{given}: {what}; an address is http://HOST:PORT and, for `load`, a path; `load` takes https, too")]
    Address {
        /// As it was given.
        given: String,
        /// The fault.
        what: String,
    },
    /// TLS without a root certificate, or the reverse.
    #[error("an address of https needs --ca, and only such an address takes it")]
    Root,
    /// TLS can't begin.
    #[error("{what}: {why}")]
    Tls {
        /// The attempted operation.
        what: String,
        /// The library's answer.
        why: String,
    },
    /// Too many numbers with separate bodies.
    #[error("{file}: it has a file for each number; --names has to say how many there are, {most} at most")]
    Names {
        /// As it was given.
        file: String,
        /// The maximum.
        most: u64,
    },
    /// A store could not be opened.
    #[error("opening the store: {0}")]
    Store(#[from] eyewall_bench::error::Error),
    /// A first response differs from the expected one.
    #[error("the first answer on connection {connection} {what}, so there is nothing to measure")]
    FirstAnswer {
        /// Counted from 1.
        connection: usize,
        /// The fault.
        what: String,
    },
}

impl Error {
    /// Wraps a system error with the attempted operation.
    pub(crate) fn io<E: Into<std::io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: source.into() }
    }
}
