//! The cache status of a request in one word, from Eyewall's member of `Cache-Status` (RFC 9211).
//!
//! | word | what happened |
//! |---|---|
//! | `hit` | answered from the volume, fresh |
//! | `stale` | answered from the volume, stale |
//! | `revalidated` | answered from the volume, after the origin confirmed it |
//! | `miss` | fetched, by this request or by one that it waited for, and stored |
//! | `pass` | fetched, and not stored |
//!
//! The reason of `Cache-Status` follows `pass` after a colon, and also an unusual `hit` or `stale`.

use eyewall_http::field::cache_status::CACHE_STATUS;
use http::{HeaderMap, HeaderValue, Response};

use super::escape::push_bare;
use crate::serve::NAME;

/// The `Cache-Status` of a response before rules changed its fields.
#[derive(Debug, Clone)]
struct Noted(HeaderValue);

/// Notes the cache status of a response for the log, because rules may remove the field.
pub(crate) fn note<B>(response: &mut Response<B>) {
    if let Some(value) = response.headers().get_all(CACHE_STATUS).iter().next_back().cloned() {
        response.extensions_mut().insert(Noted(value));
    }
}

/// Appends the word of a response.
pub(super) fn push_of<B>(line: &mut Vec<u8>, response: &Response<B>) {
    match response.extensions().get::<Noted>() {
        Some(Noted(value)) => push(line, &HeaderMap::from_iter([(CACHE_STATUS, value.clone())])),
        None => push(line, response.headers()),
    }
}

/// Appends the word, or `-` if the cache had no part in the response.
fn push(line: &mut Vec<u8>, fields: &HeaderMap) {
    // Ours is the last: members of caches between here and the origin come before it.
    let member = fields.get_all(CACHE_STATUS).iter().next_back().and_then(|value| value.to_str().ok());
    let Some(value) = member.and_then(|member| member.strip_prefix(NAME)?.strip_prefix("; ")) else {
        return line.push(b'-');
    };
    let parameter = |name: &str| value.split("; ").find_map(|one| one.strip_prefix(name)?.strip_prefix('='));
    let has = |name: &str| value.split("; ").any(|one| one == name);
    let ttl = parameter("ttl");
    let detail = parameter("detail").map(|detail| detail.trim_matches('"'));
    let (word, reason) = match parameter("fwd") {
        None if ttl.is_some_and(|ttl| ttl.starts_with('-')) => ("stale", detail),
        None => ("hit", detail),
        Some(_) if ttl.is_some() && parameter("fwd-status") == Some("304") => ("revalidated", None),
        Some(_) if has("stored") => ("miss", None),
        Some(why) => ("pass", detail.or(Some(why))),
    };
    line.extend_from_slice(word.as_bytes());
    if let Some(reason) = reason {
        line.push(b':');
        push_bare(line, reason.as_bytes());
    }
}

/// Appends the word of a fresh response from the volume.
pub(super) fn push_hit(line: &mut Vec<u8>) {
    line.extend_from_slice(b"hit");
}

#[cfg(test)]
mod tests {
    use eyewall_http::field::cache_status::{CacheStatus, Forward};
    use http::StatusCode;

    use super::*;

    fn word(fields: &HeaderMap) -> String {
        let mut line = Vec::new();
        push(&mut line, fields);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn each_status_has_its_word() {
        let asked = |why| CacheStatus::forwarded(why).forward_status(StatusCode::OK);
        let confirmed = CacheStatus::forwarded(Forward::Stale).forward_status(StatusCode::NOT_MODIFIED);
        for (status, expected) in [
            (CacheStatus::hit(), "hit"),
            (CacheStatus::hit().ttl(27), "hit"),
            (CacheStatus::hit().ttl(-3), "stale"),
            (CacheStatus::hit().detail("stale-if-error").ttl(-3), "stale:stale-if-error"),
            (CacheStatus::hit().detail("only-if-cached"), "hit:only-if-cached"),
            (confirmed.clone().ttl(60), "revalidated"),
            (confirmed.detail("head"), "pass:head"),
            (asked(Forward::UriMiss).stored(true).ttl(60), "miss"),
            (asked(Forward::Stale).stored(true).collapsed(true), "miss"),
            (asked(Forward::UriMiss).detail("set-cookie"), "pass:set-cookie"),
            (asked(Forward::Method), "pass:method"),
            (asked(Forward::UriMiss).detail("in two \"words\""), "pass:in\\x20two\\x20\\x5C\\x22words\\x5C"),
        ] {
            let mut fields = HeaderMap::new();
            fields.append(CACHE_STATUS, HeaderValue::from_static("Other; hit; ttl=-5"));
            status.append_to(&mut fields, NAME);
            assert_eq!(word(&fields), expected);
        }
    }

    #[test]
    fn a_response_without_the_cache_has_no_word() {
        assert_eq!(word(&HeaderMap::new()), "-");
        let mut fields = HeaderMap::new();
        fields.append(CACHE_STATUS, HeaderValue::from_static("Other; hit"));
        assert_eq!(word(&fields), "-");
    }
}
