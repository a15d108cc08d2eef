//! Passes interim responses of an origin on to the client of the request (RFC 9110, section 15.2).
//!
//! Hyper's server can't send them. Eyewall writes them below hyper, between the head of a request and the head of its response,
//! when nothing else is being sent. Waiters of request collapsing, requests with a stored response, and clients of HTTP/1.0 or
//! HTTP/2 get none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use eyewall_http::field::{connection, push_line};
use http::{HeaderMap, HeaderName, Request, StatusCode};

/// The most bytes that wait for a client that doesn't read; it doesn't get the rest.
const WAITING_BYTES_MAX: usize = 64 << 10;

tokio::task_local! {
    /// The client of the request that the task answers, if it takes interim responses.
    static CLIENT: Option<Arc<Interim>>;
}

/// The interim responses that a connection has to send before the response.
#[derive(Default)]
pub(crate) struct Interim(Mutex<State>);

#[derive(Default)]
struct State {
    /// A request is being answered, and its response hasn't begun.
    is_open: bool,
    bytes: Vec<u8>,
    waker: Option<Waker>,
}

/// The time in which interim responses may be sent.
pub(crate) struct Opened(Arc<Interim>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.state().is_open = false;
    }
}

impl Interim {
    /// Marks that a request is being answered; its response begins when the result is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> Opened {
        self.state().is_open = true;
        Opened(Arc::clone(self))
    }

    /// Takes the bytes to send now. The caller's task is woken when there are more.
    pub(crate) fn take(&self, context: &Context<'_>) -> Vec<u8> {
        let mut state = self.state();
        if state.is_open && !state.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            state.waker = Some(context.waker().clone());
        }
        std::mem::take(&mut state.bytes)
    }

    fn push(&self, status: StatusCode, fields: &HeaderMap, stripped: &[HeaderName]) {
        // The first is hyper's to send; the second ends the exchange.
        if matches!(status, StatusCode::CONTINUE | StatusCode::SWITCHING_PROTOCOLS) {
            return;
        }
        let mut fields = fields.clone();
        connection::drop_hop_by_hop(&mut fields);
        for name in stripped {
            fields.remove(name);
        }
        let mut bytes =
            format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default()).into_bytes();
        for (name, value) in &fields {
            push_line(&mut bytes, name.as_str().as_bytes(), value.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        let mut state = self.state();
        if state.is_open && state.bytes.len() + bytes.len() <= WAITING_BYTES_MAX {
            state.bytes.append(&mut bytes);
            state.waker.take().into_iter().for_each(Waker::wake);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the answering of a request. Interim responses of an origin then go to `client`, if there is one.
pub(crate) fn telling<F: Future>(client: Option<&Opened>, answering: F) -> impl Future<Output = F::Output> {
    CLIENT.scope(client.map(|opened| Arc::clone(&opened.0)), answering)
}

/// Passes an interim response on to the client of this task, without the `stripped` fields.
pub(crate) fn pass_on(status: StatusCode, fields: &HeaderMap, stripped: &[HeaderName]) {
    if let Ok(Some(client)) = CLIENT.try_with(Option::clone) {
        client.push(status, fields, stripped);
    }
}

/// Sends interim responses to `request` to the client of this task, without the `stripped` fields.
pub(crate) fn listen<B>(request: &mut Request<B>, stripped: Vec<HeaderName>) {
    let Ok(Some(client)) = CLIENT.try_with(Option::clone) else { return };
    hyper::ext::on_informational(request, move |interim| client.push(interim.status(), interim.headers(), &stripped));
}
