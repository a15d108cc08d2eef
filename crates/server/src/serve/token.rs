//! Bearer tokens (RFC 6750), for the administration at a loopback address and for `PURGE`.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use subtle::ConstantTimeEq as _;

/// A secret word.
pub(crate) struct Token(String);

impl Token {
    /// Reads the token in a file, and warns if every user may read the file.
    ///
    /// # Errors
    /// The system's, and [`io::ErrorKind::InvalidData`] if the file holds no token.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        warn_of_readers(path)?;
        Self::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file holds no token"))
    }

    /// One word of printable ASCII, with white space around it.
    fn parse(text: &str) -> Option<Self> {
        let token = text.trim_ascii();
        let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self(token.to_owned()))
    }

    /// Whether a request has the token. The time of the comparison reveals only the token's length.
    pub(crate) fn is_shown_by(&self, fields: &HeaderMap) -> bool {
        let mut values = fields.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let value = value.as_bytes();
        let Some(end) = value.iter().position(|byte| *byte == b' ') else { return false };
        let (scheme, shown) = value.split_at(end);
        scheme.eq_ignore_ascii_case(b"bearer") && self.is(shown.trim_ascii())
    }

    /// Whether this is the token. The time of the comparison reveals only the token's length.
    pub(crate) fn is(&self, shown: &[u8]) -> bool {
        shown.ct_eq(self.0.as_bytes()).into()
    }
}

/// Warns if every user may read a file with a secret.
///
/// # Errors
/// The system's.
pub(crate) fn warn_of_readers(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.permissions().mode() & 0o007 != 0 {
        tracing::warn!("every user of this machine can read the token in {0}; run `chmod 600 {0}`", path.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word() {
        for text in ["", " \n", "two words", "caf\u{e9}", "a\u{0}"] {
            assert!(Token::parse(text).is_none(), "{text:?}");
        }
        let token = Token::parse("secret\n").unwrap();
        let is_shown = |values: &[&str]| {
            let fields = values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap())).collect();
            token.is_shown_by(&fields)
        };
        assert!(is_shown(&["Bearer secret"]) && is_shown(&["bearer  secret"]));
        for values in [
            &[][..],
            &["secret"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer secre"],
            &["Bearer secret2"],
            &["Basic secret"],
            &["Bearer secret", "Bearer secret"],
        ] {
            assert!(!is_shown(values), "{values:?}");
        }
    }
}
