//! The values of `redirect` and `redirect_status`. A client chooses neither the host of a target nor a line of the response: the
//! host is in the configuration alone, and what comes from the request is escaped.

use std::fmt;

use http::StatusCode;
use http::uri::Authority;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::value::written_as_text;
use crate::host_name::is_host;

/// Bytes of a path or query that no `Location` may have. Browsers take a backslash for a slash.
const UNSAFE: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\').add(b'^').add(b'`').add(b'{').add(b'|').add(b'}');

/// The target of a redirect, with placeholders for parts of the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedirectTarget {
    text: String,
    pieces: Vec<Piece>,
    /// It has no host: clients resolve it against the address of the request.
    is_relative: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `{path}`
    Path,
    /// `{query}`, with its question mark.
    Query,
    /// `{rest}`: the path behind the rule's prefix.
    Rest,
}

/// The parts of a request that a target can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Requested<'a> {
    /// It begins with a slash.
    pub(crate) path: &'a str,
    /// Without its question mark.
    pub(crate) query: Option<&'a str>,
    /// The part of the path behind the prefix.
    pub(crate) rest: &'a str,
}

impl RedirectTarget {
    /// Whether it has `{rest}`.
    pub fn has_rest(&self) -> bool {
        self.pieces.contains(&Piece::Rest)
    }

    /// The `Location` for a request.
    pub(crate) fn location(&self, requested: Requested<'_>) -> String {
        let mut location = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => location.push_str(text),
                Piece::Path => location.extend(utf8_percent_encode(requested.path, UNSAFE)),
                Piece::Query => {
                    if let Some(query) = requested.query {
                        location.push('?');
                        location.extend(utf8_percent_encode(query, UNSAFE));
                    }
                }
                Piece::Rest => {
                    location.extend(utf8_percent_encode(requested.rest.trim_start_matches('/'), UNSAFE));
                }
            }
        }
        // A host would follow two slashes.
        if self.is_relative && location.starts_with("//") {
            location.replace_range(..location.len() - location.trim_start_matches('/').len(), "/");
        }
        location
    }
}

impl std::str::FromStr for RedirectTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_safe = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`|".contains(&byte);
        if !text.bytes().all(is_safe) {
            return Err(format!("`{text}` is not an address; write other characters as escapes, such as %20"));
        }
        let behind_scheme = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_relative = behind_scheme.is_none();
        let behind_host = match behind_scheme {
            Some(behind) => behind_host(text, behind)?,
            None => text,
        };
        let is_begun_by_path = ["/", "{path}", "{uri}"].iter().any(|start| behind_host.starts_with(start));
        let has_no_path = !is_relative && ["", "{query}"].contains(&behind_host);
        if !is_begun_by_path && !has_no_path || is_relative && text.starts_with("//") {
            return Err(format!(
                "`{text}` is not the target of a redirect; give \"https://\" and a host, then a path or {{uri}}, or a path of this site"
            ));
        }
        Ok(Self { text: text.to_owned(), pieces: pieces(text)?, is_relative })
    }
}

/// The part of `behind`, which follows the scheme of `text`, that follows the host.
fn behind_host<'a>(text: &str, behind: &'a str) -> Result<&'a str, String> {
    let end = behind.find(['/', '?', '#', '{']).unwrap_or(behind.len());
    let (authority, behind_host) = behind.split_at(end);
    let is_sound = authority
        .parse::<Authority>()
        .is_ok_and(|found| is_host(&found.host().to_ascii_lowercase()) && !authority.contains('@'));
    if is_sound {
        Ok(behind_host)
    } else {
        Err(format!("`{text}` has no valid host; a redirect names its host itself"))
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, after) =
            behind.split_once('}').ok_or_else(|| format!("`{text}` has a brace without its other one"))?;
        push_text(text, before, &mut pieces)?;
        match name {
            "path" => pieces.push(Piece::Path),
            "query" => pieces.push(Piece::Query),
            "uri" => pieces.extend([Piece::Path, Piece::Query]),
            "rest" => pieces.push(Piece::Rest),
            _ => return Err(format!("`{{{name}}}` is not known; known are {{path}}, {{query}}, {{uri}} and {{rest}}")),
        }
        rest = after;
    }
    push_text(text, rest, &mut pieces)?;
    Ok(pieces)
}

fn push_text(whole: &str, text: &str, pieces: &mut Vec<Piece>) -> Result<(), String> {
    if text.contains('}') {
        return Err(format!("`{whole}` has a brace without its other one"));
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
    Ok(())
}

impl fmt::Display for RedirectTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

written_as_text! {
    RedirectTarget: "an address such as \"https://example.org{uri}\"",
}

/// The status of a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedirectStatus(pub StatusCode);

impl Default for RedirectStatus {
    fn default() -> Self {
        Self(StatusCode::FOUND)
    }
}

impl<'de> Deserialize<'de> for RedirectStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let status = u16::try_from(number).ok().filter(|status| [301, 302, 303, 307, 308].contains(status));
        let status = status.and_then(|status| StatusCode::from_u16(status).ok());
        status.map(Self).ok_or_else(|| {
            D::Error::custom(format!("{number} is not the status of a redirect; give 301, 302, 303, 307 or 308"))
        })
    }
}

impl Serialize for RedirectStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u16(self.0.as_u16())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(target: &str, path: &str, query: Option<&str>, rest: &str) -> String {
        target.parse::<RedirectTarget>().unwrap().location(Requested { path, query, rest })
    }

    #[test]
    fn a_target_takes_parts_of_the_request() {
        for (target, expected) in [
            ("https://b.example{uri}", "https://b.example/a/b?c=d"),
            ("https://b.example:8443{path}", "https://b.example:8443/a/b"),
            ("http://b.example", "http://b.example"),
            ("https://b.example{query}", "https://b.example?c=d"),
            ("https://b.example/new/{rest}{query}", "https://b.example/new/b?c=d"),
            ("{path}/", "/a/b/"),
            ("/x/{rest}", "/x/b"),
            ("/de{uri}", "/de/a/b?c=d"),
            ("/fixed#part", "/fixed#part"),
        ] {
            assert_eq!(location(target, "/a/b", Some("c=d"), "b"), expected, "{target}");
        }
    }

    #[test]
    fn a_client_can_not_choose_the_host() {
        for target in ["{path}", "{uri}", "/{rest}", "/{path}", "/{query}{path}", "/{rest}{path}"] {
            for path in ["//evil.example", "///evil.example", "/\\evil.example"] {
                let found = location(target, path, None, path);
                assert!(
                    found.starts_with('/') && !found.starts_with("//") && !found.contains('\\'),
                    "{target} {found}"
                );
            }
        }
        let found = location("https://b.example{uri}", "/@evil.example", Some("@evil.example"), "");
        assert_eq!(found, "https://b.example/@evil.example?@evil.example");
        for wrong in [
            "https://{host}/",
            "https://{path}",
            "https://b.example{rest}",
            "https://b.example{query}{rest}",
            "https://b.example.{rest}",
            "https://user@b.example/",
            "https:///a",
            "//b.example/",
            "{query}",
            "{rest}",
            "b.example/",
            "javascript:alert(1)",
            "ftp://b.example/",
        ] {
            assert!(wrong.parse::<RedirectTarget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_of_the_request_ends_the_field() {
        let found = location("/x/{rest}{query}", "/", Some("a=\"<>"), "a b\r\nSet-Cookie: c%25\u{e9}");
        assert_eq!(found, "/x/a%20b%0D%0ASet-Cookie:%20c%25%C3%A9?a=%22%3C%3E");
        for wrong in ["/a b", "/a\r\nb", "/{path", "/path}", "/{paht}", "/\u{e9}"] {
            assert!(wrong.parse::<RedirectTarget>().is_err(), "{wrong}");
        }
    }
}
