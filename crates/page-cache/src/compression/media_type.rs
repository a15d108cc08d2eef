//! Patterns of media types.

use std::fmt;
use std::str::FromStr;

/// A media type without parameters, or all types that begin and end as it does around its `*`. Letters match in either case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypePattern {
    before: String,
    /// What follows the `*`. None: there is no `*`.
    after: Option<String>,
}

impl TypePattern {
    /// Whether a type without parameters matches.
    pub fn matches(&self, media_type: &str) -> bool {
        let (found, before) = (media_type.as_bytes(), self.before.as_bytes());
        let Some(after) = self.after.as_ref().map(String::as_bytes) else {
            return found.eq_ignore_ascii_case(before);
        };
        found.len() >= before.len() + after.len()
            && found[..before.len()].eq_ignore_ascii_case(before)
            && found[found.len() - after.len()..].eq_ignore_ascii_case(after)
    }
}

impl FromStr for TypePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (before, after) = match text.split_once('*') {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        if after.is_some_and(|after| after.contains('*')) {
            return Err(format!("`{text}` has several `*`; a pattern has one, as in text/* or *+json"));
        }
        if text.contains(|letter: char| letter == ';' || letter.is_whitespace()) {
            return Err(format!("`{text}` can never match; parameters such as a charset don't count"));
        }
        if after.is_none() && !text.contains('/') {
            return Err(format!("`{text}` can never match; a type has two parts, such as text/html"));
        }
        Ok(Self { before: before.to_ascii_lowercase(), after: after.map(str::to_ascii_lowercase) })
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.before)?;
        match &self.after {
            Some(after) => write!(to, "*{after}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_the_whole_type() {
        for (pattern, media_type, expected) in [
            ("text/*", "text/html", true),
            ("text/*", "TEXT/html", true),
            ("text/*", "image/text/", false),
            ("*+json", "application/ld+json", true),
            ("*+json", "+jso", false),
            ("*", "image/png", true),
            ("a/*a", "a/a", true),
            ("a/*a", "a/", false),
            ("Application/JSON", "application/json", true),
            ("application/json", "application/json5", false),
        ] {
            let parsed: TypePattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(media_type), expected, "{pattern} {media_type}");
            assert_eq!(parsed.to_string(), pattern.to_lowercase());
        }
    }

    #[test]
    fn what_can_never_match_is_no_pattern() {
        for text in ["", "text", "text/html; charset=utf-8", "text /html", "*/*", "text/html;q=1"] {
            text.parse::<TypePattern>().unwrap_err();
        }
    }
}
