//! The counters of an origin. All workers share them: only misses ask origins, and each of these takes a lock of the origin's health
//! anyway.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::counters::{CLASSES, Counter, Histogram};
use crate::serve::origin::ProxyError;

/// Why an origin failed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reason {
    Unreachable,
    Insecure,
    Broken,
    HeadTooLarge,
    Late,
    CutOff,
}

/// What an origin was asked, and what it did.
#[derive(Default)]
pub(crate) struct OriginCounters {
    pub(super) responses: [Counter; CLASSES.len()],
    pub(super) errors: [Counter; Reason::ALL.len()],
    pub(super) repeated: Counter,
    pub(super) connections: Counter,
    /// How many of these have ended.
    pub(super) ended: Counter,
    pub(super) bytes: Counter,
    pub(super) first_byte: Histogram,
}

/// An open connection to an origin.
pub(crate) struct OpenConnection(Arc<OriginCounters>);

impl Reason {
    pub(super) const ALL: [Self; 6] =
        [Self::Unreachable, Self::Insecure, Self::Broken, Self::HeadTooLarge, Self::Late, Self::CutOff];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Insecure => "insecure",
            Self::Broken => "broken",
            Self::HeadTooLarge => "head-too-large",
            Self::Late => "late",
            Self::CutOff => "cut-off",
        }
    }

    /// `None`: the origin is not to blame.
    fn of(error: &ProxyError) -> Option<Self> {
        match error {
            ProxyError::Unreachable => Some(Self::Unreachable),
            ProxyError::Insecure => Some(Self::Insecure),
            ProxyError::Broken => Some(Self::Broken),
            ProxyError::HeadTooLarge => Some(Self::HeadTooLarge),
            ProxyError::Late(_) => Some(Self::Late),
            ProxyError::ClientLate(_)
            | ProxyError::ClientSlow(_)
            | ProxyError::ClientOverdue(_)
            | ProxyError::ClientBroken
            | ProxyError::BodyTooLarge
            | ProxyError::Outside
            | ProxyError::Busy(_) => None,
        }
    }
}

impl OriginCounters {
    /// Counts a response whose head came after this time.
    pub(crate) fn answered(&self, status: StatusCode, time: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.responses[class].add_shared(1);
        self.first_byte.observe_shared(time);
    }

    /// Counts a request without a response.
    pub(crate) fn failed(&self, error: &ProxyError) {
        if let Some(reason) = Reason::of(error) {
            self.errors[reason as usize].add_shared(1);
        }
    }

    /// Counts a response that broke off.
    pub(crate) fn cut_off(&self) {
        self.errors[Reason::CutOff as usize].add_shared(1);
    }

    /// Counts a request that is sent again.
    pub(crate) fn repeated(&self) {
        self.repeated.add_shared(1);
    }

    /// Counts bytes of a body.
    pub(crate) fn received(&self, bytes: usize) {
        self.bytes.add_shared(bytes as u64);
    }

    /// Counts a connection.
    pub(crate) fn connected(self: &Arc<Self>) -> OpenConnection {
        self.connections.add_shared(1);
        OpenConnection(Arc::clone(self))
    }

    pub(super) fn open(&self) -> u64 {
        // In this order, so that it isn't below zero.
        let ended = self.ended.get();
        self.connections.get().saturating_sub(ended)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.ended.add_shared(1);
    }
}
