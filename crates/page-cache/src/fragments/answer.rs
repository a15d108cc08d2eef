//! Answers from stored fragments.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::precondition::Role;
use http::{HeaderMap, StatusCode, Version};

use super::run::Lead;
use super::{Lack, Object, Sequence};
use crate::cached_body::CachedBody;
use crate::reply::{self, Arranged, Reply};
use crate::settings::Place;
use crate::upstream::Upstream;
use crate::visit::Visit;

/// The first bytes of a stored body are unavailable in parts, so the origin has to send the whole body.
pub(crate) struct Unusable;

/// A stored response in fragments, as a request gets it.
pub(crate) struct Told {
    /// The preconditions that the cache evaluates.
    pub(crate) role: Role,
    pub(crate) code: StatusCode,
    pub(crate) fields: HeaderMap,
    pub(crate) received: SystemTime,
    pub(crate) version: Version,
    pub(crate) status: CacheStatus,
    /// How many more seconds it is fresh.
    pub(crate) left: i64,
}

/// How many fragments are looked up before an answer begins. Its head says whether any of them is missing.
pub(crate) const FRAGMENTS_LOOKED_AT: usize = 16;

impl<U: Upstream> Visit<U> {
    /// Answers with a stored body. The origin sends the fragments that are missing.
    pub(crate) async fn answer_in_fragments(
        self: &Arc<Self>,
        object: Arc<Object>,
        told: Told,
    ) -> Result<Reply<U::Body>, Unusable> {
        let Told { role, code, fields, received, version, status, left } = told;
        let (code, mut fields, segments) =
            match reply::arrange(role, &self.parts, code, fields, received, object.length()) {
                Arranged::Complete(mut response) => {
                    self.finish(response.headers_mut(), version, &status.ttl(left));
                    return Ok(response);
                }
                Arranged::Content(code, fields, segments) => (code, fields, segments),
            };
        let lacks = if object.if_range.is_some() {
            // Further missing fragments are asked for when the client gets there.
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
        let body = match Sequence::new(self, object, segments).begin().await {
            Ok(body) => body,
            Err(Lack::Failed(failure)) if self.settings.place == Place::Gateway => {
                return Ok(self.failed(&failure, CacheStatus::forwarded(Forward::Partial)));
            }
            Err(_) => return Err(Unusable),
        };
        self.finish(&mut fields, version, &status.ttl(left));
        Ok(reply::response(code, fields, CachedBody::drawn(body)))
    }

    /// The answer to a request that reads what another request has asked for.
    pub(crate) fn answer_on_its_way(
        self: &Arc<Self>,
        object: Arc<Object>,
        told: Told,
        lead: Option<&Lead>,
    ) -> Reply<U::Body> {
        let Told { role, code, fields, received, version, status, left } = told;
        match reply::arrange(role, &self.parts, code, fields, received, object.length()) {
            Arranged::Complete(mut response) => {
                self.finish(response.headers_mut(), version, &status.ttl(left));
                response
            }
            Arranged::Content(code, mut fields, segments) => {
                let body = Sequence::new(self, object, segments);
                let body = if let Some(lead) = lead { body.following(lead) } else { body };
                self.finish(&mut fields, version, &status.ttl(left));
                reply::response(code, fields, CachedBody::drawn(body))
            }
        }
    }
}
