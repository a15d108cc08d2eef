//! The future of a response.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use super::body::Body;

/// The future response of a [`ServeDir`](super::ServeDir) or a [`ServeFile`](super::ServeFile). It needs a Tokio
/// runtime.
pub struct ResponseFuture(Pin<Box<dyn Future<Output = Response<Body>> + Send>>);

impl ResponseFuture {
    pub(crate) fn of(responding: impl Future<Output = Response<Body>> + Send + 'static) -> Self {
        Self(Box::pin(responding))
    }
}

impl Future for ResponseFuture {
    type Output = Result<Response<Body>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(context).map(Ok)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
