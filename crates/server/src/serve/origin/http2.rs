//! HTTP/2 connections to an origin, each for many requests at the same time.
//!
//! ```text
//!                     ┌── one with a free stream? ──> the request, on a stream of it
//!  a request ──> pool ┤
//!                     └── none ──> dial, once for all that wait ──┬── h2 ───────> a further connection, once its settings are there
//!                                                                 └── http/1.1 ─> `client` asks by HTTP/1.1
//! ```
//! A request leaves a connection when its response has ended; dropping a request or its response resets its stream, and no other.
//! A connection that closes, or says that it is going to (GOAWAY), gets no further requests. Those that the origin has not
//! processed can be repeated ([`Failure::is_unprocessed`]).

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::{HOST, TE, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderValue, Request, Response, Uri, Version};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{Notify, watch};

use super::connector::{Connector, Dialed};
use super::error::{Failure, ProxyError, requires_http1};
use super::origins::HEAD_BYTES_MAX;
use super::request::RequestBody;
use super::response_body::ResponseBody;
use super::stream::Stream;
use crate::config::origin::Http2;

/// The most requests at the same time on one connection, whatever the origin allows.
const STREAMS_MAX: usize = 128;
/// Stands for the number that the origin has not told yet. No origin can tell it.
const STREAMS_UNKNOWN: usize = usize::MAX - 1;
/// The bytes that an origin may send on a stream before Eyewall has passed them on.
pub(super) const STREAM_WINDOW: u32 = 512 << 10;
/// Enough for all streams, so that a client that reads nothing holds up no other stream.
const CONNECTION_WINDOW: u32 = STREAMS_MAX as u32 * STREAM_WINDOW;
/// The most connections of a worker to one origin; more requests then wait for a stream.
const CONNECTIONS_MAX: usize = 64;
/// A connection ends after this many requests, before its numbers for streams run out.
const REQUESTS_MAX: usize = 1 << 20;
/// How long a connection may be without a request.
const IDLE_MAX: Duration = Duration::from_mins(1);
/// How often a connection with requests gets a ping if nothing comes, and the time to answer.
const PING_EVERY: Duration = Duration::from_secs(15);
/// For how long Eyewall uses HTTP/1.1 after an origin has chosen it. Then it offers HTTP/2 again.
const HTTP1_FOR: Duration = Duration::from_mins(1);
/// How often a request goes to another connection because the one that it was for closed before it left.
const MOVES_MAX: usize = 3;

/// The connections of one worker to one origin.
#[derive(Clone)]
pub(super) struct Pool {
    connector: Connector,
    state: Arc<Mutex<State>>,
}

struct State {
    connections: Vec<Arc<Connection>>,
    /// The outcome of the dial under way.
    dial: Option<watch::Receiver<Option<Outcome>>>,
    /// The origin has chosen HTTP/1.1, until then.
    http1_until: Option<Instant>,
}

type Outcome = Result<(), Failure>;
type Driver = http2::Connection<TokioIo<Noticed>, RequestBody, TokioExecutor>;

struct Connection {
    sender: SendRequest<RequestBody>,
    /// Requests whose responses have not ended.
    streams: AtomicUsize,
    /// All requests so far.
    begun: AtomicUsize,
    /// The most streams that the origin allows now.
    streams_max: AtomicUsize,
    idle_since: Mutex<Instant>,
}

/// A request's share of a connection.
pub(super) struct StreamGuard(Arc<Connection>);

/// The result of a request.
pub(super) enum Sent {
    Answered(Response<ResponseBody>),
    /// The origin speaks HTTP/1.1 only. The request was not sent.
    Http1(Box<Request<RequestBody>>),
}

enum Place {
    Stream(StreamGuard),
    Http1,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        let state = State { connections: Vec::new(), dial: None, http1_until: None };
        Self { connector, state: Arc::new(Mutex::new(state)) }
    }

    /// Sends a request on a connection with a free stream, and returns the head of its response.
    pub(super) async fn send(&self, mut request: Request<RequestBody>) -> Result<Sent, Failure> {
        let mut moves = 0;
        let (target, host) = (request.uri().clone(), request.headers().get(HOST).cloned());
        loop {
            let guard = match self.place().await? {
                Place::Stream(guard) => guard,
                Place::Http1 if moves > 0 => {
                    write_for_http1(&mut request, target, host);
                    return Ok(Sent::Http1(Box::new(request)));
                }
                Place::Http1 => return Ok(Sent::Http1(Box::new(request))),
            };
            write_for_http2(&mut request);
            let mut sender = guard.0.sender.clone();
            let mut failed = match sender.try_send_request(request).await {
                Ok(response) => {
                    return Ok(Sent::Answered(response.map(|incoming| ResponseBody::of_stream(incoming, guard))));
                }
                Err(failed) => failed,
            };
            match failed.take_message() {
                Some(unsent) if moves < MOVES_MAX => request = unsent,
                _ => {
                    if requires_http1(failed.error()) && self.connector.use_http2() == Http2::Auto {
                        self.state().http1_until = Some(Instant::now() + HTTP1_FOR);
                    }
                    return Err(Failure::of(failed.error(), false));
                }
            }
            moves += 1;
            tokio::task::yield_now().await;
        }
    }

    /// A free stream, on a new connection if necessary.
    async fn place(&self) -> Result<Place, Failure> {
        loop {
            let mut dial = {
                let mut state = self.state();
                if state.http1_until.is_some_and(|until| Instant::now() < until) {
                    return Ok(Place::Http1);
                }
                if let Some(guard) = state.free_stream() {
                    return Ok(Place::Stream(guard));
                }
                match &state.dial {
                    Some(dial) => dial.clone(),
                    None => self.dial(&mut state),
                }
            };
            let outcome = dial.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
            let Some(outcome) = outcome else {
                // Its task has panicked.
                self.state().dial = None;
                return Err(Failure::new(ProxyError::Broken, "the connection could not be set up"));
            };
            outcome?;
            if !self.state().has_connection() {
                let words = "the origin closed an HTTP/2 connection at once";
                return Err(Failure { is_retryable: true, ..Failure::new(ProxyError::Broken, words) });
            }
        }
    }

    /// Opens a connection in a task of its own: all requests that wait for it share it, and it stays if they leave.
    fn dial(&self, state: &mut State) -> watch::Receiver<Option<Outcome>> {
        let (told, outcome) = watch::channel(None);
        state.dial = Some(outcome.clone());
        let pool = self.clone();
        tokio::spawn(async move {
            let opened = pool.open().await;
            pool.state().dial = None;
            told.send_replace(Some(opened));
        });
        outcome
    }

    async fn open(&self) -> Outcome {
        let stream = match self.connector.dial().await {
            Ok(Dialed::Http2(stream)) => stream,
            Ok(Dialed::Http1(stream)) => {
                self.connector.keep(stream);
                self.state().http1_until = Some(Instant::now() + HTTP1_FOR);
                return Ok(());
            }
            Err(error) => return Err(Failure::of(&*error, true)),
        };
        let timeout = self.connector.timeout();
        let late = || Failure::new(ProxyError::Late(timeout), "timeout while waiting for the settings of HTTP/2");
        let begun = tokio::time::timeout(timeout, begin(stream)).await;
        let (sender, driver) = begun.unwrap_or_else(|_| Err(late()))?;
        let connection = Arc::new(Connection {
            sender,
            streams: AtomicUsize::new(0),
            begun: AtomicUsize::new(0),
            streams_max: AtomicUsize::new(streams_max(&driver)),
            idle_since: Mutex::new(Instant::now()),
        });
        self.state().connections.push(Arc::clone(&connection));
        tokio::spawn(self.clone().drive(driver, connection));
        Ok(())
    }

    /// Runs a connection until it ends, or is idle for too long.
    async fn drive(self, mut driver: Driver, connection: Arc<Connection>) {
        loop {
            let ended = std::future::poll_fn(|context| {
                let polled = Pin::new(&mut driver).poll(context);
                connection.streams_max.store(streams_max(&driver), Ordering::Relaxed);
                polled
            });
            tokio::select! {
                ended = ended => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "an HTTP/2 connection to an origin failed");
                    }
                    return;
                }
                () = tokio::time::sleep(IDLE_MAX) => {
                    let mut state = self.state();
                    if connection.is_idle_for(IDLE_MAX) {
                        // From now on it gets no request. Dropping the driver closes it.
                        state.connections.retain(|other| !Arc::ptr_eq(other, &connection));
                        return;
                    }
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins HTTP/2, and waits for the origin's settings: they say how many requests the connection may carry.
async fn begin(stream: Stream) -> Result<(SendRequest<RequestBody>, Driver), Failure> {
    let broken = |error: &hyper::Error| Failure::of(error, false);
    let received = Arc::new(Notify::new());
    let io = TokioIo::new(Noticed { stream, received: Some(Arc::clone(&received)) });
    let (sender, mut driver) = builder().handshake(io).await.map_err(|error| broken(&error))?;
    loop {
        tokio::select! {
            ended = &mut driver => {
                let silent = || Failure::new(ProxyError::Broken, "the origin closed an HTTP/2 connection at once");
                return Err(ended.map_or_else(|error| broken(&error), |()| silent()));
            }
            () = received.notified() => {}
        }
        if driver.current_max_send_streams() != STREAMS_UNKNOWN {
            return Ok((sender, driver));
        }
    }
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .initial_max_send_streams(STREAMS_UNKNOWN)
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    builder
}

/// How many requests it may carry now.
fn streams_max(driver: &Driver) -> usize {
    driver.current_max_send_streams().min(STREAMS_MAX)
}

/// A stream that says when bytes have come, until nobody listens.
struct Noticed {
    stream: Stream,
    received: Option<Arc<Notify>>,
}

impl AsyncRead for Noticed {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(context, bytes);
        if polled.is_ready() {
            self.received = self.received.take().filter(|received| Arc::strong_count(received) > 1);
            self.received.iter().for_each(|received| received.notify_one());
        }
        polled
    }
}

impl AsyncWrite for Noticed {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl State {
    /// Whether a connection is open, of any version.
    fn has_connection(&self) -> bool {
        self.http1_until.is_some_and(|until| Instant::now() < until)
            || self.connections.iter().any(|connection| !connection.sender.is_closed())
    }

    fn free_stream(&mut self) -> Option<StreamGuard> {
        let is_open = |connection: &Connection| {
            !connection.sender.is_closed() && connection.begun.load(Ordering::Relaxed) < REQUESTS_MAX
        };
        self.connections.retain(|connection| is_open(connection));
        let free = self.connections.iter().find(|connection| connection.has_room());
        let least = || {
            let is_last = self.connections.len() >= CONNECTIONS_MAX;
            self.connections.iter().filter(|_| is_last).min_by_key(|one| one.streams.load(Ordering::Relaxed))
        };
        free.or_else(least).map(|connection| StreamGuard::new(Arc::clone(connection)))
    }
}

impl Connection {
    fn has_room(&self) -> bool {
        // Of an origin that allows none for now, the library keeps the request until it does.
        self.streams.load(Ordering::Relaxed) < self.streams_max.load(Ordering::Relaxed).max(1)
    }

    fn is_idle_for(&self, time: Duration) -> bool {
        let since = *self.idle_since.lock().unwrap_or_else(PoisonError::into_inner);
        self.streams.load(Ordering::Relaxed) == 0 && since.elapsed() >= time
    }
}

impl StreamGuard {
    fn new(connection: Arc<Connection>) -> Self {
        connection.streams.fetch_add(1, Ordering::Relaxed);
        connection.begun.fetch_add(1, Ordering::Relaxed);
        Self(connection)
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        if self.0.streams.fetch_sub(1, Ordering::Relaxed) == 1 {
            *self.0.idle_since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }
}

/// `:authority` takes the place of `Host`, and no field of an HTTP/1.1 connection remains (RFC 9113, sections 8.2.2 and 8.3.1).
fn write_for_http2(request: &mut Request<RequestBody>) {
    *request.version_mut() = Version::HTTP_2;
    let fields = request.headers_mut();
    fields.remove(TRANSFER_ENCODING);
    fields.insert(TE, HeaderValue::from_static("trailers"));
    let host = fields.remove(HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    if let Some(authority) = host {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.authority = Some(authority);
        // A target with a scheme, an authority and a path is always valid.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    }
}

/// Takes back what [`write_for_http2`] has done. hyper frames the body.
fn write_for_http1(request: &mut Request<RequestBody>, target: Uri, host: Option<HeaderValue>) {
    *request.version_mut() = Version::HTTP_11;
    *request.uri_mut() = target;
    request.headers_mut().remove(TE);
    if let Some(host) = host {
        request.headers_mut().insert(HOST, host);
    }
}
