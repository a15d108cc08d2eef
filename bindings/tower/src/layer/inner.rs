//! The service that makes the responses.

use std::future::poll_fn;

use eyewall_http::answer;
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use tower_service::Service;

use super::body::RequestBody;
use super::fill::Content;

/// A service that can be asked by any task, for requests with bodies of `B`.
pub(crate) trait Inner<B>: Clone + Send + 'static {
    type Content: Content;
    type Fault: Send + 'static;

    /// Waits until it is ready, and asks it. The response has no `Content-Length` where its status forbids one (204), or where it
    /// would be that of another response (304; RFC 9110, section 8.6).
    fn ask(
        self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Result<Response<Self::Content>, Self::Fault>> + Send;
}

impl<S, B, R> Inner<B> for S
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>, Error: Send, Future: Send> + Clone + Send + 'static,
    S::Error: 'static,
    B: Send + 'static,
    R: Content,
{
    type Content = R;
    type Fault = S::Error;

    async fn ask(mut self, request: Request<RequestBody<B>>) -> Result<Response<R>, S::Error> {
        poll_fn(|context| self.poll_ready(context)).await?;
        let mut response = self.call(request).await?;
        if !answer::has_length(response.status()) {
            response.headers_mut().remove(CONTENT_LENGTH);
        }
        Ok(response)
    }
}
