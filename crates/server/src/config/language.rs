//! The languages of a site: `accept_language`.

use std::fmt;

use super::value::written_as_text;

/// A language as `Accept-Language` names it: `de`, `de-AT`, `zh-Hant` (RFC 5646, section 2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageTag(pub String);

impl std::str::FromStr for LanguageTag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_subtag =
            |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let first = text.split('-').next().unwrap_or_default();
        if text.split('-').all(is_subtag) && first.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not a language; give one such as de or pt-BR"))
        }
    }
}

impl fmt::Display for LanguageTag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

written_as_text! {
    LanguageTag: "a language such as \"de\" or \"pt-BR\"",
}
