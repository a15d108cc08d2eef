//! Answers out of the volume.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::precondition::Role;
use http::header::AGE;
use http::{HeaderValue, Response, Version};

use super::fragments::{Told, Unusable};
use super::inbound::Inbound;
use super::pages::Stored;
use super::{Proxy, finish};
use crate::serve::body::Body;
use crate::serve::reply;

impl Proxy {
    /// A stored response, whole, in part, or 304 (RFC 9111, section 4.3.2).
    pub(super) async fn hit(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        stored: Stored,
        status: CacheStatus,
    ) -> Result<Response<Body>, Unusable> {
        let age = stored.terms.age(SystemTime::now()).as_secs();
        let left = i64::from(stored.terms.lifetime_seconds) - age as i64;
        let received = stored.received();
        let mut fields = stored.found.head.fields.clone();
        fields.insert(AGE, HeaderValue::from(age));
        let (code, version) = (stored.found.head.status, Version::HTTP_11);
        if stored.is_fragmented() {
            let object = stored.object().ok_or(Unusable)?;
            let told = Told { code, fields, received, version, status, left };
            return self.answer_in_fragments(inbound, Arc::new(object), told).await;
        }
        finish(&mut fields, version, &status.ttl(left));
        Ok(reply::representation(Role::Cache, inbound.parts, code, fields, received, &stored.found.value()))
    }
}
