//! What the file says of a site: `[[site]]`, `[site.key]` and `[site.cache]`. How origins are asked is in [`super::origin`], rules are in
//! [`super::rule`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::names::{CookieName, FieldName, Glob, HostName, HostPattern, written_as_text};
use super::origin::OriginSettings;
use super::presets::Preset;
use super::rule::Rule;
use super::value::{Period, Size, Statuses, Window};
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

    /// Whether precompressed files are served in the place of those that are not.
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
    /// Cookies of requests that neither rules, the key, `Vary` nor the origin get, by name.
    pub ignore_cookies: Vec<Glob>,
    /// Whether those of the shipped list of analytics are ignored, too. Without it: where the site has a preset.
    pub ignore_analytics: Option<bool>,
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
    /// How long a stale response is given where the origin gives no answer at all (RFC 9111, section 4.2.4).
    pub stale_when_unreachable: Window,
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
            stale_when_unreachable: Window(Duration::from_hours(1)),
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

written_as_text! {
    StatusKey: "a status such as 404, or a class such as 5xx",
}
