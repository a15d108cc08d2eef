//! The upstream: it makes the responses that are not stored.

use std::borrow::Cow;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use eyewall_http::coding::Codings;
use eyewall_http::policy::Policy;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, Method, Response, StatusCode, Version};
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use crate::carried::Carried;
use crate::settings::Settings;
use crate::tags::{FIELDS, Tags};

/// Any error of a body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that any task can read.
pub trait UpstreamBody: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static {}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static> UpstreamBody for B {}

/// An upstream makes the responses that are not stored. A value serves one request, and may know more of it than the cache does.
///
/// Only [`Upstream::ask`] is required. A front door overrides the other methods as it needs.
pub trait Upstream: Send + Sync + Sized + 'static {
    /// The body of a response.
    type Body: UpstreamBody;
    /// The reason why there is no response.
    type Error: Send + 'static;

    /// Asks. The response has no fields that concern a connection.
    fn ask(&self, question: Question<'_>) -> impl Future<Output = Result<Response<Self::Body>, Self::Error>> + Send;

    /// The failure that clients see when the cache answers for the upstream.
    fn failure(&self, _error: &Self::Error) -> Failure {
        Failure::unreachable()
    }

    /// How long the cache remembers that there was no response. Default: not at all.
    fn failure_ttl(&self, _failure: &Failure) -> Option<Duration> {
        None
    }

    /// The fields of a request to the upstream, before the cache adds its own. Default: those of the client.
    fn fields(&self, client: &Parts) -> HeaderMap {
        client.headers.clone()
    }

    /// The front door's rules for a response: one of the upstream, or a stored one whose fields are renewed. It may remove fields
    /// that no client gets. Default: the policy of the settings, and the tags that the fields name.
    fn rules<'a>(
        &'a self,
        settings: &'a Settings,
        _status: StatusCode,
        fields: &mut HeaderMap,
        _extensions: &mut Extensions,
    ) -> Rules<'a> {
        let mut tags = Tags::new(None, None);
        tags.push_fields(fields, &FIELDS);
        Rules {
            policy: Cow::Borrowed(&settings.policy),
            is_refused: false,
            is_opaque: false,
            codings: Codings::ALL,
            tags: tags.finish(),
            carried: None,
        }
    }

    /// Whether the front door itself sets a field of this name on requests to the upstream. Responses that vary by it are not for
    /// other requests.
    fn is_hidden(&self, _field: &HeaderName) -> bool {
        false
    }

    /// Adds fields to each response beside `Cache-Status`; `received` is the HTTP version of the response. Default: none.
    fn sign(&self, _fields: &mut HeaderMap, _received: Version) {}
}

/// A request to the upstream.
#[derive(Debug)]
pub struct Question<'a> {
    /// The client's request as it arrived.
    pub client: &'a Parts,
    /// GET, HEAD or QUERY.
    pub method: Method,
    /// The fields of the request.
    pub fields: HeaderMap,
    /// The content of a QUERY.
    pub content: Option<&'a Bytes>,
    /// Whether a response of another cache is as good: all of it is wanted, for any client, and its like was stored before or may be
    /// stored. Such a response has the extension [`Carried`].
    pub is_for_all: bool,
}

/// A front door's rules for a response.
#[derive(Debug)]
pub struct Rules<'a> {
    /// The policy that decides whether the response may be stored, and how long it is fresh.
    pub policy: Cow<'a, Policy>,
    /// The response isn't stored, whatever its fields say.
    pub is_refused: bool,
    /// The encoding of its bytes is unknown. The response is passed on, and neither stored nor cut.
    pub is_opaque: bool,
    /// The codings in which the cache may also store it, among those of [`Settings::compression`].
    pub codings: Codings,
    /// The tags by which it can be purged together with others.
    pub tags: Vec<String>,
    /// What another cache has judged. The cache sets it from the extension of the response.
    pub carried: Option<Box<Carried>>,
}

/// Why an upstream gave no response, for clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The status of the response in its place.
    pub status: StatusCode,
    /// A token for `Cache-Status`.
    pub detail: &'static str,
    /// What went wrong.
    pub words: String,
}

impl Failure {
    /// The upstream can't be reached.
    pub fn unreachable() -> Self {
        let words = "the origin gave no answer".to_owned();
        Self { status: StatusCode::BAD_GATEWAY, detail: "upstream-unreachable", words }
    }

    /// The upstream closed the connection early, or its response makes no sense.
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

/// The body of an upstream's response, with a timeout for its next piece.
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

    /// The next frame. An error if none arrives in time.
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

    /// The next bytes. Skips trailers.
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
