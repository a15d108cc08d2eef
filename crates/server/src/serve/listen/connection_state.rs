//! The state of a connection (idle, in a head, or busy), and its timeouts: `idle_timeout` and `head_timeout`.
//!
//! ```text
//!          first byte of a head            the head is whole
//!  idle ───────────────────────> in head ───────────────────> busy ──┐
//!   ^ ^                             │ head_timeout: 408, closed      │
//!   │ └── idle_timeout: closed                                       │
//!   └────────────────────── the last byte of the last response has left
//! ```
//!
//! A head of HTTP/2 comes in frames among others, so its connection counts as idle until the head is whole; `idle_timeout`
//! bounds both. If a part of a pipelined HTTP/1 head came with the request before it, the head begins with its next byte.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::settings::Limits;

/// The first bytes of an HTTP/2 connection (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection without a request is not idle before this time, because its first request may be in flight.
pub(super) const FIRST_REQUEST: Duration = Duration::from_secs(1);

/// The state of one connection. Its task and the tasks of its streams run on one thread, so the atomics need no ordering. Other
/// threads read them to choose connections for an [`Order`]. The connection's task checks again before it obeys.
pub(super) struct ConnectionState {
    began: Instant,
    /// Microseconds from `began` until its first request may come: the time of its TLS handshake.
    handshake: AtomicU64,
    /// The number of requests without a response, bodies, and pieces of bodies that have not left yet.
    open: AtomicUsize,
    is_in_head: AtomicBool,
    /// The received bytes of [`PREFACE`]; more than its length if other bytes came.
    preface_bytes: AtomicUsize,
    /// Microseconds from `began` to when it became idle, or the head began.
    since: AtomicU64,
    has_timed_out: AtomicBool,
    /// The number of requests so far whose head was whole.
    taken: AtomicUsize,
    /// The number of requests so far that the client gave up before their answer.
    abandoned: AtomicUsize,
    /// The bytes of fields of requests without an answer, over HTTP/2.
    head_bytes: AtomicUsize,
    /// Whether a response of the fast path is being sent.
    is_sending: AtomicBool,
    /// Whether the next response is the last one.
    is_last: AtomicBool,
    /// Whether the socket took nothing at the last write.
    is_blocked: AtomicBool,
    /// Whether it has ended, and no response was cut off.
    has_ended_well: AtomicBool,
    /// Whether its stream is being dropped.
    is_over: AtomicBool,
    /// Whether it carries the bytes of another protocol.
    is_tunnel: AtomicBool,
    /// An [`Order`], or zero.
    order: AtomicU8,
    /// Wakes the connection's task to read its order.
    waker: OnceLock<Waker>,
}

/// An order of any thread to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Close gracefully, if it is still idle.
    Close = 1,
    /// Close at once.
    Abort = 2,
}

/// The next action for a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing until then.
    At(Instant),
    /// It has had no request for too long.
    Idle,
    /// A head takes too long.
    Head,
}

/// Counts a request, a response or a piece of one while it exists.
pub(super) struct BusyGuard(Arc<ConnectionState>);

/// Marks a response of the fast path while it is being sent.
pub(super) struct SendingGuard(Arc<ConnectionState>);

impl ConnectionState {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            handshake: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            is_in_head: AtomicBool::new(false),
            preface_bytes: AtomicUsize::new(0),
            since: AtomicU64::new(0),
            has_timed_out: AtomicBool::new(false),
            taken: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            head_bytes: AtomicUsize::new(0),
            is_sending: AtomicBool::new(false),
            is_last: AtomicBool::new(false),
            is_blocked: AtomicBool::new(false),
            has_ended_well: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            is_tunnel: AtomicBool::new(false),
            order: AtomicU8::new(0),
            waker: OnceLock::new(),
        }
    }

    /// Notes bytes of the client.
    pub(super) fn received(&self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let seen = self.preface_bytes.load(Ordering::Relaxed);
        if seen < PREFACE.len() {
            let rest = &PREFACE[seen..];
            let count = bytes.len().min(rest.len());
            let is_preface = bytes[..count] == rest[..count];
            let seen = if is_preface { seen + count } else { PREFACE.len() + 1 };
            self.preface_bytes.store(seen, Ordering::Relaxed);
            if seen == PREFACE.len() {
                return self.set_idle();
            }
        }
        let is_idle = self.open.load(Ordering::Relaxed) == 0 && !self.is_in_head.load(Ordering::Relaxed);
        if is_idle && !self.is_http2() {
            self.is_in_head.store(true, Ordering::Relaxed);
            self.mark();
        }
    }

    /// Notes a request whose head is whole.
    pub(super) fn open(self: &Arc<Self>) -> BusyGuard {
        self.is_in_head.store(false, Ordering::Relaxed);
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        BusyGuard(Arc::clone(self))
    }

    /// Notes the end of its TLS handshake: it is idle from now on.
    pub(super) fn begin(&self) {
        self.set_idle();
        self.handshake.store(self.since.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The time since which its first request may come.
    pub(super) fn began(&self) -> Instant {
        self.began + Duration::from_micros(self.handshake.load(Ordering::Relaxed))
    }

    /// The time since which it waits for a request, if it is idle without an order.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let is_idle = self.open.load(Ordering::Relaxed) == 0 && !self.is_in_head.load(Ordering::Relaxed);
        let is_free = is_idle && self.order.load(Ordering::Relaxed) == 0 && !self.is_tunnel.load(Ordering::Relaxed);
        let may_be_closed = is_free && (self.taken() > 0 || self.began().elapsed() >= FIRST_REQUEST);
        may_be_closed.then(|| self.since())
    }

    /// Gives it an order, from any thread.
    pub(super) fn order(&self, order: Order) {
        // Aborting overrides closing.
        self.order.fetch_max(order as u8, Ordering::Release);
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Takes its order. Without an order, this costs one read.
    pub(super) fn poll_order(&self) -> Poll<Order> {
        if self.order.load(Ordering::Relaxed) == 0 {
            return Poll::Pending;
        }
        match self.order.swap(0, Ordering::Acquire) {
            0 => Poll::Pending,
            order if order == Order::Close as u8 => Poll::Ready(Order::Close),
            _ => Poll::Ready(Order::Abort),
        }
    }

    /// From now on each response of HTTP/1 says that it is the last one.
    pub(super) fn set_last(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_last(&self) -> bool {
        self.is_last.load(Ordering::Relaxed)
    }

    /// Notes whether the socket took nothing of the last write.
    pub(super) fn blocked(&self, is_blocked: bool) {
        self.is_blocked.store(is_blocked, Ordering::Relaxed);
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.is_blocked.load(Ordering::Relaxed)
    }

    /// Notes the end of the connection. If something is open, it is cut off.
    pub(super) fn end(&self) {
        self.has_ended_well.store(self.open.load(Ordering::Relaxed) == 0, Ordering::Relaxed);
    }

    pub(super) fn has_ended_well(&self) -> bool {
        self.has_ended_well.load(Ordering::Relaxed)
    }

    /// From now on no write waits: nobody would wake it, and the runtime may be gone.
    pub(super) fn is_dropped(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// From now on it is never idle.
    pub(super) fn begin_tunnel(&self) {
        self.is_tunnel.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.is_tunnel.load(Ordering::Relaxed)
    }

    /// `waker` is the waker of the connection's task, and never changes.
    pub(super) fn wake_by(&self, waker: &Waker) {
        let _ = self.waker.set(waker.clone());
    }

    /// The number of requests so far.
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    /// Notes a request that the client has given up, and returns how many there were.
    pub(super) fn abandon(&self) -> usize {
        self.abandoned.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn count_head(&self, bytes: usize) {
        self.head_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn uncount_head(&self, bytes: usize) {
        self.head_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn head_bytes(&self) -> usize {
        self.head_bytes.load(Ordering::Relaxed)
    }

    /// Whether there were more than this many requests, and nothing is open.
    pub(super) fn is_done_since(&self, taken: usize) -> bool {
        self.taken() > taken && self.open.load(Ordering::Relaxed) == 0
    }

    /// Marks a response of the fast path while the result exists. There is at most one.
    pub(super) fn sending(self: &Arc<Self>) -> SendingGuard {
        self.is_sending.store(true, Ordering::Relaxed);
        SendingGuard(Arc::clone(self))
    }

    /// Whether there is one. It ends in the connection's own task.
    pub(super) fn is_sending(&self) -> bool {
        self.is_sending.load(Ordering::Relaxed)
    }

    /// When to check a connection again: early enough for a timeout that begins now.
    pub(super) fn next_look(limits: &Limits) -> Instant {
        Instant::now() + limits.head_timeout.0.min(limits.idle_timeout.0)
    }

    /// The action that is due now.
    pub(super) fn due(&self, limits: &Limits) -> Due {
        let next_look = Self::next_look(limits);
        if self.open.load(Ordering::Relaxed) > 0 {
            return Due::At(next_look);
        }
        let (limit, due) = if self.is_in_head.load(Ordering::Relaxed) {
            (limits.head_timeout.0, Due::Head)
        } else {
            (limits.idle_timeout.0, Due::Idle)
        };
        let at = self.since() + limit;
        if at <= Instant::now() { due } else { Due::At(at.min(next_look)) }
    }

    /// From now on reading fails.
    pub(super) fn time_out(&self) {
        self.has_timed_out.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_timed_out(&self) -> bool {
        self.has_timed_out.load(Ordering::Relaxed)
    }

    fn since(&self) -> Instant {
        self.began + Duration::from_micros(self.since.load(Ordering::Relaxed))
    }

    pub(super) fn is_http2(&self) -> bool {
        self.preface_bytes.load(Ordering::Relaxed) == PREFACE.len()
    }

    /// Marks it as idle.
    fn set_idle(&self) {
        self.is_in_head.store(false, Ordering::Relaxed);
        self.mark();
    }

    fn mark(&self) {
        self.since.store(self.began.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

impl BusyGuard {
    pub(super) fn connection(&self) -> &Arc<ConnectionState> {
        &self.0
    }
}

impl Clone for BusyGuard {
    fn clone(&self) -> Self {
        self.0.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.set_idle();
        }
    }
}

impl Drop for SendingGuard {
    fn drop(&mut self) {
        self.0.is_sending.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use crate::config::value::Period;

    const SECOND: Duration = Duration::from_secs(1);

    fn limits() -> Limits {
        Limits { head_timeout: Period(10 * SECOND), idle_timeout: Period(30 * SECOND), ..Limits::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_connection_is_idle() {
        let state = ConnectionState::new();
        assert_eq!(state.due(&limits()), Due::At(Instant::now() + 10 * SECOND), "a head may begin meanwhile");
        advance(29 * SECOND).await;
        assert_eq!(state.due(&limits()), Due::At(Instant::now() + SECOND));
        advance(SECOND).await;
        assert_eq!(state.due(&limits()), Due::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn more_bytes_of_a_head_bring_no_more_time() {
        let state = ConnectionState::new();
        advance(25 * SECOND).await;
        for byte in b"GET / HTT".chunks(1) {
            state.received(byte);
            assert!(matches!(state.due(&limits()), Due::At(_)));
            advance(SECOND).await;
        }
        state.received(b"P");
        assert_eq!(state.due(&limits()), Due::At(Instant::now() + SECOND));
        advance(SECOND).await;
        assert_eq!(state.due(&limits()), Due::Head);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_may_take_its_time_until_its_last_byte_has_left() {
        let state = Arc::new(ConnectionState::new());
        state.received(b"GET / HTTP/1.1\r\n\r\n");
        let request = state.open();
        let piece = request.clone();
        drop(request);
        advance(1000 * SECOND).await;
        state.received(b"the next one");
        assert_eq!(state.due(&limits()), Due::At(Instant::now() + 10 * SECOND));
        drop(piece);
        advance(29 * SECOND).await;
        assert!(matches!(state.due(&limits()), Due::At(_)));
        advance(SECOND).await;
        assert_eq!(state.due(&limits()), Due::Idle);
    }

    #[tokio::test(start_paused = true)]
    async fn frames_of_http_2_neither_begin_a_head_nor_end_idleness() {
        for pieces in [vec![PREFACE], PREFACE.chunks(1).collect()] {
            let state = ConnectionState::new();
            for piece in pieces {
                state.received(piece);
            }
            advance(29 * SECOND).await;
            state.received(b"PING");
            advance(SECOND).await;
            assert_eq!(state.due(&limits()), Due::Idle);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn half_a_preface_is_a_head() {
        let state = ConnectionState::new();
        state.received(b"PRI * HT");
        advance(10 * SECOND).await;
        assert_eq!(state.due(&limits()), Due::Head);
    }
}
