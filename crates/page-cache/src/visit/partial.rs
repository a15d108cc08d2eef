//! Responses to requests for a part (RFC 9111, section 3.3).

use std::sync::Arc;

use eyewall_http::coding::Codings;
use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::ranges;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode, response};

use super::fetch::Asked;
use super::storing::Coming;
use super::{Answered, Ask, Visit};
use crate::cached_body::CachedBody;
use crate::carried::Carried;
use crate::fragments::{Came, Part, Slice};
use crate::reply::{self, Reply};
use crate::upstream::Upstream;

impl<U: Upstream> Visit<U> {
    /// Receives a 206 to a request for whole fragments. `is_opaque`: the encoding of its bytes is unknown.
    pub(super) async fn receive_part(
        self: &Arc<Self>,
        mut ask: Ask,
        part: Part,
        (mut head, body): (response::Parts, U::Body),
        is_opaque: bool,
        asked: Asked,
    ) -> Answered<U> {
        // Another cache has it for this one. The next request may have to be stored.
        let is_of_other = head.extensions.get::<Carried>().is_some_and(|carried| !carried.is_kept);
        let mut may_be_stored = is_of_other;
        let came = match self.came(part, &head.headers, asked.exchange.received) {
            Came::Whole(fields) => {
                let length = fields.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
                Some((fields, length, None, 0))
            }
            Came::Part { fields, range, skipped, length } => Some((fields, Some(length), Some(range), skipped)),
            Came::End => {
                may_be_stored = true;
                None
            }
            Came::Nothing => None,
        };
        if let Some((mut fields, length, range, skipped)) = came.filter(|_| !is_opaque)
            // The rules are for the whole response, of which this is a part.
            && let rules = self.rules(StatusCode::OK, &mut fields, &mut head.extensions)
            && let Ok(storable) = self.judge(&rules, (StatusCode::OK, &fields), asked.exchange)
            && let Ok(entry) =
                self.entry((StatusCode::OK, &fields), (&storable, length), (rules.tags, Codings::NONE), asked.exchange)
        {
            self.pages.unstorable.remove(&self.key);
            let forward_status = head.status;
            let head = head_of_whole(&head, fields);
            let is_kept = true;
            let coming = Coming { head, body, storable, entry, length, range, skipped, forward_status, is_kept };
            return Ok(self.store(ask, coming, asked).await);
        }
        if may_be_stored {
            // The requests that wait for this one can't use its answer. Without this, they would ask one after the other.
            if let Some(leader) = ask.leader.take() {
                leader.alone();
            }
        } else {
            // The next request for a range bypasses the volume at once.
            self.pages.unstorable.insert(&self.key);
        }
        let status = CacheStatus::forwarded(ask.why).detail(if is_of_other { "peer" } else { "range" });
        let slice = if is_opaque { Some(Slice::All) } else { part.slice(&head.headers) };
        let current =
            Representation { status: StatusCode::OK, fields: &head.headers, received: asked.exchange.received };
        let outcome = precondition::evaluate(Role::Cache, &self.parts.method, &self.parts.headers, Some(&current));
        match (outcome, slice) {
            (Outcome::NotModified, _) => {
                self.finish(&mut head.headers, head.version, &status.forward_status(head.status));
                Ok(reply::not_modified(StatusCode::OK, &head.headers))
            }
            (Outcome::Partial(_), Some(slice)) => Ok(self.answer_with_slice(slice, (head, body), status)),
            // `If-Range` means that the client wants all of it, or the upstream has to refuse the range.
            (Outcome::Partial(_) | Outcome::Proceed | Outcome::Failed, _) => {
                drop(body);
                self.pass(status, None).await
            }
        }
    }

    /// The part that the client wanted of a 206 that isn't stored.
    fn answer_with_slice(
        &self,
        slice: Slice,
        (mut head, body): (response::Parts, U::Body),
        status: CacheStatus,
    ) -> Reply<U::Body> {
        let timeout = self.settings.piece_timeout;
        let body = match slice {
            Slice::All => CachedBody::passed(body, timeout),
            Slice::Bytes { of_body, range, complete_length } => {
                if let Some(fields) = ranges::fields_of_part(&head.headers, &range, complete_length) {
                    head.headers = fields;
                }
                CachedBody::cut(body, timeout, &of_body)
            }
        };
        self.finish(&mut head.headers, head.version, &status.forward_status(head.status));
        self.response_of(head, body)
    }
}

/// The head of the whole response that a part with this head belongs to.
fn head_of_whole(part: &response::Parts, fields: HeaderMap) -> response::Parts {
    let mut whole = part.clone();
    (whole.status, whole.headers) = (StatusCode::OK, fields);
    whole
}
