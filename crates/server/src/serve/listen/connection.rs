//! HTTP/1.1 and HTTP/2 on one socket.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::header::CONNECTION;
use http::{HeaderValue, Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::abandoned::Pending;
use super::common::Common;
use super::connection_state::{BusyGuard, ConnectionState, Due, FIRST_REQUEST, Order};
use super::fast_path::FastPath;
use super::file_queue::{FileQueue, SendFile};
use super::held::{Held, Place};
use super::read_timeout::ReadTimeout;
use super::stream_budget::Executor;
use super::tracked_body::TrackedBody;
use super::write_timeout::WriteTimeout;
use crate::config::settings::Limits;
use crate::serve::arrival::Arrival;
use crate::serve::interim::{self, Interim};
use crate::serve::origin::asked_protocol;
use crate::serve::stop::Stop;

/// Hyper accepts this many fields by default, without a list on the heap for each request.
const FIELDS_MAX_OF_HYPER: usize = 100;
/// The most concurrent requests of an HTTP/2 connection.
const STREAMS_MAX: u32 = 100;
/// The bytes of a stream's body that hyper takes before the client wants them.
const SEND_BYTES_MAX: usize = 32 << 10;
/// The most bytes of bodies that an HTTP/2 client may send before Eyewall wants them: of a stream, and of a connection.
const STREAM_WINDOW: u32 = 128 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// The most streams that the client has reset before Eyewall saw their requests, and that Eyewall has reset because of errors of
/// the client. A connection with more is closed.
const UNSEEN_RESETS_MAX: usize = 20;
const ERRORS_MAX: usize = 256;
/// How often a silent HTTP/2 client gets a ping, and its time to answer.
const PING_EVERY: Duration = Duration::from_secs(30);
/// The time of a connection to tell its client that it is going to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// The same for one that makes room. Over HTTP/2, hyper waits until the client has answered, and attackers never do. Another client waits
/// for the place.
const ROOM_TIMEOUT: Duration = Duration::from_millis(50);

/// A connection in the list of all connections.
pub(super) struct Connected {
    pub(super) state: Arc<ConnectionState>,
    held: Arc<Held>,
}

impl Connected {
    /// Call it in the connection's own task.
    pub(super) async fn register(common: &Common, place: Place) -> Self {
        let state = Arc::new(ConnectionState::new());
        let registered = common.connections.register(&state, place.entered.listener());
        poll_fn(|context| {
            state.wake_by(context.waker());
            Poll::Ready(())
        })
        .await;
        let held = Arc::new(Held::new(Arc::clone(&state), registered, place));
        Self { state, held }
    }
}

/// Answers the requests of a connection without TLS until it ends, exceeds a limit, or is asked to stop.
pub(super) async fn serve(
    stream: impl AsyncRead + AsyncWrite + SendFile + Unpin + Send + 'static,
    client: IpAddr,
    (place, begun): (Place, Arc<Common>),
    common: Arc<ArcSwap<Common>>,
    stopping: watch::Receiver<Stop>,
) {
    let connected = Connected::register(&begun, place).await;
    drop(begun);
    let stream = WriteTimeout::new(stream, Arc::clone(&connected.state));
    converse(stream, Arrival::clear(client), connected, common, stopping).await;
}

/// The same on any stream with a write timeout.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + SendFile + Unpin + Send + 'static,
    arrival: Arrival,
    connected: Connected,
    common: Arc<ArcSwap<Common>>,
    mut stopping: watch::Receiver<Stop>,
) {
    let Connected { state, held } = connected;
    let client = arrival.client;
    let files = stream.sends_files().then(Arc::<FileQueue>::default);
    let arrival = Arc::new(Arrival { files, ..arrival });
    let interim = Arc::new(Interim::default());
    let answer = {
        let (common, state, interim) = (Arc::clone(&common), Arc::clone(&state), Arc::clone(&interim));
        let arrival = Arc::clone(&arrival);
        service_fn(move |mut request: Request<Incoming>| {
            if asked_protocol(request.headers()).is_some() {
                request.extensions_mut().insert(Arc::clone(&held));
            }
            let (common, open, interim) = (common.load_full(), state.open(), Arc::clone(&interim));
            let pending = (request.version() == Version::HTTP_2).then(|| Pending::new(&state));
            answer_one(common, request, Arc::clone(&arrival), (open, pending), interim)
        })
    };
    let begun = common.load_full();
    let stream = ReadTimeout::new(stream, Arc::clone(&state));
    let io = TokioIo::new(FastPath::new(stream, Arc::clone(&common), Arc::clone(&state), interim, arrival));
    let mut connection = pin!(builder(&begun.limits).serve_connection_with_upgrades(io, answer).into_owned());
    let mut alarm = pin!(sleep_until(ConnectionState::next_look(&begun.limits)));
    drop(begun);
    let (mut is_closing, mut makes_room) = (false, false);
    let ended = loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => break ended,
            () = stopped(&mut stopping, &state), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            order = poll_fn(|_| state.poll_order()) => match order {
                Order::Abort => break Ok(()),
                Order::Close if state.idle_since().is_some() && !is_closing => {
                    (is_closing, makes_room) = (true, true);
                    connection.as_mut().graceful_shutdown();
                    alarm.as_mut().reset(Instant::now() + ROOM_TIMEOUT);
                }
                Order::Close => {}
            },
            () = alarm.as_mut() => match state.due(&common.load().limits) {
                Due::At(_) if makes_room && state.idle_since().is_some() => break Ok(()),
                Due::At(next) => alarm.as_mut().reset(next),
                Due::Idle if !is_closing => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                    alarm.as_mut().reset(Instant::now() + CLOSE_TIMEOUT);
                }
                Due::Head if !state.has_timed_out() => {
                    state.time_out();
                    alarm.as_mut().reset(Instant::now() + CLOSE_TIMEOUT);
                }
                Due::Idle | Due::Head => break Ok(()),
            }
        }
    };
    if ended.as_ref().err().is_none_or(|error| is_unseen(error.as_ref())) {
        state.end();
    }
    log_end(ended, &state, client, &common.load());
}

/// After a response of HTTP/1 that is marked as the last one, hyper closes the connection.
fn marked<B>(mut response: Response<B>, is_last: bool) -> Response<B> {
    if is_last && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether a connection was asked to end before hyper saw a byte of it.
fn is_unseen(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::Interrupted)
}

/// Answers one request.
async fn answer_one(
    common: Arc<Common>,
    request: Request<Incoming>,
    arrival: Arc<Arrival>,
    (open, pending): (BusyGuard, Option<Pending>),
    interim: Arc<Interim>,
) -> Result<Response<TrackedBody>, Infallible> {
    let (state, is_http1) = (Arc::clone(open.connection()), request.version() < Version::HTTP_2);
    // Created when it runs, and dropped with the response's head. Otherwise waiting streams, and bodies in flight, would keep its
    // memory.
    let answering = Box::pin(async {
        let opened = (request.version() == Version::HTTP_11).then(|| interim.open());
        interim::telling(opened.as_ref(), common.answer(request, &arrival, open)).await
    });
    let response = answering.await;
    if let Some(pending) = pending {
        pending.answered();
    }
    Ok(marked(response, is_http1 && state.is_last()))
}

/// Logs how a connection has ended.
fn log_end(
    ended: Result<(), Box<dyn std::error::Error + Send + Sync>>,
    state: &ConnectionState,
    client: IpAddr,
    common: &Common,
) {
    let error = ended.err();
    if let Some(error) = &error {
        tracing::debug!(%error, "a connection ended early");
    }
    let refused = if state.has_timed_out() {
        Some(StatusCode::REQUEST_TIMEOUT)
    } else {
        error.and_then(|error| status_of_refusal(error.as_ref()))
    };
    let Some(status) = refused else { return };
    common.counters.refused(status);
    if let Some(log) = &common.log {
        log.refused(client, status);
    }
}

fn builder(limits: &Limits) -> auto::Builder<Executor> {
    let (fields_max, head_bytes_max) = (limits.header_count.0 as usize, limits.header_bytes.0);
    let mut builder = auto::Builder::new(Executor);
    // `ConnectionState` has the timeouts of heads and of idle connections: hyper has only one for both, and none for the first bytes.
    builder.http1().header_read_timeout(None).max_buf_size(head_bytes_max as usize);
    if fields_max != FIELDS_MAX_OF_HYPER {
        builder.http1().max_headers(fields_max);
    }
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY)
        .max_concurrent_streams(STREAMS_MAX)
        .max_send_buf_size(SEND_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(UNSEEN_RESETS_MAX)
        .max_local_error_reset_streams(ERRORS_MAX)
        .max_header_list_size(head_bytes_max as u32);
    builder
}

/// Waits until the connection has to close because the server ends. Then it waits for a first request, if the connection is new, and
/// for the response of the fast path.
///
/// After a handover, a connection of HTTP/1 may stay: its client may be sending a request just now, which a closed connection would
/// lose. Its next response says that it is the last one. A client of HTTP/2 learns which requests are lost, and repeats them.
async fn stopped(stopping: &mut watch::Receiver<Stop>, state: &ConnectionState) {
    // An error means that all senders are gone.
    let _ = stopping.wait_for(|stop| *stop != Stop::NotYet).await;
    if *stopping.borrow() == Stop::HandedOver {
        state.set_last();
        tokio::select! {
            // It needs no waker: it is polled whenever the connection is.
            () = poll_fn(|_| if state.is_http2() { Poll::Ready(()) } else { Poll::Pending }) => {}
            _ = stopping.wait_for(|stop| *stop > Stop::HandedOver) => {}
        }
    }
    let has_come = poll_fn(|_| if state.taken() == 0 { Poll::Pending } else { Poll::Ready(()) });
    let _ = tokio::time::timeout_at(state.began() + FIRST_REQUEST, has_come).await;
    // It needs no waker: it is polled whenever the connection is.
    poll_fn(|_| if state.is_sending() { Poll::Pending } else { Poll::Ready(()) }).await;
}

/// The status that hyper itself has sent for a malformed request.
fn status_of_refusal(error: &(dyn std::error::Error + 'static)) -> Option<StatusCode> {
    let error = error.downcast_ref::<hyper::Error>().filter(|error| error.is_parse())?;
    let is_too_large = error.is_parse_too_large();
    Some(if is_too_large { StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE } else { StatusCode::BAD_REQUEST })
}
