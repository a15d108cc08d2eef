//! The entity tags of compressed forms (RFC 9110, sections 8.8.3.3 and 13.1).
//!
//! ```text
//! "x"        the identity         W/"x"   the identity, and all of its forms
//! "x--br"    its form in br
//! ```
//! Two hyphens set the suffix apart from those that origins use themselves.

use eyewall_http::coding::{self, Coding, Codings};
use eyewall_http::field::entity_tag::{EntityTag, TagList};
use http::header::{ETAG, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue};

const MARK: &[u8] = b"--";

/// The tag of a form, with its quotation marks. None: the identity's own tag is malformed, and no tag for a form.
pub fn of_form(identity: &[u8], coding: Coding) -> Option<Vec<u8>> {
    let tag = EntityTag::parse(identity)?;
    if tag.is_weak() {
        return Some(identity.to_vec());
    }
    Some([b"\"", tag.opaque(), MARK, coding.name().as_bytes(), b"\""].concat())
}

/// Gives the fields of the identity the tag of a form.
pub(super) fn set_form(fields: &mut HeaderMap, coding: Coding) {
    let is_one = EntityTag::of(fields).is_some();
    let tag = fields.remove(ETAG).filter(|_| is_one).and_then(|tag| of_form(tag.as_bytes(), coding));
    if let Some(tag) = tag.and_then(|tag| HeaderValue::from_bytes(&tag).ok()) {
        fields.insert(ETAG, tag);
    }
}

/// The tag by which a client has a response, as it is or in a form, by its `If-None-Match`. The response has these fields. Its form
/// may have been evicted since. A form counts only if the client accepts its coding: a cache may list the tags of forms that other
/// clients got.
pub(crate) fn had(request: &HeaderMap, identity: &HeaderMap) -> Option<HeaderValue> {
    let list = TagList::of(request, &IF_NONE_MATCH)?;
    let ours = EntityTag::of(identity)?;
    if list.has_weakly(Some(&ours)) {
        return identity.get(ETAG).cloned();
    }
    let TagList::Tags(theirs) = list else { return None };
    let accepted = coding::accepted(request);
    let is_ours = |tag: &&EntityTag<'_>| {
        !ours.is_weak() && of_accepted(tag.opaque(), accepted).is_some_and(|opaque| opaque == ours.opaque())
    };
    let form = theirs.iter().find(is_ours)?;
    HeaderValue::from_bytes(&[b"\"", form.opaque(), b"\""].concat()).ok()
}

/// Adds the tags of identities to conditions of a client that name their forms. `If-Range` stays, and so does `If-Match` for a
/// range: a range of a form is no range of the identity. A weak tag in `If-Match` matches nothing, so it names no identity either.
pub fn add_identities(request: &mut HeaderMap) {
    let is_ranged = request.contains_key(RANGE);
    for name in [IF_NONE_MATCH, IF_MATCH].into_iter().filter(|name| !is_ranged || *name != IF_MATCH) {
        let Some(TagList::Tags(theirs)) = TagList::of(request, &name) else { continue };
        let is_match = name == IF_MATCH;
        let accepted = if is_match { Codings::ALL } else { coding::accepted(request) };
        let compared = theirs.iter().filter(|tag| !is_match || !tag.is_weak());
        let opaque = compared.filter_map(|tag| of_accepted(tag.opaque(), accepted));
        let added: Vec<Vec<u8>> = opaque.map(|opaque| [b"\"", opaque, b"\""].concat()).collect();
        if added.is_empty() {
            continue;
        }
        // In one line: some programs read only the first.
        let lines = request.get_all(&name).iter().map(|line| line.as_bytes().to_vec());
        let all: Vec<Vec<u8>> = lines.chain(added).collect();
        if let Ok(line) = HeaderValue::from_bytes(&all.join(&b", "[..])) {
            request.insert(name.clone(), line);
        }
    }
}

/// Drops a range under an `If-Range` that is no tag. The identity and its forms have the same date, so a date doesn't say of which of
/// them the client has the beginning (RFC 9110, sections 8.8.2.2 and 13.1.5). Without the range, the client gets a whole response.
pub(crate) fn drop_range_by_date(request: &mut HeaderMap) {
    let mut lines = request.get_all(IF_RANGE).iter();
    let Some(line) = lines.next() else { return };
    let is_tag = lines.next().is_none() && EntityTag::parse(line.as_bytes()).is_some();
    if !is_tag {
        request.remove(RANGE);
        request.remove(IF_RANGE);
    }
}

/// The tag of the identity, for that of a form in one of these codings.
fn of_accepted(opaque: &[u8], accepted: Codings) -> Option<&[u8]> {
    let without = |coding: Coding| opaque.strip_suffix(coding.name().as_bytes())?.strip_suffix(MARK);
    accepted.iter().find_map(without)
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use http::header::ACCEPT_ENCODING;

    use super::*;

    fn one(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_strong_tag_gets_a_suffix_and_a_weak_one_stays() {
        for (tag, expected) in
            [("\"x\"", Some("\"x--gzip\"")), ("\"\"", Some("\"--gzip\"")), ("W/\"x\"", Some("W/\"x\"")), ("x", None)]
        {
            let mut fields = one(ETAG, tag);
            set_form(&mut fields, Coding::Gzip);
            assert_eq!(fields.get(ETAG).map(|tag| tag.to_str().unwrap()), expected, "{tag}");
        }
        let mut two = one(ETAG, "\"x\"");
        two.append(ETAG, HeaderValue::from_static("\"y\""));
        set_form(&mut two, Coding::Gzip);
        assert!(two.is_empty(), "it isn't clear which of them is meant");
    }

    #[test]
    fn a_client_has_a_form_by_its_tag() {
        for (theirs, ours, expected) in [
            ("\"x--br\"", "\"x\"", Some("\"x--br\"")),
            ("\"y\", W/\"x--zstd\"", "\"x\"", Some("\"x--zstd\"")),
            ("\"x--br\", \"x\"", "\"x\"", Some("\"x\"")),
            ("W/\"x\"", "\"x\"", Some("\"x\"")),
            ("\"x--br\"", "\"y\"", None),
            ("\"x--br\"", "W/\"x\"", None),
            ("\"x-br\"", "\"x\"", None),
            ("*", "\"x\"", Some("\"x\"")),
        ] {
            let had = had(&one(IF_NONE_MATCH, theirs), &one(ETAG, ours));
            assert_eq!(had.as_ref().map(|tag| tag.to_str().unwrap()), expected, "{theirs} {ours}");
        }
    }

    #[test]
    fn a_client_has_no_form_in_a_coding_that_it_does_not_accept() {
        for (accepted, expected) in [
            ("gzip", Some("\"x--gzip\"")),
            ("gzip;q=0, br", Some("\"x--br\"")),
            ("*", Some("\"x--br\"")),
            ("identity", None),
            ("zstd", None),
        ] {
            let mut request = one(IF_NONE_MATCH, "\"x--br\", \"x--gzip\"");
            request.insert(ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            let had = had(&request, &one(ETAG, "\"x\""));
            assert_eq!(had.as_ref().map(|tag| tag.to_str().unwrap()), expected, "{accepted}");
            add_identities(&mut request);
            let names_identity = request[IF_NONE_MATCH].to_str().unwrap().ends_with("\"x\"");
            assert_eq!(names_identity, expected.is_some(), "{accepted}");
        }
    }

    #[test]
    fn the_upstream_is_asked_for_the_tag_that_it_knows_too() {
        let mut request = one(IF_MATCH, "\"x--br\"");
        request.insert(IF_NONE_MATCH, HeaderValue::from_static("\"y\", W/\"z--zstd\""));
        request.insert(IF_RANGE, HeaderValue::from_static("\"x--br\""));
        add_identities(&mut request);
        let lines = |name| request.get_all(name).iter().map(|line| line.to_str().unwrap()).collect::<Vec<_>>();
        assert_eq!(lines(IF_MATCH), ["\"x--br\", \"x\""]);
        assert_eq!(lines(IF_NONE_MATCH), ["\"y\", W/\"z--zstd\", \"z\""]);
        assert_eq!(lines(IF_RANGE), ["\"x--br\""]);
        let mut request = one(IF_MATCH, "W/\"x--br\"");
        add_identities(&mut request);
        assert_eq!(request[IF_MATCH], "W/\"x--br\"", "it never matches");
        let mut request = one(IF_MATCH, "\"x--br\"");
        request.insert(RANGE, HeaderValue::from_static("bytes=5-"));
        add_identities(&mut request);
        assert_eq!(request.get_all(IF_MATCH).iter().count(), 1, "the origin would send a range of other bytes");
    }
}
