//! What a connection holds while it is open: its place among the connections that there may be, and the drain that waits for it.
//!
//! A tunnel, for instance of WebSocket, outlives the task of its connection. It takes this along, so that limits and drains see
//! tunnels as any other connection.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::connection_state::ConnectionState;
use super::connections::Registered;
use crate::serve::admission::Entered;

/// The part that an accepted connection has before its task runs.
pub(super) struct Place {
    /// Counts it.
    pub(super) entered: Entered,
    /// A drain waits until the last of these is dropped.
    pub(super) alive: mpsc::Sender<()>,
}

/// The whole of it. Dropping the last reference frees the place.
pub(crate) struct Held {
    state: Arc<ConnectionState>,
    _registered: Registered,
    _place: Place,
}

impl Held {
    pub(super) fn new(state: Arc<ConnectionState>, registered: Registered, place: Place) -> Self {
        Self { state, _registered: registered, _place: place }
    }

    /// From now on the connection is a tunnel, which never makes room for others.
    pub(crate) fn begin_tunnel(&self) {
        self.state.begin_tunnel();
    }
}
