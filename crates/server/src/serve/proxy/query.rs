//! QUERY (RFC 10008): a GET with content, which is part of the key.
//!
//! [`eyewall_page_cache::query`] describes the keys. The further parts of the site's keys follow the digest.

use std::net::IpAddr;
use std::sync::Arc;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_page_cache::digest::CONTENT_BYTES_MAX;
use eyewall_page_cache::query;
use http::request::Parts;
use http::{Request, Response};

use super::{Proxy, failed};
use crate::key::CacheKey;
use crate::serve::body::Body;
use crate::serve::origin::RequestBody;
use crate::serve::reply;

impl Proxy {
    /// Answers a QUERY. `key` is the key of its address. A request whose content is too long for a key bypasses the cache.
    pub(super) async fn answer_query(
        self: &Arc<Self>,
        parts: Parts,
        body: RequestBody,
        key: CacheKey,
        client: IpAddr,
    ) -> Response<Body> {
        let content = match body.collected(CONTENT_BYTES_MAX, self.origins.timeouts().head).await {
            Ok(Ok(content)) => content,
            Ok(Err(body)) => return self.forward(Request::from_parts(parts, body), key, client).await,
            Err(error) => return failed(&error, CacheStatus::forwarded(Forward::Method)),
        };
        let Some(generation) = self.pages.query_generation(key.address().as_bytes()).await else {
            let request = Request::from_parts(parts, RequestBody::whole(content));
            return self.forward(request, key, client).await;
        };
        match key.of_query(generation, &query::digest(&parts.headers, &content)) {
            Ok(key) => self.answer_from_cache(parts, key, client, Some(content)).await,
            Err(error) => reply::error(error.status(), &error.to_string()),
        }
    }
}
