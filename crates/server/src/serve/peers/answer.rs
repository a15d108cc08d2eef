//! Answers to other nodes: the listener, and the responses that this node makes for them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::carried::{Envelope, WhyNot};
use eyewall_page_cache::upstream::BoxError;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::Peers;
use super::question::{PageQuestion, QUESTION_BYTES_MAX, Question};
use super::sign::{Claim, Key, PROOF, REFUSED, Refused};
use super::tls::Acceptor;
use crate::serve::origin::ResponseBody;
use crate::serve::reload::Reloader;
use crate::serve::service::Service;
use crate::serve::stop::Stop;

/// The target of all questions.
pub(super) const PATH: &str = "/eyewall/peer/1";
const BACKLOG: i32 = 1024;
/// The most connections at once; more wait.
const CONNECTIONS_MAX: usize = 4096;
/// The timeout of a question's head, which also ends idle connections, and of its body.
const HEAD_TIMEOUT: Duration = Duration::from_mins(1);
const BODY_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer questions wait for one of these places before they are read: their signature is checked only then.
const SHORT_BYTES_MAX: u64 = 16 << 10;
const LONG_QUESTIONS_MAX: usize = 64;
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the answers need.
struct Door {
    peers: Arc<Peers>,
    reloader: Arc<Reloader>,
    /// By the configuration in force, once it was needed.
    service: Mutex<Option<Arc<Service>>>,
    long_questions: Semaphore,
}

/// Binds the listener. During an upgrade, both processes listen.
pub(super) fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Answers until the server stops, or hands over. Answers that are under way hold `told`, and end as those to clients do.
pub(super) async fn listen(
    listener: TcpListener,
    tls: Option<Acceptor>,
    peers: Arc<Peers>,
    reloader: Arc<Reloader>,
    mut told: watch::Receiver<Stop>,
) {
    let long_questions = Semaphore::new(LONG_QUESTIONS_MAX);
    let door = Arc::new(Door { peers, reloader, service: Mutex::default(), long_questions });
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepting = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            biased;
            () = reached(&mut told, Stop::HandedOver) => return,
            accepted = accepting => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!(%error, "a connection of a peer could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // Without it, a sign of life and the head after it wait for each other.
        let _ = stream.set_nodelay(true);
        let (door, tls, told) = (Arc::clone(&door), tls.clone(), told.clone());
        tokio::spawn(async move {
            let _place = place;
            let Some(tls) = tls else { return door.converse(stream, told).await };
            if let Some(stream) = tls.accept(stream).await {
                door.converse(stream, told).await;
            }
        });
    }
}

/// Waits for this stage.
async fn reached(told: &mut watch::Receiver<Stop>, stage: Stop) {
    // Without a sender, the server is over.
    let _ = told.wait_for(|stop| *stop >= stage).await;
}

impl Door {
    /// Answers the requests of a connection, until the server stops or hands over.
    async fn converse(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Unpin, mut told: watch::Receiver<Stop>) {
        let service = service_fn(move |request| {
            let door = Arc::clone(&self);
            async move { Ok::<_, Infallible>(door.answer(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        // Its errors are those of the other node.
        let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = serving.as_mut() => return,
            () = reached(&mut told, Stop::HandedOver) => serving.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = serving => {}
            () = reached(&mut told, Stop::AtOnce) => {}
        }
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Answer> {
        if request.method() != Method::POST || request.uri().path() != PATH {
            return refused(StatusCode::NOT_FOUND, "this listener is for nodes of the fleet");
        }
        let (parts, body) = request.into_parts();
        let claim = match Claim::of(&parts.headers, SystemTime::now()) {
            Ok(claim) => claim,
            Err(error) => return unsigned(error, None),
        };
        let Ok(Some(question)) = tokio::time::timeout(BODY_TIMEOUT, self.collect(body)).await else {
            return refused(StatusCode::BAD_REQUEST, "the question is incomplete, or too long");
        };
        let number = match self.peers.key.check(&self.peers.url, &claim, &question, SystemTime::now()) {
            Ok(number) => number,
            Err(error @ Refused::Full) => return unsigned(error, self.peers.key.excuse(&claim)),
            Err(error) => return unsigned(error, None),
        };
        let answer = match Question::decode(&question) {
            None => return refused(StatusCode::BAD_REQUEST, "this version can't read the question"),
            Some(Question::Life(settings)) => {
                let has_same = self.reloader.shared().by_host.settings_hash() == settings;
                let why = match self.peers.fleet.as_of() {
                    None => WhyNot::DoesNotFollow,
                    Some(_) if has_same => WhyNot::NotServed,
                    Some(_) => WhyNot::OtherSettings,
                };
                Answer::Head(self.begin(number, &Envelope::Nothing(why)), None)
            }
            // The head of the response goes out at once, as a sign of life.
            Some(Question::Page(question)) => Answer::Making(Box::pin(Arc::clone(&self).make(number, *question))),
        };
        let mut response = Response::new(answer);
        response.headers_mut().extend(self.peers.key.promise(number).map(|proof| (PROOF, proof)));
        response
    }

    /// The bytes of a question. `None` if it is too long, or ends early.
    async fn collect(&self, body: Incoming) -> Option<Bytes> {
        let is_short = body.size_hint().upper().is_some_and(|length| length <= SHORT_BYTES_MAX);
        let _place = if is_short { None } else { Some(self.long_questions.acquire().await.ok()?) };
        Some(Limited::new(body, QUESTION_BYTES_MAX).collect().await.ok()?.to_bytes())
    }

    async fn make(self: Arc<Self>, number: u128, question: PageQuestion) -> Begun {
        match self.try_make(question).await {
            Ok((envelope, body)) => (self.begin(number, &envelope), Some(body)),
            Err(why) => (self.begin(number, &Envelope::Nothing(why)), None),
        }
    }

    fn begin(&self, number: u128, envelope: &Envelope) -> Bytes {
        begin(&self.peers.key, number, envelope)
    }

    async fn try_make(&self, question: PageQuestion) -> Result<(Envelope, CachedBody<ResponseBody>), WhyNot> {
        // Before the look-up, as N8 wants it.
        let as_of = self.peers.fleet.as_of().ok_or(WhyNot::DoesNotFollow)?;
        if self.peers.is_loop(&question.fields) {
            return Err(WhyNot::NotServed);
        }
        let service = self.service();
        let proxy = service.proxy(&question.authority).ok_or(WhyNot::OtherSettings)?;
        proxy.answer_peer(&question, as_of).await
    }

    /// The service by the configuration that is in force.
    fn service(&self) -> Arc<Service> {
        let shared = self.reloader.shared();
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        match &*service {
            Some(service) if service.is_of(&shared) => Arc::clone(service),
            before => {
                let made = Arc::new(Service::new(&shared, before.as_deref()));
                *service = Some(Arc::clone(&made));
                made
            }
        }
    }
}

/// The bytes of an envelope, and their proof. One that can't be written becomes one without a response.
fn begin(key: &Key, number: u128, envelope: &Envelope) -> Bytes {
    let now = SystemTime::now();
    let nothing = || Envelope::Nothing(WhyNot::NotServed).encode(now);
    let mut bytes = envelope.encode(now).or_else(nothing).unwrap_or_default();
    let proof = key.prove(number, &bytes);
    bytes.extend(proof);
    Bytes::from(bytes)
}

/// Refuses a question whose signature doesn't count. `proof` shows that this is a node.
fn unsigned(error: Refused, proof: Option<HeaderValue>) -> Response<Answer> {
    let status = if error == Refused::Full { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::FORBIDDEN };
    let mut response = refused(status, &error.to_string());
    response.headers_mut().insert(REFUSED, HeaderValue::from_static(error.word()));
    response.headers_mut().extend(proof.map(|proof| (PROOF, proof)));
    response
}

fn refused(status: StatusCode, words: &str) -> Response<Answer> {
    let mut response = Response::new(Answer::Head(Bytes::from(format!("{words}\n")), None));
    *response.status_mut() = status;
    response
}

/// The bytes before a body, and the body.
type Begun = (Bytes, Option<CachedBody<ResponseBody>>);
type Making = Pin<Box<dyn Future<Output = Begun> + Send>>;

/// The body of an answer: an envelope once it is made, and the body of the response.
enum Answer {
    Making(Making),
    Head(Bytes, Option<CachedBody<ResponseBody>>),
    Rest(CachedBody<ResponseBody>),
    Ended,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let answer = self.get_mut();
        if let Self::Making(making) = answer {
            let (head, body) = ready!(making.as_mut().poll(context));
            *answer = Self::Head(head, body);
        }
        match answer {
            Self::Head(head, body) => {
                let head = std::mem::take(head);
                *answer = body.take().map_or(Self::Ended, Self::Rest);
                Poll::Ready(Some(Ok(Frame::data(head))))
            }
            Self::Rest(body) => Pin::new(body).poll_frame(context),
            Self::Making(_) | Self::Ended => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Ended)
    }
}
