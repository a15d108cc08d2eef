//! Answers out of the volume, and what is written of each: how old it is, that it came through here, and what the cache did.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::precondition::Role;
use eyewall_http::terms::Terms;
use http::header::AGE;
use http::{HeaderValue, Response, Version};
use itoa::Buffer;

use super::fragments::{Object, Told, Unusable};
use super::inbound::Inbound;
use super::{Proxy, finish};
use crate::serve::body::Body;
use crate::serve::{NAME, fields, reply};
use eyewall_page_cache::selection::Stored;

/// The age and the remaining TTL of a stored response at the moment when it is sent.
#[derive(Clone, Copy)]
pub(super) struct AgeAndTtl {
    /// The seconds of `Age`.
    age: u64,
    /// For how many seconds it is fresh yet; less than none: it has been stale for so long.
    ttl: i64,
}

impl AgeAndTtl {
    pub(super) fn of(terms: &Terms, now: SystemTime) -> Self {
        let age = terms.age(now).as_secs();
        Self { age, ttl: i64::from(terms.lifetime_seconds) - age as i64 }
    }

    /// The lines of HTTP/1 that a plain hit has beside its own: what the full path writes by [`finish`].
    pub(super) fn write_lines(self, lines: &mut Vec<u8>) {
        let (mut age, mut ttl) = (Buffer::new(), Buffer::new());
        let of_cache = ["age: ", age.format(self.age), "\r\nvia: 1.1 ", fields::BY, "\r\ncache-status: ", NAME];
        for piece in of_cache.into_iter().chain(["; hit; ttl=", ttl.format(self.ttl), "\r\n"]) {
            lines.extend_from_slice(piece.as_bytes());
        }
    }
}

impl Proxy {
    /// A stored response, whole, in part, or 304 (RFC 9111, section 4.3.2).
    pub(super) async fn hit(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        stored: Stored,
        status: CacheStatus,
    ) -> Result<Response<Body>, Unusable> {
        let AgeAndTtl { age, ttl } = AgeAndTtl::of(&stored.terms, SystemTime::now());
        let received = stored.received();
        let mut fields = stored.found.head.fields.clone();
        fields.insert(AGE, HeaderValue::from(age));
        let (code, version) = (stored.found.head.status, Version::HTTP_11);
        if stored.is_fragmented() {
            let object = Object::of_stored(&stored).ok_or(Unusable)?;
            let told = Told { code, fields, received, version, status, left: ttl };
            return self.answer_in_fragments(inbound, Arc::new(object), told).await;
        }
        finish(&mut fields, version, &status.ttl(ttl));
        Ok(reply::representation(Role::Cache, inbound.parts, code, fields, received, &stored.found.value()))
    }
}
