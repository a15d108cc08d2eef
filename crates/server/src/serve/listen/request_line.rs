//! Checks request lines that hyper would misread, or refuse by another status than that of the RFCs.
//!
//! It sees only requests that the fast path doesn't answer. After a request of unknown length, hyper reads the rest of the
//! connection by itself, and these checks don't apply.

use std::ops::Range;

use http::StatusCode;

/// The result of the check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineCheck {
    Sound,
    /// Answer it with this status and this text, and end the connection.
    Refuse(StatusCode, &'static str),
    /// Replace these bytes by others with the same meaning, which hyper understands. They are not longer.
    Rewrite(Range<usize>, &'static [u8]),
}

/// The request line is longer than a head may be (RFC 9112, section 3).
pub(super) const TOO_LONG: LineCheck =
    LineCheck::Refuse(StatusCode::URI_TOO_LONG, "the request's target is longer than this server accepts");
/// No body can have this length (RFC 9110, section 8.6).
pub(super) const LENGTH: &str = "the length of the content is larger than a message can have";
const FRAGMENT: LineCheck =
    LineCheck::Refuse(StatusCode::BAD_REQUEST, "the target has a fragment, which a client must not send");

/// Checks the request line, which may have `line_bytes_max` bytes.
pub(super) fn check(bytes: &[u8], line_bytes_max: u64) -> LineCheck {
    // A server ignores empty lines before a request (RFC 9112, section 2.2).
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let end = bytes[start..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| start + length);
    let line = bytes[start..end].strip_suffix(b"\r").unwrap_or(&bytes[start..end]);
    if line.len() as u64 > line_bytes_max {
        return TOO_LONG;
    }
    let mut blanks = line.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    let Some(target_start) = blanks.next().map(|blank| blank + 1) else { return LineCheck::Sound };
    let target_end = blanks.next().unwrap_or(line.len());
    let (method, target) = (&line[..target_start - 1], &line[target_start..target_end]);
    if target.contains(&b'#') {
        return FRAGMENT;
    }
    // A client of a later minor version understands a response of 1.1 (RFC 9110, section 2.5).
    if line[target_end..].strip_prefix(b" HTTP/1.").is_some_and(is_later) {
        let digit = start + line.len() - 1;
        return LineCheck::Rewrite(digit..digit + 1, b"1");
    }
    // RFC 9112, section 3.2.4.
    if method == b"OPTIONS" && is_host_alone(target) {
        return LineCheck::Rewrite(start + target_start..start + target_end, b"*");
    }
    LineCheck::Sound
}

/// Whether the rest of a line, whose beginning was checked, has a fragment.
pub(super) fn check_rest(bytes: &[u8]) -> LineCheck {
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.contains(&b'#') { FRAGMENT } else { LineCheck::Sound }
}

fn is_later(minor: &[u8]) -> bool {
    matches!(minor, [b'2'..=b'9'])
}

/// Whether a target in absolute form has neither path nor query.
fn is_host_alone(target: &[u8]) -> bool {
    let after = |scheme: &str| {
        let (beginning, rest) = target.split_at_checked(scheme.len())?;
        beginning.eq_ignore_ascii_case(scheme.as_bytes()).then_some(rest)
    };
    let authority = after("http://").or_else(|| after("https://"));
    authority.is_some_and(|authority| !authority.is_empty() && !authority.iter().any(|byte| b"/?".contains(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_hyper_would_misread_are_found() {
        let rewrite = |range: Range<usize>, with| LineCheck::Rewrite(range, with);
        for (line, expected) in [
            ("GET /a?b HTTP/1.1", LineCheck::Sound),
            ("GET /a#b HTTP/1.1", FRAGMENT),
            ("GET http://h/#?b HTTP/1.1", FRAGMENT),
            ("\r\n\nGET /# HTTP/1.0", FRAGMENT),
            ("GET / HTTP/1.2", rewrite(13..14, b"1")),
            ("\r\nGET / HTTP/1.9", rewrite(15..16, b"1")),
            ("GET / HTTP/1.12", LineCheck::Sound),
            ("GET / HTTP/1.0", LineCheck::Sound),
            ("PRI * HTTP/2.0", LineCheck::Sound),
            ("OPTIONS http://h:80 HTTP/1.1", rewrite(8..19, b"*")),
            ("OPTIONS HTTPS://h HTTP/1.1", rewrite(8..17, b"*")),
            ("OPTIONS http://h/ HTTP/1.1", LineCheck::Sound),
            ("OPTIONS http://h?a HTTP/1.1", LineCheck::Sound),
            ("OPTIONS http:// HTTP/1.1", LineCheck::Sound),
            ("OPTIONS * HTTP/1.1", LineCheck::Sound),
            ("GET http://h HTTP/1.1", LineCheck::Sound),
            ("no-request", LineCheck::Sound),
            ("\u{16}\u{3}\u{1}", LineCheck::Sound),
            ("GET /123456789012 HTTP/1.1", LineCheck::Sound),
            ("GET /12345678901234567890123456789 HTTP/1.1", TOO_LONG),
        ] {
            for ending in ["\r\nHost: h#\r\n\r\n", "\n\n"] {
                let text = format!("{line}{ending}");
                assert_eq!(check(text.as_bytes(), 40), expected, "{text:?}");
            }
        }
        assert_eq!(check_rest(b"abc\n#"), LineCheck::Sound);
        assert_eq!(check_rest(b"a#bc"), FRAGMENT);
    }
}
