//! Exceptions of a site: `[[site.rule]]`, and the types of its texts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::compression::Compress;
use super::names::{FieldName, FieldValue, Glob, MethodName};
use super::redirect::{RedirectStatus, RedirectTarget};
use super::value::{Period, StatusKey, Statuses, Window, written_as_text};

/// The most rules of a site, with those of its preset.
pub const RULES_MAX: usize = 128;

/// `[[site.rule]]`: conditions and actions. All rules that match apply, in order; later ones win.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// Name of the rule in the log. The numbers of unnamed rules also count those of a preset.
    ///
    /// Default: `rule-1`, `rule-2` ...
    ///
    /// Example: `"no-admin"`
    pub name: Option<RuleName>,

    /// The path matches one of these.
    ///
    /// Default: any
    ///
    /// Example: `["/blog/*", "*.html"]`
    pub path: Option<Spanned<Vec<PathGlob>>>,
    /// The path begins with one of these texts: `/shop` also matches `/shopping`, and `/shop/` doesn't match `/shop`.
    ///
    /// Default: any
    ///
    /// Example: `["/admin/"]`
    pub prefix: Option<Spanned<Vec<PathPrefix>>>,
    /// The path's last name ends with a dot and one of these, in any case.
    ///
    /// Default: any
    ///
    /// Example: `["css", "js"]`
    pub extension: Option<Spanned<Vec<Extension>>>,
    /// A query parameter has one of these names; for a pattern with `=`, this name and value.
    ///
    /// Default: any
    ///
    /// Example: `["preview=true", "nonce"]`
    pub query: Option<Spanned<Vec<Glob>>>,
    /// The method is one of these.
    ///
    /// Default: any
    ///
    /// Example: `["GET", "HEAD"]`
    pub method: Option<Spanned<Vec<MethodName>>>,
    /// A cookie has one of these names; for a pattern with `=`, this name and value.
    ///
    /// Default: any
    ///
    /// Example: `["wp-*", "mode=edit"]`
    pub cookie: Option<Spanned<Vec<Glob>>>,
    /// Each of these fields of the request is present and matches.
    ///
    /// Default: any
    ///
    /// Example: `{ "User-Agent" = "*bot*", "X-Preview" = "*" }`
    pub header: Option<Spanned<BTreeMap<FieldName, Glob>>>,
    /// The path matches none of these.
    ///
    /// Default: none
    ///
    /// Example: `["/api/*"]`
    pub unless_path: Option<Spanned<Vec<PathGlob>>>,
    /// No query parameter matches one of these, as for `query`.
    ///
    /// Default: none
    ///
    /// Example: `["do"]`
    pub unless_query: Option<Spanned<Vec<Glob>>>,
    /// No cookie matches one of these, as for `cookie`.
    ///
    /// Default: none
    ///
    /// Example: `["login_*"]`
    pub unless_cookie: Option<Spanned<Vec<Glob>>>,
    /// The response has one of these types. Parameters don't count.
    ///
    /// Default: any
    ///
    /// Example: `["text/html", "image/*"]`
    pub content_type: Option<Spanned<Vec<MediaGlob>>>,
    /// The response has one of these statuses.
    ///
    /// Default: any
    ///
    /// Example: `[200, "4xx"]`
    pub status: Option<Spanned<Vec<Statuses>>>,

    /// Don't answer from the cache, and don't store the response.
    ///
    /// Default: unset
    ///
    /// Example: `true`
    pub bypass: Option<Spanned<bool>>,
    /// Cookies to drop from the request, by name.
    ///
    /// Example: `["PHPSESSID"]`
    pub ignore_cookies: Vec<Glob>,
    /// Don't store the response.
    ///
    /// Default: unset
    ///
    /// Example: `true`
    pub no_store: Option<bool>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `"60s"`
    pub default_ttl: Option<Period>,
    /// TTL, whatever the origin says. It does not make a response storable that the origin forbids to store.
    ///
    /// Default: unset
    ///
    /// Example: `"10s"`
    pub force_ttl: Option<Period>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `"5s"`
    pub ttl_min: Option<Spanned<Period>>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `"1d"`
    pub ttl_max: Option<Spanned<Period>>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `false`
    pub heuristic: Option<bool>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `"30s"`
    pub stale_while_revalidate: Option<Window>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `"1d"`
    pub stale_if_error: Option<Window>,
    /// As in `[site.cache]`, which it overrides.
    ///
    /// Example: `{ 404 = "10s" }`
    pub negative_ttl: BTreeMap<StatusKey, Period>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `true`
    pub ignore_reload: Option<Spanned<bool>>,
    /// As in `[site.cache]`.
    ///
    /// Default: unset
    ///
    /// Example: `true`
    pub store_set_cookie: Option<bool>,
    /// As in `[[site]]`.
    ///
    /// Default: unset
    ///
    /// Example: `false`
    pub compress: Option<Spanned<Compress>>,
    /// Added to those of `[site.cache]`. Eyewall removes these fields from interim responses whatever `content_type`
    /// and `status` say.
    ///
    /// Example: `["Set-Cookie"]`
    pub strip_response: Vec<FieldName>,
    /// Tags of stored responses, added to those that the origin gives.
    ///
    /// Example: `["blog"]`
    pub tags: Vec<Tag>,

    /// Redirect the client to this address. `{path}` stands for the path, `{query}` for the query with its question mark,
    /// `{uri}` for both, and `{rest}` for the path behind the rule's `prefix`. An address without a host is one of the same site.
    ///
    /// Default: none
    ///
    /// Example: `"https://example.org{uri}"`
    pub redirect: Option<Spanned<RedirectTarget>>,
    /// The status of the redirect: 301, 302, 303, 307 or 308.
    ///
    /// Default: `302`
    ///
    /// Example: `301`
    pub redirect_status: Option<Spanned<RedirectStatus>>,
    /// Fields to set in responses when Eyewall sends them. Stored responses keep the fields of the origin.
    ///
    /// Example: `{ "X-Frame-Options" = "DENY" }`
    pub set_headers: BTreeMap<FieldName, Spanned<FieldValue>>,
    /// Fields to add to responses beside those of the same name.
    ///
    /// Example: `{ "Link" = "</style.css>; rel=preload; as=style" }`
    pub add_headers: BTreeMap<FieldName, Spanned<FieldValue>>,
    /// Fields to remove from responses when Eyewall sends them. `strip_response` also keeps them out of the volume.
    ///
    /// Example: `["Via"]`
    pub remove_headers: Vec<Spanned<FieldName>>,
    /// Fields to set in requests before Eyewall selects a variant and asks the origin. They are not part of the key.
    ///
    /// Example: `{ "X-Device" = "phone" }`
    pub set_request_headers: BTreeMap<FieldName, Spanned<FieldValue>>,
    /// Fields to remove from requests before Eyewall selects a variant and asks the origin.
    ///
    /// Example: `["Accept-Language"]`
    pub remove_request_headers: Vec<Spanned<FieldName>>,
}

/// The keys of a rule, in the order in which `eyewall check` shows them.
pub const RULE_KEYS: [&str; 36] = [
    "name",
    "path",
    "prefix",
    "extension",
    "query",
    "method",
    "cookie",
    "header",
    "unless_path",
    "unless_query",
    "unless_cookie",
    "content_type",
    "status",
    "bypass",
    "ignore_cookies",
    "no_store",
    "default_ttl",
    "force_ttl",
    "ttl_min",
    "ttl_max",
    "heuristic",
    "stale_while_revalidate",
    "stale_if_error",
    "negative_ttl",
    "ignore_reload",
    "store_set_cookie",
    "compress",
    "strip_response",
    "tags",
    "redirect",
    "redirect_status",
    "set_headers",
    "add_headers",
    "remove_headers",
    "set_request_headers",
    "remove_request_headers",
];

/// The name of a rule: a token, so that it can stand in `Cache-Status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleName(pub String);

/// A pattern for paths as rules see them: escapes decoded, slashes in a row merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGlob(pub Glob);

/// The beginning of such a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPrefix(pub String);

/// An extension, in lower case and without its dot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension(pub String);

/// A pattern for media types, `image/*`; parameters such as a charset are not part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaGlob(pub Glob);

/// A tag for purges: 1 to 255 bytes without white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(pub String);

impl std::str::FromStr for RuleName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_token = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if is_token && text.len() <= 64 {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not the name of a rule; give a letter, then letters, digits, `-`, `_` or `.`"))
        }
    }
}

impl std::str::FromStr for PathGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with(['/', '*', '?', '[', '{']) {
            return Err(never(text, "paths begin with a slash"));
        }
        as_rules_see_it(text)?;
        text.parse().map(Self)
    }
}

impl std::str::FromStr for PathPrefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with('/') {
            return Err(never(text, "paths begin with a slash"));
        }
        if text.contains('*') {
            return Err(format!(
                "`{text}` has wildcards, which a prefix doesn't support; give the beginning alone, or use `path` for a pattern"
            ));
        }
        if text.contains('?') {
            return Err(never(text, "a path has no query; use `query`"));
        }
        as_rules_see_it(text)?;
        Ok(Self(text.to_owned()))
    }
}

/// Rules see the path after decoding, with `.` and `..` resolved and slashes in a row merged.
fn as_rules_see_it(text: &str) -> Result<(), String> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if text.contains("//") {
        return Err(never(text, "Eyewall merges slashes in a row first"));
    }
    if text.split('%').skip(1).any(is_escape) {
        return Err(never(text, "Eyewall decodes escapes first: write the decoded character"));
    }
    if text.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(never(text, "Eyewall resolves `.` and `..` first"));
    }
    Ok(())
}

fn never(text: &str, why: &str) -> String {
    format!("`{text}` can never match; {why}")
}

impl std::str::FromStr for Extension {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(bare) = text.strip_prefix('.') {
            return Err(format!("`{text}` can never match; give it without the dot, `{bare}`"));
        }
        if text.is_empty() || text.contains(['/', '.', '*']) {
            return Err(format!("`{text}` is not an extension; give one such as css"));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl std::str::FromStr for MediaGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(';') {
            return Err(never(text, "rules ignore parameters such as a charset"));
        }
        if !text.contains('/') && !text.contains(['*', '{']) {
            return Err(never(text, "a type has two parts, such as text/html"));
        }
        text.parse().map(Self)
    }
}

impl std::str::FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if (1..=255).contains(&text.len())
            && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control())
        {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not a tag; give 1 to 255 bytes without white space"))
        }
    }
}

macro_rules! shown_as_inner {
    ($($name:ty),+) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(formatter)
            }
        }
    )+};
}

shown_as_inner!(RuleName, PathGlob, PathPrefix, Extension, MediaGlob, Tag);

written_as_text! {
    RuleName: "a name such as \"no-admin\"",
    PathGlob: "a pattern such as \"/blog/*\"",
    PathPrefix: "the beginning of a path, such as \"/admin/\"",
    Extension: "an extension such as \"css\"",
    MediaGlob: "a media type such as \"text/html\"",
    Tag: "a tag",
}
