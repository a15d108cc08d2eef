//! Answers that go out in fragments.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use http::{HeaderMap, Response, StatusCode, Version};

use super::run::Lead;
use super::{Lack, Object, Sequence};
use crate::serve::body::Body;
use crate::serve::proxy::inbound::Inbound;
use crate::serve::proxy::{Proxy, failed, finish};
use crate::serve::reply::{self, Arranged};

/// A stored body whose first bytes can't be had in parts: the origin is to be asked for all of it.
pub(in crate::serve::proxy) struct Unusable;

/// A stored response in fragments, as a request gets it.
pub(in crate::serve::proxy) struct Told {
    pub(in crate::serve::proxy) code: StatusCode,
    pub(in crate::serve::proxy) fields: HeaderMap,
    pub(in crate::serve::proxy) received: SystemTime,
    pub(in crate::serve::proxy) version: Version,
    pub(in crate::serve::proxy) status: CacheStatus,
    /// For how many seconds it is fresh yet.
    pub(in crate::serve::proxy) left: i64,
}

/// How many fragments are looked for before an answer begins, to say in its head whether some are missing.
const FRAGMENTS_LOOKED_AT: usize = 16;

impl Proxy {
    /// A stored body: what of it is stored, and what isn't out of the origin.
    pub(in crate::serve::proxy) async fn answer_in_fragments(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: Arc<Object>,
        told: Told,
    ) -> Result<Response<Body>, Unusable> {
        let Told { code, fields, received, version, status, left } = told;
        let (code, mut fields, segments) =
            match reply::arrange(Role::Cache, inbound.parts, code, fields, received, object.length()) {
                Arranged::Complete(mut response) => {
                    finish(response.headers_mut(), version, &status.ttl(left));
                    return Ok(response);
                }
                Arranged::Content(code, fields, segments) => (code, fields, segments),
            };
        let lacks = if object.if_range.is_some() {
            // What is missing further on is asked for when it is wanted.
            self.pages.lacks(&object, &segments, FRAGMENTS_LOOKED_AT)
        } else {
            let (pages, object, segments) = (Arc::clone(&self.pages), Arc::clone(&object), segments.clone());
            let looking = move || pages.lacks(&object, &segments, usize::MAX);
            tokio::task::spawn_blocking(looking).await.unwrap_or(true)
        };
        if lacks && object.if_range.is_none() {
            return Err(Unusable);
        }
        let status = if lacks { CacheStatus::forwarded(Forward::Partial) } else { status };
        let body = match Sequence::new(self, inbound, object, segments).begin().await {
            Ok(body) => body,
            Err(Lack::ProxyError(error)) => return Ok(failed(&error, CacheStatus::forwarded(Forward::Partial))),
            Err(_) => return Err(Unusable),
        };
        finish(&mut fields, version, &status.ttl(left));
        Ok(reply::response(code, fields, Body::drawn(body)))
    }

    /// The answer to a reader of what another request has asked for.
    pub(in crate::serve::proxy) fn answer_on_its_way(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: Arc<Object>,
        told: Told,
        lead: Option<&Lead>,
    ) -> Response<Body> {
        let Told { code, fields, received, version, status, left } = told;
        match reply::arrange(Role::Cache, inbound.parts, code, fields, received, object.length()) {
            Arranged::Complete(mut response) => {
                finish(response.headers_mut(), version, &status.ttl(left));
                response
            }
            Arranged::Content(code, mut fields, segments) => {
                let body = Sequence::new(self, inbound, object, segments);
                let body = if let Some(lead) = lead { body.following(lead) } else { body };
                finish(&mut fields, version, &status.ttl(left));
                reply::response(code, fields, Body::drawn(body))
            }
        }
    }
}
