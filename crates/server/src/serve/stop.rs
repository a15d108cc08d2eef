//! The stages of stopping a server.

/// The stages of stopping, which handles request and workers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Accept.
    NotYet,
    /// Accept no more, and let requests in flight end.
    InOrder,
    /// Drop everything.
    AtOnce,
}
