//! HTTP/1.1 for a few clients: the administration, and the metrics. It runs on the thread that waits for signals.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, watch};

use super::body::Body;

/// The most connections at once; more wait.
const CONNECTIONS_MAX: usize = 64;
/// The timeout for a request's head; it also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long to wait after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What answers the requests.
pub(crate) trait Answers: Send + Sync + 'static {
    /// Its name in the log.
    const NAME: &str;

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

/// Answers all clients until `ending` says true. The last requests are answered then; the receivers are dropped after them.
pub(crate) async fn answer<S>(
    accept: impl Fn(&mut Context<'_>) -> Poll<io::Result<S>>,
    answers: Arc<impl Answers>,
    mut ending: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    // The semaphore is never closed.
    while let Ok(place) = Arc::clone(&places).acquire_owned().await {
        let accepted = tokio::select! {
            biased;
            () = ended(&mut ending) => return,
            accepted = poll_fn(&accept) => accepted,
        };
        match accepted {
            Ok(stream) => {
                let (answers, ending) = (Arc::clone(&answers), ending.clone());
                tokio::spawn(async move {
                    serve(stream, answers, ending).await;
                    drop(place);
                });
            }
            Err(error) => {
                log_not_accepted(&*answers, &error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn log_not_accepted<A: Answers>(_: &A, error: &io::Error) {
    tracing::warn!(%error, "could not accept a connection to the {}", A::NAME);
}

async fn serve<A: Answers>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    answers: Arc<A>,
    mut ending: watch::Receiver<bool>,
) {
    let answer = service_fn(move |request| {
        let answers = Arc::clone(&answers);
        async move { Ok::<_, Infallible>(answers.answer(request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), answer));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ended(&mut ending) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the {} ended early", A::NAME);
    }
}

async fn ended(ending: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    let _ = ending.wait_for(|ends| *ends).await;
}
