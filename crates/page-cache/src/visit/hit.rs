//! Answers from the volume, and those that another request brings.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::answer::has_length;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::Exchange;
use eyewall_http::terms::Terms;
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Version};

use super::{Visit, storing};
use crate::answer::{Answer, Content};
use crate::carried::Carried;
use crate::compression::form;
use crate::fragments::{Object, Told, Unusable};
use crate::reply::{self, Reply};
use crate::selection::Stored;
use crate::upstream::Upstream;

/// How fresh a stored response is when it is sent.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    /// The seconds of `Age`.
    pub age: u64,
    /// How many more seconds it is fresh. Below zero: how long it has been stale.
    pub left: i64,
}

impl Freshness {
    /// The freshness of a response with these terms.
    #[inline]
    pub fn of(terms: &Terms, now: SystemTime) -> Self {
        let age = terms.age(now).as_secs();
        Self { age, left: i64::from(terms.lifetime_seconds) - age as i64 }
    }

    fn write_age(self, fields: &mut HeaderMap) {
        fields.insert(AGE, HeaderValue::from(self.age));
    }
}

impl<U: Upstream> Visit<U> {
    /// Answers with a stored response: whole, in part, or 304 (RFC 9111, section 4.3.2).
    pub(super) async fn hit(
        self: &Arc<Self>,
        mut stored: Box<Stored>,
        status: CacheStatus,
    ) -> Result<Reply<U::Body>, Unusable> {
        if stored.is_fragmented() {
            return Box::pin(self.hit_in_fragments(stored, status)).await;
        }
        let freshness = Freshness::of(&stored.terms, self.now());
        let (received, role) = (stored.received(), self.role(&stored.terms));
        let carried = self.as_of.clone().filter(|_| self.is_for_cache);
        let carried = carried.and_then(|as_of| Carried::of_stored(&stored, as_of));
        let mut fields = std::mem::take(&mut stored.found.head.fields);
        let client_has_it = self.set_tag_that_client_has(stored.found.head.status, &mut fields);
        let may_have_forms = !client_has_it && !self.is_for_cache && stored.found.head.compressible.is_some();
        let form = if may_have_forms { self.form(&stored).await } else { None };
        if let Some((coding, _)) = form {
            form::dress(&mut fields, coding);
        }
        freshness.write_age(&mut fields);
        self.finish(&mut fields, Version::HTTP_11, &status.ttl(freshness.left));
        let (code, trailers) = (stored.found.head.status, stored.trailers());
        let value = form.map_or_else(|| stored.found.value(), |(_, form)| form);
        let mut response = reply::representation(role, &self.parts, (code, fields), received, value, trailers);
        self.carry(&mut response, || carried);
        Ok(response)
    }

    async fn hit_in_fragments(
        self: &Arc<Self>,
        stored: Box<Stored>,
        status: CacheStatus,
    ) -> Result<Reply<U::Body>, Unusable> {
        let freshness = Freshness::of(&stored.terms, self.now());
        let (received, role) = (stored.received(), self.role(&stored.terms));
        let mut fields = stored.found.head.fields.clone();
        freshness.write_age(&mut fields);
        let (code, version, left) = (stored.found.head.status, Version::HTTP_11, freshness.left);
        let object = Object::of_stored(&stored).ok_or(Unusable)?;
        let carried = self.as_of.clone().filter(|_| self.is_for_cache);
        let carried = carried.and_then(|as_of| Carried::of_stored(&stored, as_of));
        let told = Told { role, code, fields, received, version, status, left };
        let mut response = self.answer_in_fragments(Arc::new(object), told).await?;
        self.carry(&mut response, || carried);
        Ok(response)
    }

    /// Answers a request that waited for another one. `None` if the start of the body is gone.
    pub(super) async fn follow(self: &Arc<Self>, answer: &Arc<Answer>, why: Forward) -> Option<Reply<U::Body>> {
        let now = self.now();
        let freshness = Freshness::of(&answer.terms, now);
        let mut fields = answer.fields.clone();
        freshness.write_age(&mut fields);
        let status = CacheStatus::forwarded(why).forward_status(answer.status).collapsed(true);
        let status = storing::told(status, answer, freshness.left);
        match &answer.content {
            Content::Whole(stream) => {
                let reader = stream.reader()?;
                if let Some(length) = stream.length().filter(|_| has_length(answer.status)) {
                    fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
                }
                self.finish(&mut fields, Version::HTTP_11, &status);
                let (exchange, length) = (Exchange { requested: now, received: now }, stream.length());
                let mut response = self.shared(answer, fields, Some(reader), exchange).await;
                self.carry(&mut response, || answer.carried(length));
                Some(response)
            }
            Content::Fragments(object) => {
                let (code, version, role) = (answer.status, Version::HTTP_11, self.role(&answer.terms));
                let told = Told { role, code, fields, received: now, version, status, left: freshness.left };
                let mut response = self.answer_on_its_way(Arc::clone(object), told, None);
                self.carry(&mut response, || answer.carried(Some(object.length())));
                Some(response)
            }
        }
    }
}
