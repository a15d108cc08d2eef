//! Whoever makes the answers that are not stored.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use eyewall_http::policy::Policy;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, Method, Response, StatusCode, Version};
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use crate::settings::Settings;
use crate::tags::{FIELDS, Tags};

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that any task can read.
pub trait UpstreamBody: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> UpstreamBody for B {}

/// Whoever makes the answers that are not stored: for one request, of which it may know what the cache doesn't.
///
/// [`Upstream::ask`] is all that it takes. The other methods are what a front door may have to say of its own.
pub trait Upstream: Send + Sync + Sized + 'static {
    /// The body of an answer.
    type Body: UpstreamBody;
    /// What there is in the place of an answer.
    type Error: Send + 'static;

    /// Asks. The response has none of the fields that concern a connection.
    fn ask(&self, question: Question<'_>) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send;

    /// What clients are told of an error where the cache answers them by itself.
    fn failure(&self, _error: &Self::Error) -> Failure {
        Failure::unreachable()
    }

    /// For how long it is remembered that there was no answer. Default: not at all.
    fn failure_ttl(&self, _failure: &Failure) -> Option<Duration> {
        None
    }

    /// The fields that the upstream is asked with, before the cache asks for what it wants. Default: those of the client.
    fn fields(&self, client: &Parts) -> HeaderMap {
        client.headers.clone()
    }

    /// What the front door says of a response: of one of the upstream, or of a stored one whose fields are renewed. It may take off
    /// fields that no client gets. Default: the policy of the settings, and the tags that the fields name.
    fn rules<'a>(
        &'a self,
        settings: &'a Settings,
        _status: StatusCode,
        fields: &mut HeaderMap,
        _extensions: &mut Extensions,
    ) -> Rules<'a> {
        let mut tags = Tags::new(None, None);
        tags.push_fields(fields, &FIELDS);
        Rules { policy: Cow::Borrowed(&settings.policy), is_refused: false, is_opaque: false, tags: tags.finish() }
    }

    /// Whether the upstream is told by a field of this name what no client says: answers that vary by it are for nobody else.
    fn is_hidden(&self, _field: &HeaderName) -> bool {
        false
    }

    /// What is written of each response beside `Cache-Status`; `received` is by which version it came. Default: nothing.
    fn sign(&self, _fields: &mut HeaderMap, _received: Version) {}
}

/// What an upstream is asked.
#[derive(Debug)]
pub struct Question<'a> {
    /// The client's request, as it came in.
    pub client: &'a Parts,
    /// GET, HEAD or QUERY.
    pub method: Method,
    /// With these fields.
    pub fields: HeaderMap,
    /// What is asked about, of a QUERY.
    pub content: Option<&'a Bytes>,
}

/// What a front door says of a response.
#[derive(Debug)]
pub struct Rules<'a> {
    /// By which it is judged whether it may be stored, and for how long it is fresh.
    pub policy: Cow<'a, Policy>,
    /// It isn't stored, whatever it says.
    pub is_refused: bool,
    /// It is unknown what its bytes are. It is passed on, and neither stored nor cut.
    pub is_opaque: bool,
    /// By which it can be purged together with others.
    pub tags: Vec<String>,
}

/// Why an upstream gave no answer, as clients are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// That of the response that stands for it.
    pub status: StatusCode,
    /// A token for `Cache-Status`.
    pub detail: &'static str,
    /// What went wrong.
    pub words: String,
}

impl Failure {
    /// Nothing came of it.
    pub fn unreachable() -> Self {
        let words = "the origin gave no answer".to_owned();
        Self { status: StatusCode::BAD_GATEWAY, detail: "upstream-unreachable", words }
    }

    /// The upstream broke off, or said what it can't have meant.
    pub fn broken() -> Self {
        let words = "the origin broke off or did not speak HTTP".to_owned();
        Self { status: StatusCode::BAD_GATEWAY, detail: "origin-broken", words }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.words)
    }
}

/// The body of an upstream's answer, with the longest wait for its next piece.
#[derive(Debug)]
pub(crate) struct Timed<B> {
    body: Pin<Box<B>>,
    timeout: Option<Duration>,
    /// Set when the wait began.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Timed<B> {
    pub(crate) fn new(body: B, timeout: Option<Duration>) -> Self {
        Self { body: Box::pin(body), timeout, alarm: None }
    }

    pub(crate) fn body(&self) -> &B {
        &self.body
    }

    /// The next frame; an error where none comes in time.
    pub(crate) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = self.body.as_mut().poll_frame(context) {
            self.alarm = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let Some(timeout) = self.timeout else { return Poll::Pending };
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep(timeout)));
        ready!(alarm.as_mut().poll(context));
        Poll::Ready(Some(Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into())))
    }

    /// The next bytes, past trailers.
    pub(crate) async fn piece(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            match std::future::poll_fn(|context| self.poll_frame(context)).await? {
                Ok(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
