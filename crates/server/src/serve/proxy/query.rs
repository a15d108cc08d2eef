//! QUERY (RFC 10008): a GET with content, which is part of the key.
//!
//! ```text
//! address " query"                                  the generation of the answers to QUERY of this address
//! address " query " generation " " digest parts     an answer; variants and fragments of it as of any other
//! ```
//! So to remove the generation is to remove all of them: a new generation leads to none of the old answers.

use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::query;
use http::request::Parts;
use http::{Request, Response};

use super::{Proxy, failed};
use crate::key::CacheKey;
use crate::serve::body::Body;
use crate::serve::origin::RequestBody;
use crate::serve::reply;

/// The greatest length of content that becomes part of a key. It is held in memory while its request is answered; requests with
/// longer content bypass the cache.
const CONTENT_BYTES_MAX: usize = 64 << 10;

impl Proxy {
    /// Answers a QUERY. `key` is the key of its address.
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
        let mut digest = Context::new(&SHA256);
        query::identify(&parts.headers, &content, |piece| digest.update(piece));
        let Some(generation) = self.pages.query_generation(key.address().as_bytes()).await else {
            let request = Request::from_parts(parts, RequestBody::whole(content));
            return self.forward(request, key, client).await;
        };
        match key.of_query(generation, digest.finish().as_ref()) {
            Ok(key) => self.answer_from_cache(parts, key, client, Some(content)).await,
            Err(error) => reply::error(error.status(), &error.to_string()),
        }
    }
}
