//! Strong validators (RFC 9110, section 8.8): responses that share one have the same bytes.

use std::time::{Duration, SystemTime};

use http::header::{DATE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use crate::field::date;
use crate::field::entity_tag::EntityTag;

/// If a representation was sent so long after its modification, it can't have changed again within the same
/// second.
const STRONG_AFTER: Duration = Duration::from_secs(1);

/// Whether two responses for one URI share a strong validator, so that their ranges can be combined (RFC 9110,
/// section 15.3.7.3). `received` is when each was received.
///
/// If either has an entity tag, the tags decide; otherwise the dates of modification do, if both are strong.
pub fn is_shared(one: &HeaderMap, one_received: SystemTime, other: &HeaderMap, other_received: SystemTime) -> bool {
    if one.contains_key(ETAG) || other.contains_key(ETAG) {
        let tags = EntityTag::of(one).zip(EntityTag::of(other));
        return tags.is_some_and(|(one, other)| one.matches_strongly(&other));
    }
    let modified = modified(one, one_received);
    modified.is_some() && modified == self::modified(other, other_received)
}

/// The value of `If-Range` for a request for more of this representation. `None` if it has no strong validator.
pub fn if_range(fields: &HeaderMap, received: SystemTime) -> Option<HeaderValue> {
    if fields.contains_key(ETAG) {
        // A date must not be sent if there is a tag (section 13.1.5).
        EntityTag::of(fields).filter(|tag| !tag.is_weak())?;
        return fields.get(ETAG).cloned();
    }
    modified(fields, received)?;
    fields.get(LAST_MODIFIED).cloned()
}

/// When the representation was modified, if that is a strong validator: the response was made at least a second
/// later (section 8.8.2.2). A response without a date counts as made when it was `received`.
pub(crate) fn modified(fields: &HeaderMap, received: SystemTime) -> Option<SystemTime> {
    let modified = date::of(fields, &LAST_MODIFIED)?;
    let made = date::of(fields, &DATE).unwrap_or(received);
    made.duration_since(modified).is_ok_and(|since| since >= STRONG_AFTER).then_some(modified)
}
