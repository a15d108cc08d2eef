//! Updates header fields of a stored response from a newer one (RFC 9111, sections 3.2 and 4.3.5).

use http::header::{AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, StatusCode};

use crate::field::connection::drop_hop_by_hop;
use crate::field::date;
use crate::field::entity_tag::EntityTag;
use crate::field::range::number;
use crate::ranges::{CONTENT_DIGEST, CONTENT_MD5};

/// Fields that describe the stored bytes. A newer response's values don't apply to them.
const OF_THE_BYTES: [HeaderName; 5] = [CONTENT_DIGEST, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_MD5, CONTENT_RANGE];

/// The fields of a stored response after an update by a 304, a 206 or a response to HEAD (section 3.2).
///
/// Each field of `newer` replaces all lines of that name. Fields that are never stored are left out; so are those
/// that describe the stored bytes (length, range, coding, digests). An existing entity tag stays: the caller has
/// found, by a tag that matches, that the update applies to this response. The old `Age` is removed in any case,
/// since it is the age of the replaced response.
pub fn updated(stored: &HeaderMap, newer: &HeaderMap) -> HeaderMap {
    let mut newer = newer.clone();
    drop_hop_by_hop(&mut newer);
    for name in &OF_THE_BYTES {
        newer.remove(name);
    }
    if stored.contains_key(ETAG) {
        newer.remove(ETAG);
    }
    let mut fields = stored.clone();
    fields.remove(AGE);
    for name in newer.keys() {
        replace_lines(&mut fields, name, &newer);
    }
    fields
}

/// What a response to HEAD says about a stored response to GET that could have answered the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeadEffect {
    /// Nothing: its status isn't 200.
    None,
    /// It is the same representation, with these new fields.
    Updated(HeaderMap),
    /// It is another representation: the stored response is stale.
    Outdated,
}

/// Compares a stored response, and its length in bytes if known, with a response to HEAD (section 4.3.5).
///
/// The stored response is outdated if the new one has another entity tag, date of modification or length. Another
/// content coding means other bytes, too.
pub fn effect_of_head(
    stored: &HeaderMap,
    complete_length: Option<u64>,
    status: StatusCode,
    answer: &HeaderMap,
) -> HeadEffect {
    if status != StatusCode::OK {
        return HeadEffect::None;
    }
    let has_same_tag = !answer.contains_key(ETAG) || is_same_tag(stored, answer);
    let has_same_date = !answer.contains_key(LAST_MODIFIED) || is_same_date(stored, answer);
    let has_same_length = answer
        .get_all(CONTENT_LENGTH)
        .iter()
        .all(|length| complete_length.is_some() && number(length.as_bytes().trim_ascii()) == complete_length);
    let codings = |fields: &HeaderMap| fields.get_all(CONTENT_ENCODING).iter().cloned().collect::<Vec<_>>();
    if has_same_tag && has_same_date && has_same_length && codings(stored) == codings(answer) {
        HeadEffect::Updated(updated(stored, answer))
    } else {
        HeadEffect::Outdated
    }
}

/// A tag that became weak or strong counts as another one. So does a malformed tag, unless it is spelled the
/// same.
fn is_same_tag(stored: &HeaderMap, answer: &HeaderMap) -> bool {
    match (EntityTag::of(stored), EntityTag::of(answer)) {
        (Some(stored), Some(answer)) => stored.matches_weakly(&answer) && stored.is_weak() == answer.is_weak(),
        _ => stored.get(ETAG) == answer.get(ETAG),
    }
}

fn is_same_date(stored: &HeaderMap, answer: &HeaderMap) -> bool {
    match (date::of(stored, &LAST_MODIFIED), date::of(answer, &LAST_MODIFIED)) {
        (Some(stored), Some(answer)) => stored == answer,
        _ => stored.get(LAST_MODIFIED) == answer.get(LAST_MODIFIED),
    }
}

/// Replaces all lines of a name in `fields` by those in `source`.
pub(crate) fn replace_lines(fields: &mut HeaderMap, name: &HeaderName, source: &HeaderMap) {
    fields.remove(name);
    for line in source.get_all(name) {
        fields.append(name.clone(), line.clone());
    }
}
