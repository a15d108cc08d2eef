//! Requests over HTTP/2 whose clients give them up before the answer ("rapid reset", CVE-2023-44487).
//!
//! A stream that is reset no longer counts among the concurrent ones, but its request may have reached an origin. So a connection
//! that gives up most of its requests is closed. Browsers give up some: those of a page that the reader leaves.

use std::sync::Arc;

use super::connection_state::{ConnectionState, Order};

/// A connection may give up this many requests whatever it does with the others.
const ABANDONED_MAX: usize = 500;

/// A request over HTTP/2 without an answer.
pub(super) struct Pending {
    connection: Arc<ConnectionState>,
    is_answered: bool,
}

impl Pending {
    pub(super) fn new(connection: &Arc<ConnectionState>) -> Self {
        Self { connection: Arc::clone(connection), is_answered: false }
    }

    pub(super) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let abandoned = self.connection.abandon();
        if abandoned > ABANDONED_MAX && abandoned > self.connection.taken() / 2 {
            self.connection.order(Order::Abort);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    /// The order of a connection with so many requests, of which the first ones are answered.
    fn order(answered: usize, abandoned: usize) -> Poll<Order> {
        let connection = Arc::new(ConnectionState::new());
        for number in 0..answered + abandoned {
            let (pending, open) = (Pending::new(&connection), connection.open());
            if number < answered {
                pending.answered();
            } else {
                drop(pending);
            }
            drop(open);
        }
        connection.poll_order()
    }

    #[test]
    fn only_a_connection_that_gives_up_most_requests_is_closed() {
        assert_eq!(order(0, ABANDONED_MAX), Poll::Pending);
        assert_eq!(order(0, ABANDONED_MAX + 1), Poll::Ready(Order::Abort));
        assert_eq!(order(2000, 1000), Poll::Pending);
        assert_eq!(order(1000, 1200), Poll::Ready(Order::Abort));
    }
}
