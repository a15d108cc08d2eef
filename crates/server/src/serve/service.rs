//! One request in, one response out.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use eyewall::Cache;
use eyewall_http::policy::{InvalidAge, Policy};
use eyewall_http::reuse;
use http::header::ALLOW;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;

use super::body::Body;
use super::files::Files;
use super::origin::{OriginSite, Origins, Settings};
use super::proxy::Proxy;
use super::proxy::pages::Pages;
use super::reply;
use super::root::Root;
use super::store::Store;
use crate::{Error, args};

/// Where answers come from when the cache has none. All workers share it.
#[derive(Clone)]
pub(crate) enum Source {
    /// A folder.
    Files(Arc<Files>),
    /// Another server, which each worker has connections of its own to.
    Origin { words: String, site: Arc<OriginSite>, pages: Arc<Pages> },
}

impl Source {
    /// What the command line names.
    ///
    /// # Errors
    /// [`Error::Root`], where the folder can't be served.
    pub(crate) fn of(serve: &args::Serve, cache: &Cache) -> Result<Self, Error> {
        let store = Store::new(cache.clone());
        match (&serve.root, serve.origin.as_slice()) {
            (Some(path), _) => {
                let root = Root::open(path).map_err(|source| Error::Root { path: path.clone(), source })?;
                Ok(Self::Files(Arc::new(Files::new(root, store))))
            }
            // The command line demands one of the two.
            (None, []) => Err(Error::NoSource),
            (None, urls) => {
                let words = urls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let settings = Settings::new(urls.to_vec(), serve.origin_timeout);
                let settings = Settings { ca_file: serve.origin_ca.clone(), ..settings };
                let site = Arc::new(OriginSite::new(settings).map_err(Error::Trust)?);
                let policy = Policy {
                    // The careful reading: who can't say how old it is may be very old.
                    invalid_age: InvalidAge::Stale,
                    store_set_cookie: serve.store_set_cookie,
                    ..Policy::default()
                };
                Ok(Self::Origin { words, site, pages: Arc::new(Pages::new(store, policy)) })
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => write!(formatter, "the folder {}", files.root().display()),
            Self::Origin { words, .. } => write!(formatter, "the origin {words}"),
        }
    }
}

/// What all connections of a worker share.
pub(crate) enum Service {
    Files(Arc<Files>),
    Origin(Arc<Proxy>),
}

impl Service {
    pub(crate) fn new(source: &Source) -> Self {
        match source {
            Source::Files(files) => Self::Files(Arc::clone(files)),
            Source::Origin { site, pages, .. } => {
                Self::Origin(Arc::new(Proxy::new(Origins::new(Arc::clone(site)), Arc::clone(pages))))
            }
        }
    }

    /// Answers a request of the client that has this address.
    pub(crate) async fn answer(&self, request: Request<Incoming>, client: IpAddr) -> Response<Body> {
        match self {
            Self::Files(files) if reuse::is_answerable(request.method()) => files.answer(&request.into_parts().0).await,
            Self::Files(_) => method_not_allowed(),
            Self::Origin(proxy) => proxy.answer(request, client).await,
        }
    }
}

fn method_not_allowed() -> Response<Body> {
    let mut response = reply::error(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}
