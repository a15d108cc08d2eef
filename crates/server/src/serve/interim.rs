//! Interim responses of an origin on their way to the client whose request it is (RFC 9110, section 15.2).
//!
//! Hyper's server can't send them. They are written below it, where nothing else is on its way: between the head of a request
//! and that of its response. Who waits for another one's answer, and who gets a stored one, gets none. A client of HTTP/1.0 or
//! HTTP/2 gets none, either.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use eyewall_http::field::connection;
use http::{HeaderMap, HeaderName, Request, StatusCode};

/// What a client that doesn't read is kept; the rest it doesn't get.
const WAITING_BYTES_MAX: usize = 64 << 10;

tokio::task_local! {
    /// The client of the request that the task answers, if it takes interim responses.
    static CLIENT: Option<Arc<Interim>>;
}

/// What a connection has to send before the response that it waits for.
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
    /// A request is being answered from now on; its response begins when this is dropped.
    pub(crate) fn open(self: &Arc<Self>) -> Opened {
        self.state().is_open = true;
        Opened(Arc::clone(self))
    }

    /// What is to be sent now. Whoever asks is woken when there is more.
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
            for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                bytes.extend_from_slice(piece);
            }
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

/// Runs the answering of a request: what an origin says meanwhile goes to its client, where there is one.
pub(crate) fn telling<F: Future>(client: Option<&Opened>, answering: F) -> impl Future<Output = F::Output> {
    CLIENT.scope(client.map(|opened| Arc::clone(&opened.0)), answering)
}

/// Has the client of this task told of what an origin says before its response to `request`, but for these fields.
pub(crate) fn listen<B>(request: &mut Request<B>, stripped: Vec<HeaderName>) {
    let Ok(Some(client)) = CLIENT.try_with(Option::clone) else { return };
    hyper::ext::on_informational(request, move |interim| client.push(interim.status(), interim.headers(), &stripped));
}
