//! The stages of stopping a server.

/// The stages of stopping, which handles request and workers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stop {
    /// Accept.
    NotYet,
    /// A new process accepts now, from the same sockets. Answer what the connections still ask, and close them.
    HandedOver,
    /// Accept no more, and let requests in flight end.
    InOrder,
    /// Drop everything.
    AtOnce,
}
