//! Buffered standard output, colours and when they are used, and keys as text.

use std::fmt::Write as _;
use std::io::{self, BufWriter, StdoutLock, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::Error;

/// Names of columns and of things.
pub(crate) const HEADING: Style = Style::new().bold();
/// Good results and recommendations.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Warnings.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default();
/// Errors.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The curve of requests.
pub(crate) const OBJECTS: Style = AnsiColor::Cyan.on_default();
/// The curve of bytes.
pub(crate) const BYTES: Style = AnsiColor::Yellow.on_default();

/// Runs `write` over a buffered standard output for people. Colours are removed unless it is a terminal that shows them.
/// `NO_COLOR` turns them off, `CLICOLOR_FORCE` turns them on for any output.
pub(crate) fn text_to_stdout(
    write: impl FnOnce(&mut BufWriter<AutoStream<StdoutLock<'static>>>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut output = BufWriter::new(AutoStream::auto(io::stdout().lock()));
    write(&mut output).and_then(|()| output.flush()).map_err(Error::Output)
}

/// Writes an error or a warning to standard error, with the same rule for colours.
pub(crate) fn tell(style: Style, what: &str, words: &str) {
    // A failure here means that standard error is gone.
    let _ = writeln!(anstream::stderr(), "{style}{what}:{style:#} {words}");
}

/// Runs `write` over a buffered standard output and flushes it. Bytes are written unchanged, as values need it.
///
/// Every failure becomes [`Error::Output`], by which the caller recognises a reader that closed the output early.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut BufWriter<StdoutLock<'static>>) -> io::Result<()>,
) -> Result<(), Error> {
    let mut output = BufWriter::new(io::stdout().lock());
    write(&mut output).and_then(|()| output.flush()).map_err(Error::Output)
}

/// Writes one JSON object as a line.
pub(crate) fn json_to_stdout(object: &impl Serialize) -> Result<(), Error> {
    // A structure of numbers and strings always has a JSON form.
    let line = serde_json::to_string(object).unwrap_or_default();
    to_stdout(|stdout| writeln!(stdout, "{line}"))
}

/// A key as one line of text: printable UTF-8 unchanged, a backslash doubled, every other byte as `\xNN`.
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

/// False for control characters, line breaks, and characters that change the direction of text.
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
