//! Lists, and directives of the form `name=argument` (RFC 9110, section 5.6).

use http::{HeaderMap, HeaderName};

/// The members of a list over all lines of a field, trimmed, without empty members.
///
/// A comma inside quotation marks doesn't end a member. An unclosed quotation extends to the end of its line.
pub fn members<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a [u8]> {
    fields.get_all(name).iter().flat_map(|line| split(line.as_bytes(), b','))
}

/// The pieces of `text` between separators outside of quotation marks, trimmed, without empty ones.
pub fn split(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    text.split(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            byte if *byte == separator => return !is_quoted,
            _ => {}
        }
        false
    })
    .map(<[u8]>::trim_ascii)
    .filter(|piece| !piece.is_empty())
}

/// Name and argument of `name`, `name=token` or `name="text"`, as spelled: the quotation marks stay.
pub fn directive(member: &[u8]) -> (&[u8], Option<&[u8]>) {
    match member.iter().position(|byte| *byte == b'=') {
        Some(at) => (member[..at].trim_ascii(), Some(member[at + 1..].trim_ascii())),
        None => (member, None),
    }
}

/// The content of a quoted text; an unquoted one is returned unchanged.
pub fn unquoted(argument: &[u8]) -> Vec<u8> {
    let Some(inner) = argument.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) else {
        return argument.to_vec();
    };
    let mut is_escaped = false;
    let mut text = Vec::with_capacity(inner.len());
    for &byte in inner {
        if byte == b'\\' && !is_escaped {
            is_escaped = true;
        } else {
            is_escaped = false;
            text.push(byte);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::CACHE_CONTROL;

    use super::*;

    #[test]
    fn a_list_spans_all_its_lines_and_empty_members_are_ignored() {
        let mut fields = HeaderMap::new();
        fields.append(CACHE_CONTROL, HeaderValue::from_static(" a , ,b=\"x, y\\\", z\","));
        fields.append(CACHE_CONTROL, HeaderValue::from_static("c"));
        let found: Vec<_> = members(&fields, &CACHE_CONTROL).collect();
        assert_eq!(found, [&b"a"[..], b"b=\"x, y\\\", z\"", b"c"]);
    }

    #[test]
    fn an_argument_may_be_quoted() {
        assert_eq!(directive(b"max-age = 5"), (&b"max-age"[..], Some(&b"5"[..])));
        assert_eq!(directive(b"no-store"), (&b"no-store"[..], None));
        assert_eq!(unquoted(b"\"a \\\"b\\\\\""), b"a \"b\\");
        assert_eq!(unquoted(b"5"), b"5");
        assert_eq!(unquoted(b"\""), b"\"");
    }
}
