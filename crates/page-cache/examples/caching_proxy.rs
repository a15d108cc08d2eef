//! A caching proxy in front of one origin: `cargo run -p eyewall-page-cache --example caching_proxy -- http://127.0.0.1:8080 pages`
//!
//! This example has a socket for clients and connections to the origin. The page cache does the rest.

use std::convert::Infallible;
use std::sync::Arc;

use eyewall::{Cache, Options};
use eyewall_http::field::{cache_status::CacheStatus, cache_status::Forward, connection};
use eyewall_http::reuse;
use eyewall_page_cache::request_body::RequestBody;
use eyewall_page_cache::upstream::{Question, Upstream};
use eyewall_page_cache::visit::{Answered, Invalidated, Unanswered, Visit};
use eyewall_page_cache::{pages::Pages, reply::Reply, store::Store};
use http::{HeaderMap, Method, Request, Response, Uri, header};
use hyper::{body::Body as _, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::client::legacy::{Client, Error, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

type Body = RequestBody<Incoming>;
type Fetched = Result<Response<Incoming>, Error>;

/// The origin, and the client that reaches it.
#[derive(Clone)]
struct Origin(Client<HttpConnector, Body>, Uri);

impl Origin {
    async fn send(&self, (method, target, mut fields): (Method, &Uri, HeaderMap), body: Body) -> Fetched {
        let mut uri = self.1.clone().into_parts();
        uri.path_and_query = target.path_and_query().cloned();
        connection::drop_hop_by_hop(&mut fields);
        let mut request = Request::new(body);
        (*request.method_mut(), *request.headers_mut()) = (method, fields);
        *request.uri_mut() = Uri::from_parts(uri).unwrap_or_default();
        let mut response = self.0.request(request).await?;
        connection::drop_hop_by_hop(response.headers_mut());
        Ok(response)
    }
}

impl Upstream for Origin {
    type Body = Incoming;
    type Error = Error;

    async fn ask(&self, Question { client, method, fields, content, .. }: Question<'_>) -> Fetched {
        let body = content.cloned().map_or_else(Body::empty, Body::whole);
        self.send((method, &client.uri, fields), body).await
    }
}

/// Requests that change something bypass the cache, and remove the stored responses that they make wrong. They may wait for the
/// volume, which is in memory here.
async fn forward(visit: &Visit<Origin>, body: Incoming) -> Answered<Origin> {
    let (parts, status) = (&visit.parts, CacheStatus::forwarded(Forward::Method));
    let head = (parts.method.clone(), &parts.uri, parts.headers.clone());
    let sent = visit.upstream.send(head, Body::passed(body)).await;
    let response = sent.map_err(|error| Unanswered { error, status: status.clone() })?;
    if let Ok(target) = visit.address.parse() {
        let made_wrong = Invalidated::by(&parts.method, &target, response.status(), response.headers());
        made_wrong.purge(&visit.pages, |_| None, "*", |uri| Some((uri.to_string(), None)));
    }
    Ok(visit.passed(response, status))
}

/// Answers requests until the process no longer accepts connections.
pub(crate) async fn serve(listener: TcpListener, origin: Uri, cache: Cache) {
    let origin = Origin(Client::builder(TokioExecutor::new()).build_http(), origin);
    let (pages, settings) = (Arc::new(Pages::new(Arc::new(Store::new(cache)), None)), Arc::default());
    while let Ok((connection, _)) = listener.accept().await {
        let (origin, pages, settings) = (origin.clone(), Arc::clone(&pages), Arc::clone(&settings));
        let service = service_fn(move |request: Request<Incoming>| {
            let (parts, body) = request.into_parts();
            let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            let address = format!("http://{}{}", host.to_ascii_lowercase(), parts.uri);
            let visit = Arc::new(Visit::new((&pages, &settings), origin.clone(), parts, address));
            async move {
                let is_read = reuse::is_answerable(&visit.parts.method) && body.is_end_stream();
                let answered = if is_read { visit.answer().await } else { forward(&visit, body).await };
                let failed = |Unanswered { error, status }| visit.failed(&visit.upstream.failure(&error), status);
                Ok::<Reply<Incoming>, Infallible>(answered.unwrap_or_else(failed))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), service));
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(origin), Some(volume)) = (arguments.next(), arguments.next()) else {
        return Err("give the URL of an origin, and the path of a volume".into());
    };
    let listener = TcpListener::bind("127.0.0.1:8000").await?;
    serve(listener, origin.parse()?, Options::new().size(256 << 20).open(volume)?).await;
    Ok(())
}
