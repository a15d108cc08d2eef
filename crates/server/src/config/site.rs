//! What the file says of a site: `[[site]]`, `[[site.rule]]` and the tables in them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::names::{CookieName, FieldName, Glob, HostHeader, HostName, HostPattern, MethodName, written_as_text};
use super::presets::Preset;
use super::value::{Period, Size, Statuses, Window, Within};
use crate::serve::OriginUrl;

/// `[[site]]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// The hosts that it answers for.
    pub hosts: Vec<Spanned<HostPattern>>,
    /// Further hosts; their requests are those for the first of `hosts`.
    pub aliases: Vec<Spanned<HostName>>,
    /// The servers behind it, any of which can answer.
    pub origins: Vec<Spanned<OriginUrl>>,
    /// How they are asked.
    pub origin: Option<Spanned<OriginSettings>>,
    /// A folder of files, looked at before the origins.
    pub root: Option<Spanned<PathBuf>>,
    /// Names of the files that stand for their folder, the first that is there.
    pub index: Option<Spanned<Vec<String>>>,
    /// Which symbolic links of the folder are followed.
    pub symlinks: Option<Spanned<Symlinks>>,
    /// Whether names that begin with a dot are served.
    pub dotfiles: Option<Spanned<bool>>,
    /// Whether `name.br`, `name.zst` and `name.gz` are served in the place of `name`.
    pub precompressed: Option<Spanned<bool>>,
    /// Rules that are applied before those of the file.
    pub preset: Option<Preset>,
    /// What tells one entry from another.
    pub key: Key,
    /// What is stored, and for how long.
    pub cache: SiteCache,
    /// Exceptions, in order.
    pub rule: Vec<Spanned<Rule>>,
}

impl Default for Site {
    fn default() -> Self {
        Self {
            hosts: vec![Spanned::new(0..0, HostPattern::Any)],
            aliases: Vec::new(),
            origins: Vec::new(),
            origin: None,
            root: None,
            index: None,
            symlinks: None,
            dotfiles: None,
            precompressed: None,
            preset: None,
            key: Key::default(),
            cache: SiteCache::default(),
            rule: Vec::new(),
        }
    }
}

impl Site {
    /// Names of the files that stand for their folder, in the order in which they are looked for.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        let given = self.index.as_ref().map(|names| names.get_ref().as_slice());
        let default = given.is_none().then_some("index.html");
        given.unwrap_or_default().iter().map(String::as_str).chain(default)
    }

    /// Which symbolic links of the folder are followed.
    pub fn followed_links(&self) -> Symlinks {
        self.symlinks.as_ref().map(|links| *links.get_ref()).unwrap_or_default()
    }

    /// Whether names that begin with a dot are served.
    pub fn serves_dotfiles(&self) -> bool {
        self.dotfiles.as_ref().is_some_and(|yes| *yes.get_ref())
    }

    /// Whether packed files are served in the place of those that are not.
    pub fn serves_precompressed(&self) -> bool {
        self.precompressed.as_ref().is_some_and(|yes| *yes.get_ref())
    }

    /// How its origins are asked.
    pub fn origin_settings(&self) -> OriginSettings {
        self.origin.as_ref().map(|settings| settings.get_ref().clone()).unwrap_or_default()
    }
}

/// Which symbolic links below a root are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// None.
    None,
    /// Those whose target lies below the root.
    #[default]
    Below,
}

/// `[site.origin]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct OriginSettings {
    /// Time to connect.
    pub connect_timeout: Period,
    /// Time for an answer to begin, and for each next piece of it.
    pub timeout: Period,
    /// How often a request of a safe method is tried again.
    pub retries: Within<0, 10>,
    /// Which `Host` it is asked for.
    pub host_header: HostHeader,
    /// How it is known to be well; without it, by the requests alone.
    pub health: Option<Health>,
    /// How `https` origins are known to be who they should be.
    pub tls: Option<Spanned<Tls>>,
}

impl Default for OriginSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Period(Duration::from_secs(5)),
            timeout: Period(Duration::from_secs(30)),
            retries: Within(1),
            host_header: HostHeader::Client,
            health: None,
            tls: None,
        }
    }
}

/// `[site.origin.health]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// What is asked for.
    pub path: TargetPath,
    /// How often.
    pub interval: Period,
    /// How long an answer may take.
    pub timeout: Period,
    /// What a healthy origin answers.
    pub status: Vec<Statuses>,
    /// So many failures in a row make an origin unhealthy.
    pub unhealthy_after: Within<1, 100>,
    /// So many successes in a row make it healthy again.
    pub healthy_after: Within<1, 100>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: TargetPath("/".to_owned()),
            interval: Period(Duration::from_secs(5)),
            timeout: Period(Duration::from_secs(2)),
            status: ["2xx", "3xx"].into_iter().filter_map(|statuses| statuses.parse().ok()).collect(),
            unhealthy_after: Within(3),
            healthy_after: Within(2),
        }
    }
}

/// A path with its query, as it is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPath(pub String);

impl std::str::FromStr for TargetPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with('/') && text.parse::<http::uri::PathAndQuery>().is_ok_and(|path| path.as_str() == text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is no path to ask for; give one such as /health"))
        }
    }
}

impl std::fmt::Display for TargetPath {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// `[site.origin.tls]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificates to trust, in PEM; without it, those of the system.
    pub ca_file: Option<Spanned<PathBuf>>,
    /// The name to ask for and to expect; without it, the host of the address.
    pub server_name: Option<HostName>,
}

/// `[site.key]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    /// Parameters of the query that neither the key nor the origin gets, by name.
    pub strip_query: Vec<Glob>,
    /// Whether the shipped list of tracking parameters is stripped, too.
    pub strip_trackers: bool,
    /// Whether parameters are brought into the order of their names; those of one name keep theirs.
    pub sort_query: bool,
    /// Cookies that tell entries apart.
    pub cookies: Vec<CookieName>,
    /// Fields of the request that tell entries apart.
    pub headers: Vec<Spanned<FieldName>>,
}

/// `[site.cache]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteCache {
    /// Time to live where the origin gives none.
    pub default_ttl: Option<Period>,
    /// No shorter time to live than this.
    pub ttl_min: Option<Spanned<Period>>,
    /// No longer time to live than this.
    pub ttl_max: Option<Spanned<Period>>,
    /// Whether a response that has only `Last-Modified` is fresh for a tenth of its age (RFC 9111, section 4.2.2).
    pub heuristic: bool,
    /// How long a stale response is given while a new one is fetched, where the origin doesn't say (RFC 5861).
    pub stale_while_revalidate: Option<Window>,
    /// How long a stale response is given where the origin fails, where the origin doesn't say (RFC 5861).
    pub stale_if_error: Option<Window>,
    /// Time to live by status, where the origin gives none.
    pub negative_ttl: BTreeMap<StatusKey, Period>,
    /// Whether `no-cache`, `max-age`, `min-fresh` and `Pragma` of clients are ignored.
    pub ignore_reload: bool,
    /// Whether responses with `Set-Cookie` are stored.
    pub store_set_cookie: bool,
    /// Fields that speak to this cache before `Cache-Control`, the first that is there (RFC 9213).
    pub targeted: Vec<FieldName>,
    /// Fields of responses that are neither stored nor passed on.
    pub strip_response: Vec<FieldName>,
    /// The largest object to store; without it, what the volume takes.
    pub object_bytes_max: Option<Size>,
}

impl Default for SiteCache {
    fn default() -> Self {
        Self {
            default_ttl: None,
            ttl_min: None,
            ttl_max: None,
            heuristic: true,
            stale_while_revalidate: None,
            stale_if_error: None,
            negative_ttl: BTreeMap::new(),
            ignore_reload: false,
            store_set_cookie: false,
            targeted: ["cdn-cache-control"].into_iter().filter_map(|name| name.parse().ok()).collect(),
            strip_response: Vec::new(),
            object_bytes_max: None,
        }
    }
}

/// Statuses as the key of a table, where only text can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatusKey(pub Statuses);

impl std::str::FromStr for StatusKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for StatusKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(formatter)
    }
}

/// `[[site.rule]]`: what must hold, and what is done then. All rules that match apply, in order; later ones win.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Rule {
    /// What the log and `Cache-Status` call it.
    pub name: Option<RuleName>,

    /// The path looks like one of these.
    pub path: Option<Spanned<Vec<PathGlob>>>,
    /// The path begins with one of these.
    pub prefix: Option<Spanned<Vec<PathPrefix>>>,
    /// The path's last name ends with a dot and one of these.
    pub extension: Option<Spanned<Vec<Extension>>>,
    /// A parameter of the query has one of these names; with `=`, also the value.
    pub query: Option<Spanned<Vec<Glob>>>,
    /// The method is one of these.
    pub method: Option<Spanned<Vec<MethodName>>>,
    /// A cookie has one of these names; with `=`, also the value.
    pub cookie: Option<Spanned<Vec<Glob>>>,
    /// Each of these fields of the request is there and looks so.
    pub header: Option<Spanned<BTreeMap<FieldName, Glob>>>,
    /// The response has one of these types.
    pub content_type: Option<Spanned<Vec<MediaGlob>>>,
    /// The response has one of these statuses.
    pub status: Option<Spanned<Vec<Statuses>>>,

    /// Neither answer from the cache nor store.
    pub bypass: Option<Spanned<bool>>,
    /// Don't store.
    pub no_store: Option<bool>,
    /// As in `[site.cache]`.
    pub default_ttl: Option<Period>,
    /// Time to live, whatever the origin gives.
    pub force_ttl: Option<Period>,
    /// As in `[site.cache]`.
    pub ttl_min: Option<Spanned<Period>>,
    /// As in `[site.cache]`.
    pub ttl_max: Option<Spanned<Period>>,
    /// As in `[site.cache]`.
    pub heuristic: Option<bool>,
    /// As in `[site.cache]`.
    pub stale_while_revalidate: Option<Window>,
    /// As in `[site.cache]`.
    pub stale_if_error: Option<Window>,
    /// As in `[site.cache]`, and before it.
    pub negative_ttl: BTreeMap<StatusKey, Period>,
    /// As in `[site.cache]`.
    pub ignore_reload: Option<Spanned<bool>>,
    /// As in `[site.cache]`.
    pub store_set_cookie: Option<bool>,
    /// Besides those of `[site.cache]`.
    pub strip_response: Vec<FieldName>,
    /// Tags that what is stored carries, besides those that the origin gives.
    pub tags: Vec<Tag>,
}

/// The keys of a rule, in the order in which it is told.
pub const RULE_KEYS: [&str; 24] = [
    "name",
    "path",
    "prefix",
    "extension",
    "query",
    "method",
    "cookie",
    "header",
    "content_type",
    "status",
    "bypass",
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
    "strip_response",
    "tags",
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

/// A label for purging: 1 to 255 bytes without white space.
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
            Err(format!("`{text}` is no name of a rule; give a letter, then letters, digits, `-`, `_` or `.`"))
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
            return Err(format!("`{text}` is taken as it is; give the beginning alone, or use `path` for a pattern"));
        }
        if text.contains('?') {
            return Err(never(text, "a path has no query, for which there is `query`"));
        }
        as_rules_see_it(text)?;
        Ok(Self(text.to_owned()))
    }
}

/// Rules look at the path after it was decoded, its steps were taken, and its slashes were merged.
fn as_rules_see_it(text: &str) -> Result<(), String> {
    let is_escape = |rest: &str| rest.len() >= 2 && rest.as_bytes()[..2].iter().all(u8::is_ascii_hexdigit);
    if text.contains("//") {
        return Err(never(text, "slashes in a row are merged before"));
    }
    if text.split('%').skip(1).any(is_escape) {
        return Err(never(text, "escapes are decoded before: write what they stand for"));
    }
    if text.split('/').any(|segment| segment == "." || segment == "..") {
        return Err(never(text, "the steps `.` and `..` are taken before"));
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
            return Err(format!("`{text}` is no extension; give one such as css"));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

impl std::str::FromStr for MediaGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains(';') {
            return Err(never(text, "parameters such as a charset are not looked at"));
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
            Err(format!("`{text}` is no tag; give 1 to 255 bytes without white space"))
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
    TargetPath: "a path such as \"/health\"",
    StatusKey: "a status such as 404, or a class such as 5xx",
    RuleName: "a name such as \"no-admin\"",
    PathGlob: "a pattern such as \"/blog/*\"",
    PathPrefix: "the beginning of a path, such as \"/admin/\"",
    Extension: "an extension such as \"css\"",
    MediaGlob: "a media type such as \"text/html\"",
    Tag: "a tag",
}
