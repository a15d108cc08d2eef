//! The short way: what lies ready is sent from below hyper, which sees only the rest.
//!
//! ```text
//!            hyper                      hyper
//!   ^ a grant │ its response             │ a whole connection
//!   │         v                          v
//! [express: heads of requests] ──── [all bytes]
//!   ^         │ what lies ready          │
//!   │         v                          v
//!  the client                         the client
//! ```
//! Between two requests, this reads from the client. A plain request whose answer lies ready ([`Service::ready`]) is answered
//! on the spot: the head of the response and the entry's value go to the socket in one vectored write, and hyper knows nothing of
//! it. Any other is granted to hyper: it gets the bytes of that request and no more, until its response has left; then this
//! goes on reading. Where it isn't known how many bytes a request has, hyper gets all there will be.
//!
//! # Invariants
//! - Nothing is written here while hyper has a grant, and hyper is given none while a response of here is on its way: responses
//!   keep the order of their requests.
//! - Hyper never holds bytes of a request behind the one that was granted.
//! - A grant is over when its request was taken, all that was open is closed ([`Activity`]), and hyper flushes: it flushes its
//!   socket when its own buffer is empty.
//! - Where bytes wait here when a grant is over, hyper's task is woken, since no socket will wake it.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::{Activity, Open, Sending};
use super::attentive::Attentive;
use super::connection::Common;
use super::input::{self, Input};
use crate::serve::interim::Interim;
use crate::serve::log::{Entry, Said};
use crate::serve::plain::{self, Extent, Seen};
use crate::serve::service::Route;
use crate::serve::vouched;

/// A connection's stream as hyper sees it.
pub(super) struct Express<S> {
    stream: Attentive<S>,
    common: Arc<Common>,
    activity: Arc<Activity>,
    interim: Arc<Interim>,
    client: IpAddr,
    /// Whether that is a proxy that is believed what it says of its clients.
    is_trusted: bool,
    /// What came and was not given to anybody yet.
    input: Input,
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
    /// That the client says no more: it wanted no other response than those that it got.
    End,
}

/// A response that the socket did not take at once.
struct Unsent {
    head: Vec<u8>,
    /// The pinned value.
    value: Bytes,
    /// Bytes of both that have left.
    sent: usize,
    entry: Option<Entry>,
    _sending: Sending,
    _open: Open,
}

impl Grant {
    fn of(extent: Extent, activity: &Activity) -> Self {
        match extent {
            Extent::Bytes(left) => Self::Request { left, taken_before: activity.taken() },
            Extent::Unknown => Self::Connection,
        }
    }
}

impl<S> Express<S> {
    pub(super) fn new(
        stream: Attentive<S>,
        common: Arc<Common>,
        activity: Arc<Activity>,
        interim: Arc<Interim>,
        client: IpAddr,
    ) -> Self {
        let is_trusted = common.service.trusts(client);
        let (input, grant, unsent, unsent_interim, route) = (Input::default(), Grant::None, None, Vec::new(), None);
        Self { stream, common, activity, interim, client, is_trusted, input, grant, unsent, unsent_interim, route }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Express<S> {
    /// Answers what lies ready, until hyper has a grant, and all of it has left.
    fn poll_grant(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(context))?;
            if !matches!(self.grant, Grant::None) {
                return Poll::Ready(Ok(()));
            }
            if self.advance(context)? {
                continue;
            }
            // Hyper knows what to do about a long head, and about half of one.
            if self.input.is_full() {
                self.grant = Grant::Connection;
            } else if ready!(self.input.poll_fill(&mut self.stream, context))? == 0 {
                self.grant = if self.input.is_empty() { Grant::End } else { Grant::Connection };
            }
        }
    }

    /// Answers the first of the requests that are there, or grants it. False: there is none yet.
    fn advance(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        let Self { stream, common, activity, client, is_trusted, input, grant, unsent, route, .. } = self;
        if input.is_empty() {
            return Ok(false);
        }
        let started = common.log.as_ref().map(|_| Instant::now());
        let mut room = [const { MaybeUninit::uninit() }; plain::FIELDS_MAX];
        let (mut request, head_bytes) = match plain::read(input.bytes(), &mut room) {
            Seen::Part => return Ok(false),
            Seen::Other(extent) => {
                // Hyper may not have seen a request yet, and would take it for the beginning of HTTP/2.
                let is_preface = activity.taken() > 0 && input.bytes().starts_with(b"PRI ");
                *grant = if is_preface { Grant::End } else { Grant::of(extent, activity) };
                return Ok(true);
            }
            Seen::Plain(request, head_bytes) => (request, head_bytes),
        };
        let granted = Grant::of(Extent::Bytes(head_bytes as u64), activity);
        let asker = if *is_trusted {
            vouched::believe_plain(common.service.trusted_proxies(), *client, &mut request)
        } else {
            *client
        };
        let mut head = input::spare_head();
        let ready =
            if common.takes(&request, head_bytes) { common.service.ready(&request, route, &mut head) } else { None };
        let Some(page) = ready else {
            input::keep_head(head);
            *grant = granted;
            return Ok(true);
        };
        let open = activity.open();
        let pieces = [IoSlice::new(&head), IoSlice::new(&page.hit)];
        let written = match Pin::new(stream).poll_write_vectored(context, &pieces) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Err(error)) if is_loss(&error) => {
                common.service.notice_loss(&page.hit);
                *grant = granted;
                return Ok(true);
            }
            Poll::Ready(written) => written,
            Poll::Pending => Ok(0),
        };
        let entry = common.log.as_ref().zip(started).map(|(log, started)| {
            let mut entry = log.entry(&Said::of_plain(&request), asker, started);
            entry.answered_by_hit(page.status);
            entry.sent(written.as_ref().map_or(0, |written| written.saturating_sub(head.len())));
            entry
        });
        let sent = written?;
        if request.is_last {
            *grant = Grant::End;
        }
        input.consume(head_bytes);
        if sent == head.len() + page.hit.len() {
            input::keep_head(head);
        } else {
            let value = Bytes::from_owner(page.hit.into_owned());
            *unsent = Some(Box::new(Unsent { head, value, sent, entry, _sending: activity.sending(), _open: open }));
        }
        Ok(true)
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
        while !self.input.is_full() {
            if ready!(self.input.poll_fill(&mut self.stream, context))? == 0 {
                return if self.input.is_empty() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
        Poll::Pending
    }

    /// Ends the grant where hyper has done with it. It has nothing left to send.
    fn flushed(&mut self, context: &Context<'_>) {
        if let Grant::Request { left: 0, taken_before } = self.grant
            && self.activity.is_done_since(taken_before)
        {
            self.grant = Grant::None;
            if !self.input.is_empty() {
                context.waker().wake_by_ref();
            }
        }
    }
}

/// The kernel could not read what it was to send.
fn is_loss(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::FAULT.raw_os_error())
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Express<S> {
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
                Grant::Connection if this.input.is_empty() => {
                    return Pin::new(&mut this.stream).poll_read(context, bytes);
                }
                Grant::Connection => {
                    this.input.give(bytes, u64::MAX);
                    return Poll::Ready(Ok(()));
                }
                Grant::Request { left: 0, .. } => return this.poll_gone(context),
                Grant::Request { left, .. } => {
                    if this.input.is_empty() {
                        ready!(this.input.poll_fill(&mut this.stream, context))?;
                    }
                    *left -= this.input.give(bytes, *left);
                    return Poll::Ready(Ok(()));
                }
                Grant::None => ready!(this.poll_grant(context))?,
                Grant::End => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Express<S> {
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
