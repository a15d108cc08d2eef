//! Errors between the server and an origin.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::connector::{ConnectTimeout, NoHttp2};
use http::StatusCode;

/// [`ProxyError::Busy`] in `Cache-Status`.
pub(crate) const BUSY: &str = "origin-busy";

/// The reason for which there is no response. The texts are for clients, and reveal no address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProxyError {
    #[error("the origin can't be reached")]
    Unreachable,
    #[error("a secure connection to the origin failed")]
    Insecure,
    #[error("the origin closed the connection or did not speak HTTP")]
    Broken,
    #[error("the head of the origin's response is too large")]
    HeadTooLarge,
    #[error("the origin did not answer within {}", crate::units::duration(*.0))]
    Late(Duration),
    /// The client is late with its request's body.
    #[error("the client sent nothing of the request's body for {}", crate::units::duration(*.0))]
    ClientLate(Duration),
    /// The bytes per second that it should have sent.
    #[error("the client sent the request's body slower than {} a second", crate::units::size(*.0))]
    ClientSlow(u64),
    #[error("the client did not send the request's body within {}", crate::units::duration(*.0))]
    ClientOverdue(Duration),
    /// The client closed the connection, or sent a malformed body.
    #[error("the request was incomplete")]
    ClientBroken,
    #[error("the request's body is larger than this server accepts")]
    BodyTooLarge,
    #[error("the address is outside the site")]
    Outside,
    /// The seconds after which the client may try again.
    #[error("too many requests wait for the origin; try again later")]
    Busy(u64),
}

/// The reason for which a request's body is incomplete.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the client's request was incomplete: {0}")]
    Client(#[from] hyper::Error),
    /// It exceeds the limits of size or rate.
    #[error("{0}")]
    Refused(ProxyError),
}

impl BodyError {
    /// The error for the client.
    pub(super) fn of_proxy(&self) -> ProxyError {
        match self {
            Self::Client(_) => ProxyError::ClientBroken,
            Self::Refused(error) => *error,
        }
    }
}

impl ProxyError {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unreachable | Self::Insecure | Self::Broken | Self::HeadTooLarge => StatusCode::BAD_GATEWAY,
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::ClientLate(_) | Self::ClientSlow(_) | Self::ClientOverdue(_) => StatusCode::REQUEST_TIMEOUT,
            Self::ClientBroken | Self::Outside => StatusCode::BAD_REQUEST,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A token for `Cache-Status`.
    pub(crate) fn detail(&self) -> &'static str {
        match self {
            Self::Unreachable => "origin-unreachable",
            Self::Insecure => "origin-insecure",
            Self::Broken => "origin-broken",
            Self::HeadTooLarge => "origin-head-too-large",
            Self::Late(_) => "origin-late",
            Self::ClientLate(_) | Self::ClientSlow(_) | Self::ClientOverdue(_) => "client-late",
            Self::ClientBroken => "client-broken",
            Self::BodyTooLarge => "body-too-large",
            Self::Outside => "outside",
            Self::Busy(_) => BUSY,
        }
    }

    /// Whether the rest of the request is not read.
    pub(crate) fn leaves_body(&self) -> bool {
        matches!(self.status(), StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE)
    }

    /// Whether it is a failure of the origin, and not of the client or of this server.
    pub(crate) fn is_of_origin(&self) -> bool {
        self.status().is_server_error() && !matches!(self, Self::Busy(_))
    }

    /// The seconds after which the client may try again, if that is known.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match self {
            Self::Busy(seconds) => Some(*seconds),
            _ => None,
        }
    }
}

/// An error, with its details for the log.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) error: ProxyError,
    /// The text for the log, with addresses and all causes.
    pub(super) reason: String,
    /// Whether no byte of a response came, so a safe request may be repeated.
    pub(super) is_retryable: bool,
    /// Whether the origin said that it has not processed the request, so any request may be repeated (RFC 9113, section 8.7).
    pub(super) is_unprocessed: bool,
}

impl Failure {
    pub(super) fn new(error: ProxyError, reason: impl Into<String>) -> Self {
        Self { error, reason: reason.into(), is_retryable: false, is_unprocessed: false }
    }

    /// `is_connect`: there was no connection yet.
    pub(super) fn of(error: &(dyn Error + 'static), is_connect: bool) -> Self {
        let reason = reason(error);
        let proxy_error = classify(error, is_connect);
        let is_retryable = match proxy_error {
            ProxyError::Unreachable | ProxyError::Insecure => true,
            ProxyError::Broken => causes(error).any(broke_off),
            _ => false,
        };
        let is_unprocessed = proxy_error == ProxyError::Broken && causes(error).any(is_refusal);
        Self { error: proxy_error, reason, is_retryable, is_unprocessed }
    }

    /// Of a request: its body's own error, if that ended it.
    pub(super) fn or(self, refusal: Option<ProxyError>) -> Self {
        match refusal {
            Some(error) => Self::new(error, self.reason),
            None => self,
        }
    }
}

fn classify(error: &(dyn Error + 'static), is_connect: bool) -> ProxyError {
    // It is the source of an error of hyper, which only says that the body failed.
    for cause in causes(error) {
        if let Some(BodyError::Refused(refused)) = cause.downcast_ref() {
            return *refused;
        }
    }
    for cause in causes(error) {
        if let Some(late) = cause.downcast_ref::<ConnectTimeout>() {
            return ProxyError::Late(late.0);
        }
        if cause.is::<rustls::Error>() {
            return ProxyError::Insecure;
        }
        if cause.is::<NoHttp2>() {
            return ProxyError::Broken;
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse_too_large() {
                return ProxyError::HeadTooLarge;
            }
            if error.is_user() {
                return ProxyError::ClientBroken;
            }
        }
    }
    if is_connect { ProxyError::Unreachable } else { ProxyError::Broken }
}

/// A refusal of a request that the origin has not processed.
fn is_refusal(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<h2::Error>().is_some_and(|error| {
        let is_reset = matches!(error.reason(), Some(h2::Reason::REFUSED_STREAM | h2::Reason::HTTP_1_1_REQUIRED));
        error.is_remote() && (error.is_go_away() || is_reset)
    })
}

/// Whether the origin wants this request by HTTP/1.1 (RFC 9113, section 7).
pub(super) fn requires_http1(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|cause| {
        let error = cause.downcast_ref::<h2::Error>().filter(|error| error.is_remote());
        error.and_then(h2::Error::reason) == Some(h2::Reason::HTTP_1_1_REQUIRED)
    })
}

/// All causes, for the log. Some errors include the text of their cause, which is then not repeated.
fn reason(error: &(dyn Error + 'static)) -> String {
    let mut reason = String::new();
    for cause in causes(error).map(ToString::to_string) {
        if reason.is_empty() {
            reason = cause;
        } else if !reason.ends_with(&cause) {
            reason = format!("{reason}: {cause}");
        }
    }
    reason
}

/// The connection ended before the head of a response.
fn broke_off(cause: &(dyn Error + 'static)) -> bool {
    let by_hyper = cause.downcast_ref::<hyper::Error>().is_some_and(|error| {
        error.is_incomplete_message() || error.is_canceled() || error.is_closed() || error.is_timeout()
    });
    let by_system = cause.downcast_ref::<io::Error>().is_some_and(|error| {
        use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
        matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
    });
    by_hyper || by_system
}

/// The error and all its causes.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error))
}

/// `source` of an `io::Error` skips the error that it wraps, and an error of h2 has none.
fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    if let Some(error) = error.downcast_ref::<h2::Error>().and_then(h2::Error::get_io) {
        return Some(error);
    }
    match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}
