//! Answers out of the volume.

use std::time::SystemTime;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::precondition::Role;
use http::header::AGE;
use http::{HeaderValue, Response, Version};

use super::finish;
use super::inbound::Inbound;
use super::pages::Stored;
use crate::serve::body::Body;
use crate::serve::reply;

/// A stored response, whole, in part, or 304 (RFC 9111, section 4.3.2).
pub(super) fn answer(inbound: Inbound<'_>, stored: Stored, status: CacheStatus) -> Response<Body> {
    let age = stored.terms.age(SystemTime::now()).as_secs();
    let left = i64::from(stored.terms.lifetime_seconds) - age as i64;
    let received = stored.received();
    let mut fields = stored.found.head.fields.clone();
    fields.insert(AGE, HeaderValue::from(age));
    finish(&mut fields, Version::HTTP_11, &status.ttl(left));
    let code = stored.found.head.status;
    reply::representation(Role::Cache, inbound.parts, code, fields, received, stored.found.value())
}
