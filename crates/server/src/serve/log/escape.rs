//! Escapes bytes of clients for the log: they can't end a field or a line, or control a terminal.

use std::io::Write as _;

/// How values of clients are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// As a part of a text between quotes.
    Quoted,
    /// As a part of a JSON string.
    Json,
}

impl Escape {
    pub(super) fn push(self, line: &mut Vec<u8>, text: &[u8]) {
        match self {
            Self::Quoted => push_quoted(line, text),
            Self::Json => push_json(line, text),
        }
    }

    /// The same for a text that may stand without quotes.
    pub(super) fn push_bare(self, line: &mut Vec<u8>, text: &[u8]) {
        match self {
            Self::Quoted => push_bare(line, text),
            Self::Json => push_json(line, text),
        }
    }
}

/// Appends a text between quotes: quotes, backslashes, and all other bytes than printable ASCII as `\xHH`.
fn push_quoted(line: &mut Vec<u8>, text: &[u8]) {
    push(line, text, |byte| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~'));
}

/// Appends a text without quotes: as between quotes, and blanks as `\x20`.
fn push_bare(line: &mut Vec<u8>, text: &[u8]) {
    push(line, text, |byte| matches!(byte, b'!' | b'#'..=b'[' | b']'..=b'~'));
}

fn push(line: &mut Vec<u8>, text: &[u8], is_plain: impl Fn(u8) -> bool) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| !is_plain(*byte)) {
        line.extend_from_slice(&rest[..at]);
        // Never fails on a vector.
        let _ = write!(line, "\\x{:02X}", rest[at]);
        rest = &rest[at + 1..];
    }
    line.extend_from_slice(rest);
}

/// Appends a part of a JSON string (RFC 8259, section 7). Bytes that aren't UTF-8 become U+FFFD, and all control characters are escaped.
fn push_json(line: &mut Vec<u8>, text: &[u8]) {
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|letter: char| matches!(letter, '"' | '\\') || letter.is_control()) {
            line.extend_from_slice(&rest.as_bytes()[..at]);
            let mut letters = rest[at..].chars();
            if let Some(letter) = letters.next() {
                // Control characters have sixteen bits at most.
                let _ = write!(line, "\\u{:04x}", u32::from(letter));
            }
            rest = letters.as_str();
        }
        line.extend_from_slice(rest.as_bytes());
        if !chunk.invalid().is_empty() {
            line.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(push: fn(&mut Vec<u8>, &[u8]), text: &[u8]) -> String {
        let mut line = Vec::new();
        push(&mut line, text);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn no_bytes_of_a_client_end_a_field_or_a_line() {
        for (text, quoted, bare) in [
            (&b"plain/text?a=b"[..], "plain/text?a=b", "plain/text?a=b"),
            (b"", "", ""),
            (b"a b", "a b", r"a\x20b"),
            (b"\" 200 5 \"", r"\x22 200 5 \x22", r"\x22\x20200\x205\x20\x22"),
            (b"\\", r"\x5C", r"\x5C"),
            (b"a\r\nb\t\0", r"a\x0D\x0Ab\x09\x00", r"a\x0D\x0Ab\x09\x00"),
            (b"\x1b[2J\x7f", r"\x1B[2J\x7F", r"\x1B[2J\x7F"),
            ("caf\u{e9}\u{9b}".as_bytes(), r"caf\xC3\xA9\xC2\x9B", r"caf\xC3\xA9\xC2\x9B"),
            (b"\xff", r"\xFF", r"\xFF"),
        ] {
            assert_eq!(pushed(push_quoted, text), quoted);
            assert_eq!(pushed(push_bare, text), bare);
        }
    }

    #[test]
    fn a_json_string_reads_as_what_was_written() {
        for text in ["", "plain", "a \"b\" \\c", "\r\n\t\0\u{1b}\u{7f}\u{9b}", "caf\u{e9} \u{1f300}", "\\x41"] {
            let line = format!("\"{}\"", pushed(push_json, text.as_bytes()));
            assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_marked() {
        let line = format!("\"{}\"", pushed(push_json, b"a\xff\xc3b\x22"));
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), "a\u{fffd}\u{fffd}b\"");
    }
}
