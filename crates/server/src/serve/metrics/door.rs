//! The ways to the metrics: the administration, and `metrics_listen`, an address for them alone.
//!
//! At an upgrade the successor binds the address, too, while the process before still has it. That one closes it when it hands over, so
//! a scrape at that moment may fail, and the next one succeeds.

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{Format, scrape};
use crate::serve::body::Body;
use crate::serve::error::Error;
use crate::serve::listen::listen_at;
use crate::serve::reload::Reloader;
use crate::serve::reply;
use crate::serve::shared::Shared;
use crate::serve::small_http::{self, Answers};

/// The address for metrics, bound and not yet open.
pub(crate) struct Door {
    listener: std::net::TcpListener,
    bound: SocketAddr,
    pages: Pages,
}

struct Pages {
    reloader: Arc<Reloader>,
}

impl Door {
    /// Port 0 takes a free port. `is_successor` says whether another process of this server still has the address.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(crate) fn bind(address: SocketAddr, is_successor: bool, reloader: &Arc<Reloader>) -> Result<Self, Error> {
        let bind = || {
            if !is_successor {
                // `SO_REUSEPORT` alone would let another server of the same user share the port.
                listen_at(address, |_| Ok(()))?;
            }
            let listener: std::net::TcpListener = listen_at(address, |socket| socket.set_reuse_port(true))?.into();
            Ok((listener.local_addr()?, listener))
        };
        let (bound, listener) = bind().map_err(|source| Error::Listen { address: address.into(), source })?;
        Ok(Self { listener, bound, pages: Pages { reloader: Arc::clone(reloader) } })
    }

    /// With the real port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.bound
    }

    /// Answers until `ending` says true.
    ///
    /// # Errors
    /// The system's, if it can't wait for a socket.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub(crate) fn start(self, ending: watch::Receiver<bool>) -> std::io::Result<()> {
        let (listener, pages) = (TcpListener::from_std(self.listener)?, Arc::new(self.pages));
        let accept = move |context: &mut std::task::Context<'_>| listener.poll_accept(context);
        tokio::spawn(small_http::answer(move |context| accept(context).map_ok(|(stream, _)| stream), pages, ending));
        Ok(())
    }
}

impl Answers for Pages {
    const NAME: &str = "metrics";

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != "/metrics" {
            return reply::error(StatusCode::NOT_FOUND, "the metrics are at /metrics");
        }
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut refusal = reply::error(StatusCode::METHOD_NOT_ALLOWED, "use GET or HEAD for the metrics");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        let page = respond(self.reloader.shared(), request.headers()).await;
        page.unwrap_or_else(|| {
            reply::error(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; the server's log says why")
        })
    }
}

/// All metrics, in the form that a client with these fields wants. `None`: the thread has panicked, and logged it.
pub(crate) async fn respond(shared: Arc<Shared>, fields: &HeaderMap) -> Option<Response<Body>> {
    let format = Format::wanted(fields);
    let page = tokio::task::spawn_blocking(move || scrape(&shared, format)).await.ok()?;
    let mut fields = HeaderMap::new();
    fields.insert(CONTENT_TYPE, format.content_type());
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Some(reply::response(StatusCode::OK, fields, Body::whole(page)))
}
