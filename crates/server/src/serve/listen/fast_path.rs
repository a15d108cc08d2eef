//! The fast path: hits in memory are sent from below hyper, which sees only the rest.
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
//! Between two requests, this reads from the client. A simple request whose answer is a hit in memory ([`Service::fast_hit`](crate::serve::service::Service::fast_hit)) is answered
//! on the spot: the head of the response and the entry's value go to the socket in one vectored write, and hyper knows nothing of
//! it. Any other is granted to hyper: it gets the bytes of that request and no more, until its response has left; then this
//! goes on reading. Where it isn't known how many bytes a request has, hyper gets all there will be.
//!
//! # Invariants
//! - Nothing is written here while hyper has a grant, and hyper is given none while a response of here is on its way: responses
//!   keep the order of their requests.
//! - Hyper never holds bytes of a request behind the one that was granted.
//! - A grant is over when its request was taken, all that was open is closed ([`ConnectionState`]), and hyper flushes: it flushes its
//!   socket when its own buffer is empty.
//! - Where bytes wait here when a grant is over, hyper's task is woken, since no socket will wake it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::connection::Common;
use super::connection_state::{BusyGuard, ConnectionState, SendingGuard};
use super::read_buffer::{self, ReadBuffer};
use super::read_timeout::ReadTimeout;
use super::request_line::{self, LineCheck};
use crate::serve::interim::Interim;
use crate::serve::log::{Entry, LoggedRequest};
use crate::serve::service::Route;
use crate::serve::simple_request::{self, Length, Parsed};
use crate::serve::{reply, trusted_proxies};

/// So much is read of what comes behind a request that was refused.
const DRAINED_BYTES_MAX: u64 = 1 << 20;

/// A connection's stream as hyper sees it.
pub(super) struct FastPath<S> {
    stream: ReadTimeout<S>,
    common: Arc<Common>,
    state: Arc<ConnectionState>,
    interim: Arc<Interim>,
    client: IpAddr,
    /// Whether that is a trusted proxy.
    is_trusted: bool,
    /// What came and was not given to anybody yet.
    buffer: ReadBuffer,
    grant: Grant,
    unsent: Option<Box<Unsent>>,
    /// Of interim responses, what the socket did not take at once.
    unsent_interim: Vec<u8>,
    route: Option<Route>,
}

/// What hyper may read.
enum Grant {
    None,
    /// So many bytes yet, of a request before which it had taken so many.
    Request {
        left: u64,
        taken_before: usize,
    },
    Connection,
    /// The beginning of a long request line, of which it has so many bytes.
    Line(u64),
    /// Nothing: what still comes behind a request that was refused, so many bytes at most, is read and dropped. To close before the
    /// client has sent it would reset the connection, and the client might not see why (RFC 9112, section 9.6).
    Drain(u64),
    /// That the client says no more: it wanted no other response than those that it got.
    End,
}

/// What came of the first of the requests that are there.
enum Advance {
    /// There is none yet.
    Nothing,
    /// It is answered.
    Sent,
    /// It is for hyper, which may read so much.
    Granted(Grant),
    /// The length of its body is one that no body can have.
    TooLarge,
}

/// A response that the socket did not take at once.
struct Unsent {
    head: Vec<u8>,
    /// The pinned value.
    value: Bytes,
    /// Bytes of both that have left.
    sent: usize,
    entry: Option<Entry>,
    _sending: SendingGuard,
    _open: BusyGuard,
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
        common: Arc<Common>,
        state: Arc<ConnectionState>,
        interim: Arc<Interim>,
        client: IpAddr,
    ) -> Self {
        let is_trusted = common.service.trusts(client);
        let (buffer, grant, unsent, unsent_interim, route) =
            (ReadBuffer::default(), Grant::None, None, Vec::new(), None);
        Self { stream, common, state, interim, client, is_trusted, buffer, grant, unsent, unsent_interim, route }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> FastPath<S> {
    /// Answers hits in memory, until hyper has a grant, and all of it has left.
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
                        self.grant = grant;
                    }
                    continue;
                }
                Advance::TooLarge => {
                    self.refuse(StatusCode::BAD_REQUEST, request_line::LENGTH);
                    continue;
                }
                Advance::Nothing => {}
            }
            // Hyper knows what to do about a long head, and about half of one.
            if self.buffer.is_full() {
                if !self.is_handled() {
                    self.grant = Grant::Line(0);
                }
            } else if ready!(self.buffer.poll_fill(&mut self.stream, context))? == 0 {
                self.grant = if self.buffer.is_empty() { Grant::End } else { Grant::Connection };
            }
        }
    }

    /// Looks at the request line before hyper gets it. True: it was refused, or is to be read again.
    fn is_handled(&mut self) -> bool {
        match request_line::check(self.buffer.bytes(), self.common.limits.header_bytes.0) {
            LineCheck::Sound => return false,
            LineCheck::Rewrite(range, with) => self.buffer.rewrite(range, with),
            LineCheck::Refuse(status, words) => self.refuse(status, words),
        }
        true
    }

    /// Answers a request that hyper doesn't get to see. It is the last of its connection.
    fn refuse(&mut self, status: StatusCode, words: &str) {
        let Self { stream, common, state, client, buffer, grant, unsent, .. } = self;
        let mut value = reply::error_text(status, words);
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {}\r\ncache-control: no-store\r\ncontent-length: {}\r\nconnection: close\r\n\
             date: {}\r\n\r\n",
            reply::TEXT,
            value.len(),
            httpdate::fmt_http_date(SystemTime::now()),
        );
        if buffer.bytes().starts_with(b"HEAD ") {
            value.clear();
        }
        if let Some(log) = &common.log {
            log.refused(*client, status);
        }
        let (sending, open) = (state.sending(), state.open());
        *unsent = Some(Box::new(Unsent {
            head: head.into_bytes(),
            value: value.into(),
            sent: 0,
            entry: None,
            _sending: sending,
            _open: open,
        }));
        *grant = Grant::Drain(DRAINED_BYTES_MAX);
        buffer.consume(buffer.bytes().len());
        stream.suppress_408();
    }

    /// Answers the first of the requests that are there, if that is a hit in memory.
    fn advance(&mut self, context: &mut Context<'_>) -> io::Result<Advance> {
        let Self { stream, common, state, client, is_trusted, buffer, grant, unsent, route, .. } = self;
        if buffer.is_empty() {
            return Ok(Advance::Nothing);
        }
        let started = common.log.as_ref().map(|_| Instant::now());
        let mut room = [const { MaybeUninit::uninit() }; simple_request::FIELDS_MAX];
        let (mut request, head_bytes) = match simple_request::read(buffer.bytes(), &mut room) {
            Parsed::Partial => return Ok(Advance::Nothing),
            Parsed::Other(length) => {
                // Hyper may not have seen a request yet, and would take it for the beginning of HTTP/2.
                let is_preface = state.taken() > 0 && buffer.bytes().starts_with(b"PRI ");
                return Ok(match length {
                    _ if is_preface => Advance::Granted(Grant::End),
                    Length::TooLarge => Advance::TooLarge,
                    length => Advance::Granted(Grant::of(length, state)),
                });
            }
            Parsed::Simple(request, head_bytes) => (request, head_bytes),
        };
        let granted = Grant::of(Length::Bytes(head_bytes as u64), state);
        let real_client = if *is_trusted {
            trusted_proxies::apply_to_simple(common.service.trusted_proxies(), *client, &mut request)
        } else {
            *client
        };
        let mut head = read_buffer::spare_head();
        let found =
            if common.takes(&request, head_bytes) { common.service.fast_hit(&request, route, &mut head) } else { None };
        let Some(page) = found else {
            read_buffer::keep_head(head);
            return Ok(Advance::Granted(granted));
        };
        let open = state.open();
        let pieces = [IoSlice::new(&head), IoSlice::new(&page.hit)];
        let written = match Pin::new(stream).poll_write_vectored(context, &pieces) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Err(error)) if is_loss(&error) => {
                common.service.notice_loss(&page.hit);
                return Ok(Advance::Granted(granted));
            }
            Poll::Ready(written) => written,
            Poll::Pending => Ok(0),
        };
        let entry = common.log.as_ref().zip(started).map(|(log, started)| {
            let mut entry = log.entry(&LoggedRequest::of_simple(&request), real_client, started);
            entry.answered_by_hit(page.status);
            entry.sent(written.as_ref().map_or(0, |written| written.saturating_sub(head.len())));
            entry
        });
        let sent = written?;
        if request.is_last {
            *grant = Grant::End;
        }
        buffer.consume(head_bytes);
        if sent == head.len() + page.hit.len() {
            read_buffer::keep_head(head);
        } else {
            let value = Bytes::from_owner(page.hit.into_owned());
            *unsent = Some(Box::new(Unsent { head, value, sent, entry, _sending: state.sending(), _open: open }));
        }
        Ok(Advance::Sent)
    }

    /// Sends what is left of a response.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(unsent) = &mut self.unsent {
            let Unsent { head, value, sent, entry, .. } = &mut **unsent;
            let of_head = head.get(*sent..).unwrap_or_default();
            let of_value = &value[sent.saturating_sub(head.len())..];
            let pieces = [IoSlice::new(of_head), IoSlice::new(of_value)];
            let written = match ready!(Pin::new(&mut self.stream).poll_write_vectored(context, &pieces)) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(written) => written,
                Err(error) => {
                    if is_loss(&error) {
                        self.common.service.notice_loss(value);
                    }
                    return Poll::Ready(Err(error));
                }
            };
            if let Some(entry) = entry {
                entry.sent(written.saturating_sub(of_head.len()));
            }
            *sent += written;
            if *sent == head.len() + value.len() {
                self.unsent = None;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what the origin says before its response. Hyper has nothing under way then.
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

    /// Nothing that comes is for hyper, but that the client has gone is.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.buffer.is_full() {
            if ready!(self.buffer.poll_fill(&mut self.stream, context))? == 0 {
                return if self.buffer.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
        Poll::Pending
    }

    /// Ends the grant where hyper has done with it. It has nothing left to send.
    fn flushed(&mut self, context: &Context<'_>) {
        if let Grant::Request { left: 0, taken_before } = self.grant
            && self.state.is_done_since(taken_before)
        {
            self.grant = Grant::None;
            if !self.buffer.is_empty() {
                context.waker().wake_by_ref();
            }
        }
    }
}

/// The kernel could not read what it was to send.
fn is_loss(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::FAULT.raw_os_error())
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for FastPath<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // What was answered last may have been the last.
        ready!(this.poll_send(context))?;
        // Reading needn't wait for it.
        if let Poll::Ready(Err(error)) = this.poll_interim(context) {
            return Poll::Ready(Err(error));
        }
        loop {
            match &mut this.grant {
                Grant::Connection if this.buffer.is_empty() => {
                    return Pin::new(&mut this.stream).poll_read(context, bytes);
                }
                Grant::Connection => {
                    this.buffer.give(bytes, u64::MAX);
                    return Poll::Ready(Ok(()));
                }
                Grant::Drain(left) => {
                    // The client sees the end of the last response, and goes.
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
                    let more = this.buffer.bytes();
                    let check = match request_line::check_rest(more) {
                        LineCheck::Sound if more.contains(&b'\n') => {
                            this.grant = Grant::Connection;
                            continue;
                        }
                        // Hyper would answer it by 431.
                        LineCheck::Sound if *given + more.len() as u64 >= this.common.limits.header_bytes.0 => {
                            request_line::TOO_LONG
                        }
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

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for FastPath<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_interim(context))?;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Hyper has nothing under way then; and a flush that succeeds would count as a sign of a client that takes nothing.
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
