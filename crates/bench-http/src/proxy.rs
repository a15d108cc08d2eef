//! The bare proxy: hyper's server, its pooled client, and bodies that stream from one to the other.

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::error::{Error, Result};
use crate::listen;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Whom to ask, as http://HOST:PORT
    origin: Uri,
}

type Body = Either<Incoming, Empty<Bytes>>;

/// Passes requests on until standard input ends.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let wrong = |what: &str| Error::Address { given: arguments.origin.to_string(), what: what.to_owned() };
    if arguments.origin.scheme() != Some(&Scheme::HTTP) {
        return Err(wrong("it isn't of http"));
    }
    let authority = arguments.origin.authority().ok_or_else(|| wrong("it has no host"))?.clone();
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    listen::run("proxy", move |request| pass_on(client.clone(), authority.clone(), request))
}

async fn pass_on(
    client: Client<HttpConnector, Incoming>,
    authority: Authority,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    let answered = match Uri::builder().scheme(Scheme::HTTP).authority(authority).path_and_query(path).build() {
        Ok(uri) => {
            *request.uri_mut() = uri;
            client.request(request).await.ok()
        }
        Err(_) => None,
    };
    answered.map_or_else(bad_gateway, |response| response.map(Either::Left))
}

fn bad_gateway() -> Response<Body> {
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
