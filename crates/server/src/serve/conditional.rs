//! Conditional requests (RFC 9110, section 13): what the client has already need not be sent.

use http::header::{
    AGE, CACHE_CONTROL, CONTENT_LOCATION, DATE, ETAG, EXPIRES, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, VARY,
    VIA,
};
use http::{HeaderMap, HeaderName};

use super::cache_status::CACHE_STATUS;

/// What a 304 tells of the response that it stands for.
const KEPT_IN_NOT_MODIFIED: [HeaderName; 10] =
    [AGE, CACHE_CONTROL, CACHE_STATUS, CONTENT_LOCATION, DATE, ETAG, EXPIRES, LAST_MODIFIED, VARY, VIA];

/// Whether a GET or HEAD should be answered by 304 instead of by a response with these fields.
pub(crate) fn is_unchanged(request: &HeaderMap, response: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        let Some(ours) = response.get(ETAG) else { return false };
        let ours = opaque_part(ours.as_bytes());
        return request.get_all(IF_NONE_MATCH).iter().any(|theirs| has_tag(theirs.as_bytes(), ours));
    }
    let date = |fields: &HeaderMap, name| httpdate::parse_http_date(fields.get(name)?.to_str().ok()?).ok();
    match (date(request, IF_MODIFIED_SINCE), date(response, LAST_MODIFIED)) {
        (Some(since), Some(modified)) => modified <= since,
        _ => false,
    }
}

/// The fields of a 304, out of those of the response that it stands for.
pub(crate) fn fields_of_not_modified(mut fields: HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for name in KEPT_IN_NOT_MODIFIED {
        if let http::header::Entry::Occupied(entry) = fields.entry(&name) {
            let (_, values) = entry.remove_entry_mult();
            for value in values {
                kept.append(name.clone(), value);
            }
        }
    }
    kept
}

/// Weak comparison, which is the one for `If-None-Match`.
fn opaque_part(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Whether a list of entity tags has `ours`, or is `*`. Tags may hold commas, so that the marks are followed.
fn has_tag(list: &[u8], ours: &[u8]) -> bool {
    if list.trim_ascii() == b"*" {
        return true;
    }
    let mut rest = list;
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        let tag = opaque_part(rest);
        let Some(end) = tag.strip_prefix(b"\"").and_then(|tag| tag.iter().position(|byte| *byte == b'"')) else {
            return false;
        };
        if &tag[..end + 2] == ours {
            return true;
        }
        rest = &tag[end + 2..];
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn tags_are_compared_weakly_and_one_by_one() {
        assert!(has_tag(b"\"a\", W/\"b\"", b"\"b\""));
        assert!(has_tag(b"\"a,b\",\"c\"", b"\"a,b\""));
        assert!(has_tag(b" * ", b"\"a\""));
        assert!(!has_tag(b"\"a\", \"bc\"", b"\"b\""));
        for broken in [&b"a"[..], b"\"a", b"W/", b",", b"", b"\"x\" \"a"] {
            assert!(!has_tag(broken, b"\"a\""));
        }
    }

    #[test]
    fn a_tag_outranks_a_date() {
        let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
        let response =
            HeaderMap::from_iter([(ETAG, HeaderValue::from_static("\"now\"")), (LAST_MODIFIED, date.clone())]);
        let mut request = HeaderMap::from_iter([(IF_MODIFIED_SINCE, date)]);
        assert!(is_unchanged(&request, &response));
        request.insert(IF_NONE_MATCH, HeaderValue::from_static("\"before\""));
        assert!(!is_unchanged(&request, &response));
    }
}
