//! Requests without content over HTTP/1.1, on the task that waits for the response.
//!
//! Most requests to origins are of this kind. hyper drives a connection in a task of its own, with two channels and several turns of the
//! event loop for each response, which costs more than the request itself. Here the waiting task writes the request and reads the head.
//! The body has the connection then, and reads the rest.
//!
//! ```text
//! pool ── a connection ──> write the request ──> read a head ──1xx──> to the client, and read on
//!  ^                                               └──final──> the response, whose body has the connection
//!  └───────────── the body has ended, and the origin keeps the connection ──────────────┘
//! ```
//!
//! # What is absent
//! - Content of requests, and upgrades: hyper sends these, on connections of its own ([`client`](super::client)).
//! - Pipelining. A connection on which the origin has sent more than its response is closed.

mod body;
mod head;

use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{BufMut as _, BytesMut};
use eyewall_http::field::push_line;
use http::header::{CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, Method, Request, Response, StatusCode};
use http_body::Body as _;
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};
use tokio::task::unconstrained;

pub(super) use body::Http1Body;
use head::{Head, Malformed};

use super::connector::Connector;
use super::error::{Failure, ProxyError};
use super::origins::POOL_IDLE;
use super::request::RequestBody;
use super::response_body::ResponseBody;
use super::stream::Stream;
use crate::serve::interim;

/// The most idle connections of a worker to one origin.
pub(super) const POOL_IDLE_MAX: usize = 64;
/// The most bytes of a head. hyper, with a limit of half as many, takes up to as many as these.
const HEAD_BYTES_MAX: usize = 2 * super::origins::HEAD_BYTES_MAX;
/// How much is read at once while a head is expected: a head with the whole of a small body.
const READ_BYTES: usize = 16 << 10;
/// A buffer with less room than this gets new memory. Small pieces share one buffer, and so don't hold a large one each.
const ROOM_BYTES_MIN: usize = 4 << 10;
/// The most interim responses before a response.
const INTERIM_MAX: usize = 32;
/// How much of a large body is read at once.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// The idle connections of one worker to one origin.
pub(super) struct Pool {
    connector: Connector,
    idle: Arc<Mutex<Idle>>,
}

#[derive(Default)]
struct Idle {
    /// The one that was used last is the last.
    connections: Vec<(Box<Connection>, Instant)>,
    /// A task closes connections that have been idle for too long.
    is_tended: bool,
}

/// A connection, and the bytes from it that nobody has taken yet.
struct Connection {
    stream: Stream,
    bytes: BytesMut,
}

/// Whether a request can go by these connections.
pub(super) fn takes(request: &Request<RequestBody>) -> bool {
    let framing = [CONTENT_LENGTH, TRANSFER_ENCODING, EXPECT, UPGRADE];
    let has_framing = framing.iter().any(|name| request.headers().contains_key(name));
    request.method() == Method::GET && request.body().is_end_stream() && !has_framing
}

impl Pool {
    /// Opens no connection yet.
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, idle: Arc::default() }
    }

    /// Sends a request, and returns the head of its response. Interim responses go to the client of this task without the `stripped`
    /// fields.
    pub(super) async fn send(
        &self,
        request: &Request<RequestBody>,
        stripped: &[HeaderName],
    ) -> Result<Response<ResponseBody>, Failure> {
        let bytes = written(request);
        let (connection, head) = match self.take().await {
            Some(kept) => match kept.ask(&bytes, stripped).await {
                Ok(answered) => answered,
                // The origin has closed it meanwhile, and has processed nothing. A GET may be sent again.
                Err(Unanswered { is_untouched: true, .. }) => self.ask_anew(&bytes, stripped).await?,
                Err(Unanswered { failure, .. }) => return Err(failure),
            },
            None => self.ask_anew(&bytes, stripped).await?,
        };
        let Head { status, version, reason, fields, framing, is_kept } = head;
        let body = Http1Body::new(connection, framing, is_kept.then(|| Arc::downgrade(&self.idle)));
        let mut response = Response::new(ResponseBody::from(body));
        (*response.status_mut(), *response.version_mut(), *response.headers_mut()) = (status, version, fields);
        if let Some(reason) = reason {
            response.extensions_mut().insert(reason);
        }
        Ok(response)
    }

    /// Asks on a new connection.
    async fn ask_anew(&self, bytes: &[u8], stripped: &[HeaderName]) -> Result<(Box<Connection>, Head), Failure> {
        let stream = self.connector.open_http1().await.map_err(|error| Failure::of(&*error, true))?;
        let connection = Box::new(Connection { stream, bytes: BytesMut::new() });
        connection.ask(bytes, stripped).await.map_err(|unanswered| unanswered.failure)
    }

    /// The idle connection that was used last, and that the origin has not closed.
    async fn take(&self) -> Option<Box<Connection>> {
        poll_fn(|context| {
            let mut idle = lock(&self.idle);
            while let Some((mut connection, since)) = idle.connections.pop() {
                if since.elapsed() < POOL_IDLE && connection.is_quiet(context) {
                    return Poll::Ready(Some(connection));
                }
            }
            Poll::Ready(None)
        })
        .await
    }
}

fn lock(idle: &Mutex<Idle>) -> MutexGuard<'_, Idle> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of a request.
fn written(request: &Request<RequestBody>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(512);
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    // An address may have a query without a path.
    let slash = if target.starts_with('/') { "" } else { "/" };
    for piece in [request.method().as_str(), " ", slash, target, " HTTP/1.1\r\n"] {
        bytes.extend_from_slice(piece.as_bytes());
    }
    for (name, value) in request.headers() {
        push_line(&mut bytes, name.as_str().as_bytes(), value.as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Gives a connection to the pool, if the pool still exists.
fn give_back(pool: &Weak<Mutex<Idle>>, connection: Box<Connection>) {
    let (Some(pool), Ok(runtime)) = (pool.upgrade(), tokio::runtime::Handle::try_current()) else { return };
    let mut idle = lock(&pool);
    if idle.connections.len() >= POOL_IDLE_MAX {
        return;
    }
    idle.connections.push((connection, Instant::now()));
    if !std::mem::replace(&mut idle.is_tended, true) {
        runtime.spawn(tend(Arc::downgrade(&pool)));
    }
}

/// Closes connections when they have been idle for too long, until none is left.
async fn tend(pool: Weak<Mutex<Idle>>) {
    let mut next = Instant::now() + POOL_IDLE;
    loop {
        tokio::time::sleep_until(next.into()).await;
        let Some(pool) = pool.upgrade() else { return };
        let (expired, is_tended) = {
            let mut idle = lock(&pool);
            // Those that were used first are the first.
            let count = idle.connections.partition_point(|(_, since)| since.elapsed() >= POOL_IDLE);
            let expired: Vec<_> = idle.connections.drain(..count).collect();
            match idle.connections.first() {
                Some((_, since)) => next = *since + POOL_IDLE,
                None => idle.is_tended = false,
            }
            (expired, idle.is_tended)
        };
        drop(pool);
        for (connection, _) in expired {
            connection.close().await;
        }
        if !is_tended {
            return;
        }
    }
}

impl Connection {
    /// Whether it is open, and the origin has sent nothing that nobody asked for.
    fn is_quiet(&mut self, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        // A task that has used up its share of the event loop would be told "pending" without a look.
        let reading = poll_fn(|context| Pin::new(&mut self.stream).poll_read(context, &mut ReadBuf::new(&mut byte)));
        pin!(unconstrained(reading)).poll(context).is_pending()
    }

    /// Ends it as TLS demands: with a message that says that nothing follows (RFC 8446, section 6.1).
    async fn close(mut self: Box<Self>) {
        // The socket's buffer is empty. If it still takes nothing, the connection is dropped as it is.
        let _ = poll_fn(|context| Poll::Ready(Pin::new(&mut self.stream).poll_shutdown(context))).await;
    }

    /// Writes a request, and reads until its response. Interim responses go to the client.
    async fn ask(mut self: Box<Self>, bytes: &[u8], stripped: &[HeaderName]) -> Result<(Box<Self>, Head), Unanswered> {
        if let Err(error) = self.write(bytes).await {
            return Err(Unanswered { failure: Failure::of(&error, false), is_untouched: true });
        }
        for interim in 0..=INTERIM_MAX {
            let head = match self.read_head().await {
                Ok(head) => head,
                Err(failure) => {
                    let is_untouched = interim == 0 && self.bytes.is_empty() && failure.is_retryable;
                    return Err(Unanswered { failure, is_untouched });
                }
            };
            match head.status {
                StatusCode::SWITCHING_PROTOCOLS => return Ok((self, head)),
                status if status.is_informational() => interim::pass_on(status, &head.fields, stripped),
                _ => return Ok((self, head)),
            }
        }
        let failure = Failure::new(ProxyError::Broken, "the origin sends interim responses without an end");
        Err(Unanswered { failure, is_untouched: false })
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    async fn read_head(&mut self) -> Result<Head, Failure> {
        let mut examined = 0;
        loop {
            // Parsed once when it begins and once when it may be whole: an origin may send it byte by byte.
            if examined == 0 || head::may_end(&self.bytes[usize::saturating_sub(examined, 2)..]) {
                match head::take(&mut self.bytes) {
                    Ok(Some(head)) => return Ok(head),
                    Ok(None) => {}
                    Err(Malformed::TooLarge) => return Err(too_large()),
                    Err(Malformed::Other(why)) => return Err(Failure::new(ProxyError::Broken, why)),
                }
            }
            examined = self.bytes.len();
            if self.bytes.len() >= HEAD_BYTES_MAX {
                return Err(too_large());
            }
            let read = poll_fn(|context| self.poll_fill(context, READ_BYTES, usize::MAX)).await;
            if read.map_err(|error| Failure::of(&error, false))? == 0 {
                let ended = io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended before a response");
                return Err(Failure::of(&ended, false));
            }
        }
    }

    /// Reads once: about `bytes` bytes, and no more than `bytes_max`. Zero means that the origin has ended the connection.
    fn poll_fill(&mut self, context: &mut Context<'_>, bytes: usize, bytes_max: usize) -> Poll<io::Result<usize>> {
        let Self { stream, bytes: buffer } = self;
        if buffer.capacity() - buffer.len() < bytes.min(ROOM_BYTES_MIN) {
            // It takes the memory of earlier bytes, if nobody has these any more.
            buffer.reserve(bytes);
        }
        let mut room = buffer.limit(bytes_max);
        // A read that is dropped has read nothing.
        pin!(stream.read_buf(&mut room)).poll(context)
    }
}

/// Why a connection gave no response.
struct Unanswered {
    failure: Failure,
    /// No byte of a response came, and a connection that the origin has closed would look the same.
    is_untouched: bool,
}

fn too_large() -> Failure {
    Failure::new(ProxyError::HeadTooLarge, "the head of the response is too large")
}
