//! The fast path sends hits in memory from below hyper, which sees only the other requests.
//!
//! ```text
//!            hyper                      hyper
//!   ^ a grant │ its response             │ a whole connection
//!   │         v                          v
//! [fast path: heads of requests] ──── [all bytes]
//!   ^         │ a hit                   │
//!   │         v                          v
//!  the client                         the client
//! ```
//! Between two requests, the fast path reads from the client. If a simple request is a hit in memory ([`Service::fast_hit`](crate::serve::service::Service::fast_hit)), it
//! answers at once: the head of the response and the entry's value go to the socket in one vectored write, and hyper never sees
//! the request. It grants any other request to hyper, which gets the bytes of that request and no more. When the response has
//! left, the fast path reads on. If the length of a request is unknown, hyper gets the rest of the connection.
//!
//! # Invariants
//! - The fast path writes nothing while hyper has a grant, and gives no grant while it sends a response. So responses keep the
//!   order of their requests.
//! - Hyper never holds bytes of a request behind the granted one.
//! - A grant ends when hyper has read its request, everything open is closed ([`ConnectionState`]), and hyper flushes: it flushes
//!   its socket when its own buffer is empty.
//! - If bytes wait here when a grant ends, hyper's task is woken, because no socket will wake it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;
use bytes::Bytes;
use eyewall::OwnedHit;
use http::StatusCode;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::common::Common;
use super::connection_state::{BusyGuard, ConnectionState, SendingGuard};
use super::current::Current;
use super::file_queue::{self, SendFile};
use super::limits;
use super::read_buffer::{self, ReadBuffer};
use super::read_timeout::ReadTimeout;
use super::request_line::{self, LineCheck};
use super::witness::Witness;
use crate::config::memory;
use crate::key::Scheme;
use crate::serve::admission::MemoryHeld;
use crate::serve::arrival::Arrival;
use crate::serve::follow::SeenRequest;
use crate::serve::interim::Interim;
use crate::serve::metrics::{FastAnswer, Sent};
use crate::serve::service::Route;
use crate::serve::simple_request::{self, Length, Parsed};
use crate::serve::{reply, trusted_proxies};

/// The most bytes to read after a refused request.
const DRAINED_BYTES_MAX: u64 = 1 << 20;

/// A connection's stream as hyper sees it.
pub(super) struct FastPath<S> {
    stream: ReadTimeout<S>,
    common: Current,
    state: Arc<ConnectionState>,
    interim: Arc<Interim>,
    arrival: Arc<Arrival>,
    /// The generation of `common` to which `is_trusted` and `route` belong.
    generation: u64,
    /// Whether the client is a trusted proxy.
    is_trusted: bool,
    /// Received bytes that nobody has read yet.
    buffer: ReadBuffer,
    grant: Grant,
    /// The memory that hyper may need for a request over HTTP/1.1.
    memory: Option<MemoryHeld>,
    unsent: Option<Box<Unsent>>,
    /// The bytes of interim responses that the socket did not take at once.
    unsent_interim: Vec<u8>,
    route: Option<Route>,
}

/// The grant: what hyper may read.
enum Grant {
    None,
    /// This many more bytes of a request, before which it had taken this many.
    Request {
        left: u64,
        taken_before: usize,
    },
    Connection,
    /// The beginning of a long request line, of which it has this many bytes.
    Line(u64),
    /// Nothing: bytes after a refused request are read and dropped, up to this number. Closing before the client has sent them
    /// would reset the connection, and the client might not see the response (RFC 9112, section 9.6).
    Drain(u64),
    /// The end of the stream: the client has asked for no more responses.
    End,
}

/// The result of the first waiting request.
enum Advance {
    /// No request yet.
    Nothing,
    /// Answered.
    Sent,
    /// For hyper, with this grant.
    Granted(Grant),
    /// No body can have its length.
    TooLarge,
}

/// The rest of a response that the socket did not take at once.
struct Unsent {
    head: Vec<u8>,
    /// The pinned value.
    value: Bytes,
    /// The value once more, if it is in the volume and the encryption reads it.
    lossy: Option<OwnedHit>,
    /// The bytes of both that have left.
    sent: usize,
    witness: Option<Witness>,
    /// Counts the bytes of the value; none for a refusal.
    counted: Option<Sent>,
    _sending: SendingGuard,
    _open: BusyGuard,
}

impl Advance {
    /// For a request that isn't simple, which begins with these bytes.
    fn of_other(length: Length, bytes: &[u8], state: &ConnectionState) -> Self {
        // If hyper has not seen a request yet, it could take these bytes for the beginning of HTTP/2.
        let is_preface = state.taken() > 0 && bytes.starts_with(b"PRI ");
        match length {
            _ if is_preface => Self::Granted(Grant::End),
            Length::TooLarge => Self::TooLarge,
            length => Self::Granted(Grant::of(length, state)),
        }
    }
}

impl Grant {
    fn of(length: Length, state: &ConnectionState) -> Self {
        match length {
            Length::Bytes(left) => Self::Request { left, taken_before: state.taken() },
            Length::Unknown | Length::TooLarge => Self::Connection,
        }
    }
}

impl<S> FastPath<S> {
    pub(super) fn new(
        stream: ReadTimeout<S>,
        common: Arc<ArcSwap<Common>>,
        state: Arc<ConnectionState>,
        interim: Arc<Interim>,
        arrival: Arc<Arrival>,
    ) -> Self {
        let mut common = Current::new(common);
        let (generation, is_trusted) = {
            let common = common.load();
            (common.generation, common.service.trusts(arrival.client))
        };
        let (buffer, grant, unsent, unsent_interim, route) =
            (ReadBuffer::default(), Grant::None, None, Vec::new(), None);
        Self {
            stream,
            common,
            state,
            interim,
            arrival,
            generation,
            is_trusted,
            buffer,
            grant,
            memory: None,
            unsent,
            unsent_interim,
            route,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + SendFile + Unpin> FastPath<S> {
    /// Answers hits in memory until hyper has a grant and all responses have left.
    fn poll_grant(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(context))?;
            if !matches!(self.grant, Grant::None) {
                return Poll::Ready(Ok(()));
            }
            match self.advance(context)? {
                Advance::Sent => continue,
                Advance::Granted(grant) => {
                    if !self.is_handled() {
                        self.give(grant);
                    }
                    continue;
                }
                Advance::TooLarge => {
                    self.refuse(StatusCode::BAD_REQUEST, request_line::LENGTH);
                    continue;
                }
                Advance::Nothing => {}
            }
            // Hyper handles long and incomplete heads.
            if self.buffer.is_full() {
                if !self.is_handled() {
                    self.give(Grant::Line(0));
                }
            } else if ready!(self.buffer.poll_fill(&mut self.stream, context))? == 0 {
                self.grant = if self.buffer.is_empty() { Grant::End } else { Grant::Connection };
            }
        }
    }

    /// Gives hyper a grant, if there is memory for a request.
    fn give(&mut self, grant: Grant) {
        let common = self.common.load();
        let (memory, header_bytes) = (&common.connections.memory, common.limits.header_bytes.0);
        if matches!(grant, Grant::End) || self.state.is_http2() {
            // The requests of HTTP/2 count by themselves.
            self.grant = grant;
        } else {
            let of_tls = if self.arrival.scheme == Scheme::Https { memory::TLS_RESPONSE } else { 0 };
            let max = common.memory.map(|memory| memory.requests);
            self.memory = memory.request(memory::http1_request(header_bytes) + of_tls, max);
            if self.memory.is_some() {
                self.grant = grant;
            } else {
                self.refuse(StatusCode::SERVICE_UNAVAILABLE, limits::NO_MEMORY);
            }
        }
    }

    /// Checks the request line before hyper gets it. True: it was refused, or has to be read again.
    fn is_handled(&mut self) -> bool {
        match request_line::check(self.buffer.bytes(), self.common.load().limits.header_bytes.0) {
            LineCheck::Sound => return false,
            LineCheck::Rewrite(range, with) => self.buffer.rewrite(range, with),
            LineCheck::Refuse(status, words) => self.refuse(status, words),
        }
        true
    }

    /// Answers a request that hyper never sees, and ends the connection.
    fn refuse(&mut self, status: StatusCode, words: &str) {
        let Self { stream, common, state, arrival, buffer, grant, unsent, .. } = self;
        let mut value = reply::error_text(status, words);
        let retry = match status {
            StatusCode::SERVICE_UNAVAILABLE => format!("retry-after: {}\r\n", limits::RETRY_SECONDS),
            _ => String::new(),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {}\r\ncache-control: no-store\r\ncontent-length: {}\r\nconnection: close\r\n\
             {retry}date: {}\r\n\r\n",
            reply::TEXT,
            value.len(),
            httpdate::fmt_http_date(SystemTime::now()),
        );
        if buffer.bytes().starts_with(b"HEAD ") {
            value.clear();
        }
        let common = common.load();
        common.counters.refused(status);
        if let Some(log) = &common.log {
            log.refused(arrival.client, status);
        }
        let (sending, open) = (state.sending(), state.open());
        *unsent = Some(Box::new(Unsent {
            head: head.into_bytes(),
            value: value.into(),
            lossy: None,
            sent: 0,
            witness: None,
            counted: None,
            _sending: sending,
            _open: open,
        }));
        *grant = Grant::Drain(DRAINED_BYTES_MAX);
        buffer.consume(buffer.bytes().len());
        stream.suppress_408();
    }

    /// Answers the first waiting request if it is a hit in memory.
    fn advance(&mut self, context: &mut Context<'_>) -> io::Result<Advance> {
        let Self { stream, common, state, arrival, generation, is_trusted, buffer, grant, unsent, route, .. } = self;
        // Also without a request: so an idle connection, which looks at its timeouts now and then, doesn't keep the configuration before.
        let common = common.load();
        if buffer.is_empty() {
            return Ok(Advance::Nothing);
        }
        if common.generation != *generation {
            (*generation, *is_trusted, *route) = (common.generation, common.service.trusts(arrival.client), None);
        }
        let started = common.has_witnesses().then(Instant::now);
        let mut room = [const { MaybeUninit::uninit() }; simple_request::FIELDS_MAX];
        let (mut request, head_bytes) = match simple_request::read(buffer.bytes(), &mut room) {
            Parsed::Partial => return Ok(Advance::Nothing),
            Parsed::Other(length) => return Ok(Advance::of_other(length, buffer.bytes(), state)),
            Parsed::Simple(request, head_bytes) => (request, head_bytes),
        };
        let granted = Grant::of(Length::Bytes(head_bytes as u64), state);
        request.scheme = arrival.scheme;
        let real_client = if *is_trusted {
            trusted_proxies::apply_to_simple(common.service.trusted_proxies(), arrival.client, &mut request)
        } else {
            arrival.client
        };
        request.is_last |= state.is_last();
        let mut head = read_buffer::spare_head();
        let found = common.fast_hit((&request, head_bytes), (arrival, real_client), route, &mut head);
        let Some(page) = found else {
            read_buffer::keep_head(head);
            return Ok(Advance::Granted(granted));
        };
        let ids = common.name_hit(&request, &mut head);
        let open = state.open();
        let source = if arrival.scheme == Scheme::Https { Source::Lossy } else { Source::Safe };
        let written =
            match poll_write(Pin::new(&mut *stream), context, [&head, &page.hit], source, || page.hit.is_intact()) {
                Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Err(error)) if is_loss(&error) => {
                    common.service.notice_loss(&page.hit);
                    return Ok(Advance::Granted(granted));
                }
                Poll::Ready(written) => written,
                Poll::Pending => Ok(0),
            };
        let of_value = written.as_ref().map_or(0, |written| written.saturating_sub(head.len()));
        let site = route.as_ref().map(|route| route.site);
        let of_simple = || SeenRequest::of_simple(&request);
        let counted = common.counters.hit(of_simple, (real_client, site), FastAnswer::of(&page, of_value));
        let witness =
            common.witness_of_hit(site, (&request, ids.as_ref()), (real_client, started), (page.status, &head));
        if let Some(witness) = &witness {
            witness.sent(of_value);
        }
        let sent = written?;
        if request.is_last {
            *grant = Grant::End;
        }
        buffer.consume(head_bytes);
        let has_left = sent == head.len() + page.hit.len() && Pin::new(stream).poll_flush(context)?.is_ready();
        if has_left {
            read_buffer::keep_head(head);
        } else {
            let hit = page.hit.into_owned();
            let lossy = (source == Source::Lossy).then(|| hit.clone());
            let (value, sending) = (Bytes::from_owner(hit), state.sending());
            let counted = Some(counted.into_sent());
            *unsent =
                Some(Box::new(Unsent { head, value, lossy, sent, witness, counted, _sending: sending, _open: open }));
        }
        Ok(Advance::Sent)
    }

    /// Sends the rest of a response.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) = &mut self.unsent {
            let Unsent { head, value, lossy, sent, witness, counted, .. } = &mut **unsent;
            if *sent == head.len() + value.len() {
                // Under TLS, encrypted bytes may wait for the socket.
                ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                self.unsent = None;
                continue;
            }
            let of_head = head.get(*sent..).unwrap_or_default();
            let of_value = &value[sent.saturating_sub(head.len())..];
            let stream = Pin::new(&mut self.stream);
            let source = if lossy.is_some() { Source::Lossy } else { Source::Safe };
            let is_intact = || lossy.as_ref().is_none_or(|hit| hit.is_intact());
            let written = match ready!(poll_write(stream, context, [of_head, of_value], source, is_intact)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => written,
                Err(error) => {
                    if is_loss(&error) {
                        self.common.load().service.notice_loss(value);
                    }
                    return Poll::Ready(Err(error));
                }
            };
            let of_value = written.saturating_sub(of_head.len());
            if let Some(witness) = witness {
                witness.sent(of_value);
            }
            if let Some(counted) = counted {
                counted.sent(of_value);
            }
            *sent += written;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends interim responses of the origin. Hyper sends nothing at that time.
    fn poll_interim(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if matches!(self.grant, Grant::None | Grant::End) {
            return Poll::Ready(Ok(()));
        }
        self.unsent_interim.append(&mut self.interim.take(context));
        while !self.unsent_interim.is_empty() {
            match ready!(Pin::new(&mut self.stream).poll_write(context, &self.unsent_interim))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => drop(self.unsent_interim.drain(..written)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Hyper gets no bytes then, but learns that the client is gone.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.buffer.is_full() {
            if ready!(self.buffer.poll_fill(&mut self.stream, context))? == 0 {
                return if self.buffer.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
        Poll::Pending
    }

    /// Ends the grant if hyper is finished with it and has sent everything.
    fn flushed(&mut self, context: &Context<'_>) {
        if let Grant::Request { left: 0, taken_before } = self.grant
            && self.state.is_done_since(taken_before)
        {
            (self.grant, self.memory) = (Grant::None, None);
            if !self.buffer.is_empty() {
                context.waker().wake_by_ref();
            }
        }
    }
}

/// Where the bytes of a value are while they are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// In memory of our own, or the kernel reads them, and fails if they are lost.
    Safe,
    /// In the volume, and the encryption reads them.
    Lossy,
}

/// Writes head and value. `is_intact` says whether the bytes of the volume that were read so far are right. Bytes that are not are never
/// written: the error is that of the kernel for them.
fn poll_write<S: AsyncWrite>(
    stream: Pin<&mut S>,
    context: &mut Context<'_>,
    [head, value]: [&[u8]; 2],
    source: Source,
    is_intact: impl Fn() -> bool,
) -> Poll<io::Result<usize>> {
    if source == Source::Safe {
        return stream.poll_write_vectored(context, &[IoSlice::new(head), IoSlice::new(value)]);
    }
    read_buffer::with_copy(head, value, |copy| {
        if is_intact() { stream.poll_write(context, copy) } else { Poll::Ready(Err(Errno::FAULT.into())) }
    })
}

/// The kernel could not read the bytes to send.
fn is_loss(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::FAULT.raw_os_error())
}

impl<S: AsyncRead + AsyncWrite + SendFile + Unpin> AsyncRead for FastPath<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // The last answered request may have been the last of the connection.
        ready!(this.poll_send(context))?;
        // Reading doesn't wait for it.
        if let Poll::Ready(Err(error)) = this.poll_interim(context) {
            return Poll::Ready(Err(error));
        }
        loop {
            match &mut this.grant {
                Grant::Connection if this.buffer.is_empty() => {
                    this.common.release();
                    return Pin::new(&mut this.stream).poll_read(context, bytes);
                }
                Grant::Connection => {
                    this.buffer.give(bytes, u64::MAX);
                    return Poll::Ready(Ok(()));
                }
                Grant::Drain(left) => {
                    // The client sees the end of the last response, and closes.
                    ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
                    ready!(this.buffer.poll_fill(&mut this.stream, context))?;
                    let count = this.buffer.bytes().len();
                    this.buffer.consume(count);
                    *left = left.saturating_sub(count as u64);
                    if count == 0 || *left == 0 {
                        this.grant = Grant::End;
                    }
                }
                Grant::Line(given) => {
                    if this.buffer.is_empty() && ready!(this.buffer.poll_fill(&mut this.stream, context))? == 0 {
                        this.grant = Grant::Connection;
                        continue;
                    }
                    let head_bytes_max = this.common.load().limits.header_bytes.0;
                    let more = this.buffer.bytes();
                    let check = match request_line::check_rest(more) {
                        LineCheck::Sound if more.contains(&b'\n') => {
                            this.grant = Grant::Connection;
                            continue;
                        }
                        // Hyper would answer it by 431.
                        LineCheck::Sound if *given + more.len() as u64 >= head_bytes_max => request_line::TOO_LONG,
                        check => check,
                    };
                    if let LineCheck::Refuse(status, words) = check {
                        this.refuse(status, words);
                        ready!(this.poll_send(context))?;
                        continue;
                    }
                    *given += this.buffer.give(bytes, u64::MAX);
                    return Poll::Ready(Ok(()));
                }
                Grant::Request { left: 0, .. } => return this.poll_gone(context),
                Grant::Request { left, .. } => {
                    if this.buffer.is_empty() {
                        ready!(this.buffer.poll_fill(&mut this.stream, context))?;
                    }
                    *left -= this.buffer.give(bytes, *left);
                    return Poll::Ready(Ok(()));
                }
                Grant::None => ready!(this.poll_grant(context))?,
                Grant::End => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + SendFile + Unpin> AsyncWrite for FastPath<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        let Self { stream, arrival, .. } = &mut *self;
        let stream = Pin::new(stream);
        let before = pieces.iter().position(|piece| file_queue::is_stand_in(piece));
        match (before, &arrival.files) {
            (None, _) => stream.poll_write_vectored(context, pieces),
            (Some(0), Some(files)) => files.poll_send(stream, context, (&[], pieces[0].len())),
            (Some(1), Some(files)) => files.poll_send(stream, context, (&pieces[0], pieces[1].len())),
            (Some(before), Some(_)) => stream.poll_write_vectored(context, &pieces[..before]),
            (Some(_), None) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Hyper sends nothing at that time; and a successful flush would hide that the client takes nothing.
        if self.unsent.is_some() {
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_interim(context))?;
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushed(context);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
