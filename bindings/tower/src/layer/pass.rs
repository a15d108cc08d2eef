//! Requests that bypass the volume, and the stored responses that changes among them remove.

use std::sync::Arc;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::request_body::RequestBody;
use eyewall_page_cache::upstream::UpstreamBody;
use eyewall_page_cache::visit::Invalidated;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, StatusCode, Uri};

use super::inner::{Answered, HttpService, Visit};
use super::tags;

/// Sends a request with a body, with a method that asks for a change, or for another protocol.
pub(super) async fn forward<S: HttpService<B>, B: UpstreamBody>(
    visit: &Visit<S, B>,
    body: RequestBody<B>,
    status: CacheStatus,
) -> Answered<S, B> {
    let request = Request::from_parts(visit.parts.clone(), body);
    let response = visit.upstream.send(request).await?;
    // Each gRPC call is a POST, even one that only reads. No client asks for its address by GET.
    if is_grpc(&visit.parts.headers) {
        return Ok(response.map(|body| CachedBody::passed(body, None)));
    }
    invalidate(visit, response.status(), response.headers()).await;
    Ok(visit.passed(response, status))
}

async fn invalidate<S, B>(visit: &Visit<S, B>, status: StatusCode, answer: &HeaderMap) {
    let Some(target) = visit.upstream.target.clone() else { return };
    let invalidated = Invalidated::by(&visit.parts.method, &target, status, answer);
    if invalidated.is_empty() {
        return;
    }
    let settings = Arc::clone(&visit.upstream.settings);
    visit
        .pages
        .write(move |pages| {
            let address = |uri: &Uri| {
                let address = settings.address(uri);
                let tag = settings.key.address_tag(&address);
                Some((address, tag))
            };
            invalidated.purge(pages, |name| tags::group(&target, name), &tags::many(&settings), address);
        })
        .await;
}

/// Whether a request is a call of gRPC.
pub(super) fn is_grpc(fields: &HeaderMap) -> bool {
    fields.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
