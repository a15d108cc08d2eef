//! Parses one line of an access log, in place. Only JSON strings with escapes are copied.

use memchr::{memchr, memchr_iter, memrchr};

use crate::json_line;

/// The longest key that a volume takes.
const KEY_BYTES_MAX: usize = 65_535;
/// Sizes have 48 bits; a larger one is an error in the log.
const BYTES_MAX: u64 = (1 << 48) - 1;

/// The format of a log's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// NCSA common and combined, as Apache and nginx write them
    #[value(aliases = ["common", "combined"])]
    Ncsa,
    /// One JSON object a line, as Caddy writes them, and nginx with a `log_format` of JSON
    Json,
    /// A key, a space, and a size in bytes
    Plain,
}

/// The content of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A successful GET.
    Request {
        /// Target with query, after the host if the line names one.
        key: &'a [u8],
        /// Bytes that were sent; 0 if the line doesn't say.
        bytes: u64,
    },
    /// Another method than GET.
    OtherMethod,
    /// A status that no cache could have answered with.
    OtherStatus,
    /// It doesn't have the format.
    Bad,
}

impl Format {
    /// All formats, the strictest first.
    const ALL: [Self; 3] = [Self::Ncsa, Self::Json, Self::Plain];

    /// The format of most of the first thousand lines; `None` if no line has any.
    pub fn detect(text: &[u8]) -> Option<Self> {
        const LINES_MAX: usize = 1000;
        let mut scratch = Vec::new();
        let mut best = (0, None);
        for format in Self::ALL {
            let good = lines(text).take(LINES_MAX).filter(|line| format.parse(line, &mut scratch) != Line::Bad).count();
            if good > best.0 {
                best = (good, Some(format));
            }
        }
        best.1
    }

    /// Parses one line. `scratch` holds a key that isn't contiguous in the line. A line with a key of over
    /// 65,535 bytes, which no volume takes, is bad. A size above 2^48 counts as 2^48.
    pub fn parse<'a>(self, line: &'a [u8], scratch: &'a mut Vec<u8>) -> Line<'a> {
        match self {
            Self::Ncsa => ncsa(line),
            Self::Json => json_line::parse(line, scratch),
            Self::Plain => plain(line),
        }
    }
}

/// The non-empty lines of a text, without line ends.
pub fn lines(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let end = memchr(b'\n', text).unwrap_or(text.len());
        let line = &text[..end];
        text = text.get(end + 1..).unwrap_or_default();
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    })
    .filter(|line| !line.is_empty())
}

/// Whether a cache could have answered with this status. That includes the statuses that HTTP lets a cache store
/// (RFC 9110, 15.1), if they answer a GET successfully or permanently, and 304, which tells the client that it
/// has the response.
pub(crate) fn counts(status: u64) -> bool {
    matches!(status, 200 | 203 | 204 | 206 | 300 | 301 | 304 | 308 | 404 | 410)
}

/// The content of a line with these fields.
pub(crate) fn judge<'a>(method: &[u8], status: u64, key: &'a [u8], bytes: u64) -> Line<'a> {
    if !counts(status) {
        Line::OtherStatus
    } else if method != b"GET" {
        Line::OtherMethod
    } else if key.is_empty() || key.len() > KEY_BYTES_MAX {
        Line::Bad
    } else {
        Line::Request { key, bytes: bytes.min(BYTES_MAX) }
    }
}

/// Parses `host ident user [time] "GET /target HTTP/1.1" 200 1234`, and ignores the rest.
fn ncsa(line: &[u8]) -> Line<'_> {
    // A user's name may contain anything, so the request is the first quoted text after the time.
    let Some(open) = memchr_iter(b'"', line).find(|at| line[..*at].ends_with(b"] ")) else { return Line::Bad };
    let rest = &line[open + 1..];
    // A backslash precedes a quote inside the request.
    let Some(close) = memchr_iter(b'"', rest).find(|at| !rest[..*at].ends_with(b"\\")) else { return Line::Bad };
    let (request, rest) = (&rest[..close], &rest[close + 1..]);
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let Some(status) = fields.next().and_then(number) else { return Line::Bad };
    let Some(bytes) = fields.next().and_then(|field| if field == b"-" { Some(0) } else { number(field) }) else {
        return Line::Bad;
    };
    let Some((method, target)) = method_and_target(request) else {
        // The bytes were no request, as the status shows.
        return if counts(status) { Line::Bad } else { Line::OtherStatus };
    };
    judge(method, status, target, bytes)
}

/// Method and target of `GET /target HTTP/1.1`, or of the older form without a version.
pub(crate) fn method_and_target(request: &[u8]) -> Option<(&[u8], &[u8])> {
    let (method, rest) = request.split_at(memchr(b' ', request)?);
    let rest = &rest[1..];
    let target = match memrchr(b' ', rest) {
        Some(space) if rest[space + 1..].starts_with(b"HTTP/") => &rest[..space],
        _ => rest,
    };
    (!method.is_empty() && !target.is_empty()).then_some((method, target))
}

/// `key size`
fn plain(line: &[u8]) -> Line<'_> {
    let mut fields = line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|field| !field.is_empty());
    match (fields.next(), fields.next().and_then(number), fields.next()) {
        (Some(key), Some(bytes), None) => judge(b"GET", 200, key, bytes),
        _ => Line::Bad,
    }
}

/// A number of decimal digits only.
pub(crate) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: Format, line: &str) -> Option<(String, u64)> {
        match format.parse(line.as_bytes(), &mut Vec::new()) {
            Line::Request { key, bytes } => Some((String::from_utf8_lossy(key).into_owned(), bytes)),
            _ => None,
        }
    }

    fn is(format: Format, line: &str, what: &Line<'_>) -> bool {
        format.parse(line.as_bytes(), &mut Vec::new()) == *what
    }

    #[test]
    fn common_and_combined_lines_give_target_and_bytes() {
        let common = r#"::1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326"#;
        assert_eq!(parse(Format::Ncsa, common), Some(("/a?b=c".into(), 2326)));
        let combined = format!(r#"{common} "http://example.org/" "Mozilla/5.0 (\"x\")""#);
        assert_eq!(parse(Format::Ncsa, &combined), Some(("/a?b=c".into(), 2326)));
        let odd = r#"h - "mad" hatter [t] "GET /a \"b\" c HTTP/1.1" 304 -"#;
        assert_eq!(parse(Format::Ncsa, odd), Some((r#"/a \"b\" c"#.into(), 0)));
        assert_eq!(parse(Format::Ncsa, r#"h - - [t] "GET /old" 200 5"#), Some(("/old".into(), 5)));
    }

    #[test]
    fn only_successful_gets_count() {
        assert!(is(Format::Ncsa, r#"h - - [t] "POST / HTTP/1.1" 200 5"#, &Line::OtherMethod));
        assert!(is(Format::Ncsa, r#"h - - [t] "GET / HTTP/1.1" 500 5"#, &Line::OtherStatus));
        assert!(is(Format::Ncsa, r#"h - - [t] "\x16\x03" 400 5"#, &Line::OtherStatus));
        assert!(is(Format::Ncsa, r#"h - - [t] "" 400 0"#, &Line::OtherStatus));
    }

    #[test]
    fn what_is_no_line_is_bad() {
        for line in [
            "",
            "x",
            "\"",
            "] \"",
            "h - - [t] \"GET / HTTP/1.1",
            "h - - [t] \"GET / HTTP/1.1\"",
            r#"h - - [t] "GET / HTTP/1.1" 200"#,
            r#"h - - [t] "GET / HTTP/1.1" 200 x"#,
            r#"h - - [t] "GET / HTTP/1.1" 99999999999999999999 5"#,
            r#"h - - [t] "-" 200 5"#,
        ] {
            assert!(is(Format::Ncsa, line, &Line::Bad), "{line}");
        }
        for line in ["", "key", "key 5 6", "key -5", "key five"] {
            assert!(is(Format::Plain, line, &Line::Bad), "{line}");
        }
    }

    #[test]
    fn the_format_is_what_most_lines_have() {
        assert_eq!(Format::detect(b"a 1\nb 2\n"), Some(Format::Plain));
        assert_eq!(Format::detect(b"broken\nh - - [t] \"GET / HTTP/1.1\" 200 5\n"), Some(Format::Ncsa));
        assert_eq!(Format::detect(b"{\"uri\":\"/\",\"size\":5}\r\n"), Some(Format::Json));
        assert_eq!(Format::detect(b"nothing of\nthe kind at all\n"), None);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        assert_eq!(lines(b"a\r\n\nb").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
