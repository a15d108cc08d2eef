//! Standard output, buffered, and keys as text.

use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write};

use crate::Error;

/// Runs `write` over a buffered standard output and flushes it.
///
/// Every failure becomes [`Error::Output`], so that a reader who goes away early is told apart from a real error.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut output = BufWriter::new(io::stdout().lock());
    write(&mut output).and_then(|()| output.flush()).map_err(Error::Output)
}

/// A key as one line of text: printable UTF-8 as it is, a backslash doubled, every other byte as `\xNN`.
///
/// No two keys give the same text, and no key can command a terminal.
pub(crate) fn key_text(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for chunk in key.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter == '\\' {
                text.push_str("\\\\");
            } else if is_printable(letter) {
                text.push(letter);
            } else {
                push_bytes(&mut text, letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        push_bytes(&mut text, chunk.invalid());
    }
    text
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a string can't fail.
        let _ = write!(text, "\\x{byte:02x}");
    }
}

/// Control and line-breaking characters, and those that turn the direction of what follows, are not.
fn is_printable(letter: char) -> bool {
    !letter.is_control()
        && !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::key_text;

    #[test]
    fn a_key_is_one_harmless_line() {
        assert_eq!(key_text(b"/index.html"), "/index.html");
        assert_eq!(key_text("caf\u{e9}".as_bytes()), "caf\u{e9}");
        assert_eq!(key_text(b"a\nb\x1b[2J"), "a\\x0ab\\x1b[2J");
        assert_eq!(key_text(b"\xff\\"), "\\xff\\\\");
        assert_eq!(key_text("\u{202e}".as_bytes()), "\\xe2\\x80\\xae");
    }
}
