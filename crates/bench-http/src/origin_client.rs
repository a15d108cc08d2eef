//! Requests to the origin by hyper-util's pooled client.

use hyper::body::Incoming;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{Request, Response, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::error::{Error, Result};

/// The origin that gets the requests.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    client: Client<HttpConnector, Incoming>,
    authority: Authority,
}

impl Origin {
    /// The origin at an address of the form `http://HOST:PORT`; other forms are errors.
    pub(crate) fn at(address: &Uri) -> Result<Self> {
        let wrong = |what: &str| Error::Address { given: address.to_string(), what: what.to_owned() };
        if address.scheme() != Some(&Scheme::HTTP) {
            return Err(wrong("it isn't of http"));
        }
        let authority = address.authority().ok_or_else(|| wrong("it has no host"))?.clone();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self { client: Client::builder(TokioExecutor::new()).build(connector), authority })
    }

    /// Its response, whose body is still to come; `None` if the origin can't be reached.
    pub(crate) async fn answer(&self, mut request: Request<Incoming>) -> Option<Response<Incoming>> {
        let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.authority.clone()).path_and_query(path).build();
        *request.uri_mut() = uri.ok()?;
        self.client.request(request).await.ok()
    }
}
