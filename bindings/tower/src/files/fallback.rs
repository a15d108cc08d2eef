//! The service that answers requests for missing files.

use std::convert::Infallible;
use std::future::Ready;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use super::body::Body;

/// The fallback of a [`ServeDir`](super::ServeDir) that has none: this type has no value.
#[derive(Debug, Clone, Copy)]
pub enum NoFallback {}

impl<B> Service<Request<B>> for NoFallback {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        match *self {}
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        match *self {}
    }
}
