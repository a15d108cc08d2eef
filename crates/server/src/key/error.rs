//! The reasons for which a request has no key.

use http::StatusCode;

/// Why a request has no key. The words are for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum KeyError {
    /// RFC 9112, section 3.2: one `Host`, or an absolute target.
    #[error("the request must have exactly one host")]
    NoHost,
    /// A host, or its port, is malformed.
    #[error("the request's host is malformed")]
    Host,
    /// The target has no path: it is that of CONNECT, or `*`.
    #[error("the request's target has no path")]
    NoPath,
    /// An escape of the path is cut off, or malformed.
    #[error("the path is malformed")]
    Path,
    /// An absolute target of another scheme than the connection's (RFC 9110, section 7.4).
    #[error("the request is for another scheme than that of this connection")]
    Scheme,
    /// Longer than [`KEY_BYTES_MAX`](super::KEY_BYTES_MAX).
    #[error("the address is too long")]
    TooLong,
}

impl KeyError {
    /// The status to answer with.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Scheme => StatusCode::MISDIRECTED_REQUEST,
            Self::TooLong => StatusCode::URI_TOO_LONG,
            Self::NoHost | Self::Host | Self::NoPath | Self::Path => StatusCode::BAD_REQUEST,
        }
    }
}
