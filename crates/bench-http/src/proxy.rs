//! The bare proxy: hyper's server, its pooled client, and bodies that stream from one to the other.

use bytes::Bytes;
use http_body_util::{Either, Empty};
use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode, Uri};

use crate::error::Result;
use crate::listen;
use crate::origin_client::Origin;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The origin, as http://HOST:PORT
    origin: Uri,
}

/// Forwards requests until standard input ends.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let origin = Origin::at(&arguments.origin)?;
    listen::run("proxy", move |request| pass_on(origin.clone(), request))
}

async fn pass_on(origin: Origin, request: Request<Incoming>) -> Response<Either<Incoming, Empty<Bytes>>> {
    if let Some(response) = origin.answer(request).await {
        return response.map(Either::Left);
    }
    let mut response = Response::new(Either::Right(Empty::new()));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
