//! The `Cache-Control` field (RFC 9111, section 5.2).

use http::HeaderMap;
use http::header::CACHE_CONTROL;

/// The directives that matter to this cache, of a request or of a response.
///
/// `private` and `no-cache` that name fields are taken as if they named none, as RFC 9111 allows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CacheControl {
    pub(crate) no_store: bool,
    pub(crate) no_cache: bool,
    pub(crate) private: bool,
    /// Seconds. A value that is no number counts as 0, and of several the smallest counts.
    pub(crate) max_age: Option<u64>,
    pub(crate) s_maxage: Option<u64>,
}

impl CacheControl {
    pub(crate) fn of(fields: &HeaderMap) -> Self {
        let mut control = Self::default();
        for value in fields.get_all(CACHE_CONTROL) {
            for directive in split_quoted(value.as_bytes()) {
                control.take(directive);
            }
        }
        control
    }

    fn take(&mut self, directive: &[u8]) {
        let (name, argument) = match directive.iter().position(|byte| *byte == b'=') {
            Some(at) => (&directive[..at], Some(&directive[at + 1..])),
            None => (directive, None),
        };
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"max-age" => keep_smallest(&mut self.max_age, seconds(argument)),
            b"s-maxage" => keep_smallest(&mut self.s_maxage, seconds(argument)),
            _ => {}
        }
    }
}

fn keep_smallest(kept: &mut Option<u64>, seconds: u64) {
    *kept = Some(kept.map_or(seconds, |kept| kept.min(seconds)));
}

/// Delta-seconds, quoted or not. A number too large for 64 bits is a very long time.
fn seconds(argument: Option<&[u8]>) -> u64 {
    let digits = argument.unwrap_or_default().trim_ascii();
    let digits = digits.strip_prefix(b"\"").and_then(|digits| digits.strip_suffix(b"\"")).unwrap_or(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return 0;
    }
    digits.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}

/// Splits a list at its commas, but not at those within quotation marks.
fn split_quoted(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    list.split(move |byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> CacheControl {
        let mut fields = HeaderMap::new();
        fields.insert(CACHE_CONTROL, text.parse().unwrap());
        CacheControl::of(&fields)
    }

    #[test]
    fn names_have_no_case_and_arguments_may_be_quoted() {
        let control = parse("Public, MAX-AGE=\"60\" , s-maxage=5");
        assert_eq!(control, CacheControl { max_age: Some(60), s_maxage: Some(5), ..CacheControl::default() });
    }

    #[test]
    fn a_directive_within_quotation_marks_is_none() {
        let control = parse("ext=\"a, no-store, \\\" private\", max-age=1");
        assert_eq!(control, CacheControl { max_age: Some(1), ..CacheControl::default() });
    }

    #[test]
    fn private_with_fields_is_private() {
        assert!(parse("private=\"x-account, set-cookie\", max-age=9").private);
    }

    #[test]
    fn what_is_no_number_counts_as_stale_and_of_two_the_smaller_counts() {
        assert_eq!(parse("max-age=soon").max_age, Some(0));
        assert_eq!(parse("max-age=-1").max_age, Some(0));
        assert_eq!(parse("max-age").max_age, Some(0));
        assert_eq!(parse("max-age=60, max-age=5").max_age, Some(5));
        assert_eq!(parse("max-age=99999999999999999999").max_age, Some(u64::MAX));
    }
}
