//! The settings of a site: `[[site]]`, `[site.key]` and `[site.cache]`. [`super::origin`] has the settings for requests to origins, and
//! [`super::rule`] the rules.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use eyewall_http::coding::Codings;
use eyewall_page_cache::compression::Compression;
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::access_log::SiteAccessLog;
use super::compression::{Compress, SiteCompression};
use super::language::LanguageTag;
use super::names::{CookieName, FieldName, Glob, HostName, HostPattern};
use super::origin::{OriginSettings, TargetPath};
use super::origin_url::OriginUrl;
use super::presets::{ANALYTICS, Preset, TRACKERS};
use super::rule::Rule;
use super::site_limits::SiteLimits;
use super::tls::SiteTls;
use super::value::{Period, Size, StatusKey, Window};

/// `[[site]]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Site {
    /// Hosts of the site. `*` means all hosts that no other site names.
    ///
    /// Default: `["*"]`
    ///
    /// Example: `["example.org", "*.example.org"]`
    pub hosts: Vec<Spanned<HostPattern>>,
    /// Further hosts. Eyewall treats their requests as requests for the first of `hosts`, and sends that host to the
    /// origin.
    ///
    /// Example: `["www.example.org"]`
    pub aliases: Vec<Spanned<HostName>>,
    /// Servers with the same content: `http://`, `https://`, or `unix:` with the path of a socket. If an address has a path
    /// (`unix:/run/app.sock:/path`), Eyewall puts it before the path of each request.
    ///
    /// Default: `[]`
    ///
    /// Example: `["http://127.0.0.1:3000"]`
    pub origins: Vec<Spanned<OriginUrl>>,
    /// The settings for requests to the origins.
    pub origin: Option<Spanned<OriginSettings>>,
    /// A folder of files.
    ///
    /// Default: none
    ///
    /// Example: `"/srv/www"`
    pub root: Option<Spanned<PathBuf>>,
    /// Names of the file to send for a folder. Eyewall takes the first that exists.
    ///
    /// Default: `["index.html"]`
    ///
    /// Example: `["index.html", "index.htm"]`
    pub index: Option<Spanned<Vec<String>>>,
    /// Which symbolic links Eyewall follows: `"none"`, or `"below"`: those whose target is below the root.
    ///
    /// Default: `"below"`
    ///
    /// Example: `"none"`
    pub symlinks: Option<Spanned<Symlinks>>,
    /// Serve names that begin with a dot.
    ///
    /// Default: `false`
    ///
    /// Example: `true`
    pub dotfiles: Option<Spanned<bool>>,
    /// Serve `page.br`, `page.zst` or `page.gz` instead of `page`.
    ///
    /// Default: `false`
    ///
    /// Example: `true`
    pub precompressed: Option<Spanned<bool>>,
    /// Compress stored responses, and send them to clients that want them so: `true`, or only some of `"br"`, `"zstd"` and `"gzip"`.
    ///
    /// Default: `false`
    ///
    /// Example: `["br", "gzip"]`
    pub compress: Option<Spanned<Compress>>,
    /// The types and lengths of responses that are compressed.
    pub compression: Option<Spanned<SiteCompression>>,
    /// The languages of the site. Eyewall reduces `Accept-Language` to one of them before key, `Vary` and origin see it, so
    /// that an address has few variants. Clients that want none of them get the first.
    ///
    /// Default: none: the field stays as it is
    ///
    /// Example: `["en", "de", "fr"]`
    pub accept_language: Option<Spanned<Vec<LanguageTag>>>,
    /// Pages to send in place of Eyewall's own errors, by status: paths in the root folder or of the origin.
    ///
    /// Example: `{ 404 = "/errors/404.html", 5xx = "/errors/5xx.html" }`
    pub error_page: BTreeMap<StatusKey, Spanned<TargetPath>>,
    /// Also send these pages in place of errors of the origin.
    ///
    /// Default: `false`
    ///
    /// Example: `true`
    pub intercept_errors: Option<Spanned<bool>>,
    /// Certificates for HTTPS.
    pub tls: Option<Spanned<SiteTls>>,
    /// Answer requests over HTTP by a redirect to the same address over HTTPS.
    ///
    /// Default: `false`
    ///
    /// Example: `true`
    pub redirect_to_https: Option<Spanned<bool>>,
    /// Tell browsers over HTTPS to use nothing else for this host, for this long (RFC 6797). `"0s"` tells them to forget it.
    ///
    /// Default: none
    ///
    /// Example: `"365d"`
    pub hsts: Option<Spanned<Window>>,
    /// Ready-made rules, which come before those of the file.
    ///
    /// Default: none
    ///
    /// Example: `"wordpress"`
    pub preset: Option<Preset>,
    /// The parts of its keys.
    pub key: Key,
    /// Which responses are stored, and for how long.
    pub cache: SiteCache,
    /// The limits for its clients, and for the requests to its origins.
    pub limits: SiteLimits,
    /// The log of its requests, if it differs from the server's.
    pub access_log: Option<Spanned<SiteAccessLog>>,
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
            compress: None,
            compression: None,
            accept_language: None,
            error_page: BTreeMap::new(),
            intercept_errors: None,
            tls: None,
            redirect_to_https: None,
            hsts: None,
            preset: None,
            key: Key::default(),
            cache: SiteCache::default(),
            limits: SiteLimits::default(),
            access_log: None,
            rule: Vec::new(),
        }
    }
}

impl Site {
    /// The name of the site in its tags in the volume, and in the keys of its aliases: the first of its hosts that is a name. A
    /// site for all hosts has none.
    pub fn name(&self) -> Option<&str> {
        self.hosts.iter().find_map(|host| match host.get_ref() {
            HostPattern::Name(name) => Some(name.as_str()),
            HostPattern::Below(_) | HostPattern::Any => None,
        })
    }

    /// Names of the index files of a folder, in the order in which Eyewall looks for them.
    pub fn index_names(&self) -> impl Iterator<Item = &str> {
        let given = self.index.as_ref().map(|names| names.get_ref().as_slice());
        let default = given.is_none().then_some("index.html");
        given.unwrap_or_default().iter().map(String::as_str).chain(default)
    }

    /// Which symbolic links of the folder Eyewall follows.
    pub fn followed_links(&self) -> Symlinks {
        self.symlinks.as_ref().map(|links| *links.get_ref()).unwrap_or_default()
    }

    /// Whether Eyewall serves names that begin with a dot.
    pub fn serves_dotfiles(&self) -> bool {
        self.dotfiles.as_ref().is_some_and(|yes| *yes.get_ref())
    }

    /// Whether Eyewall serves precompressed files in the place of plain ones.
    pub fn serves_precompressed(&self) -> bool {
        self.precompressed.as_ref().is_some_and(|yes| *yes.get_ref())
    }

    /// The codings in which Eyewall compresses responses that no rule concerns.
    pub fn codings(&self) -> Codings {
        self.compress.as_ref().map_or(Codings::NONE, |compress| compress.get_ref().0)
    }

    /// The settings for compression, with the codings of the site and of its rules. None: nothing is compressed.
    pub fn compression(&self) -> Option<Compression> {
        let of_rules = self.rule.iter().filter_map(|rule| rule.get_ref().compress.as_ref());
        let codings = of_rules.fold(self.codings(), |codings, compress| codings.or(compress.get_ref().0));
        let settings = self.compression.as_ref().map(|settings| settings.get_ref().clone()).unwrap_or_default();
        (!codings.is_empty()).then(|| settings.with(codings))
    }

    /// Whether Eyewall redirects requests over HTTP to HTTPS.
    pub fn redirects_to_https(&self) -> bool {
        self.redirect_to_https.as_ref().is_some_and(|yes| *yes.get_ref())
    }

    /// The settings for requests to its origins.
    pub fn origin_settings(&self) -> OriginSettings {
        self.origin.as_ref().map(|settings| settings.get_ref().clone()).unwrap_or_default()
    }
}

/// Which symbolic links below a root Eyewall follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Symlinks {
    /// None.
    None,
    /// Links whose target is below the root.
    #[default]
    Below,
}

/// `[site.key]`
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Key {
    /// Query parameters to remove from the key and the request, by name.
    ///
    /// Example: `["ref", "utm_*"]`
    pub strip_query: Vec<Glob>,
    /// Also remove the parameters of trackers, listed below.
    ///
    /// Example: `true`
    pub strip_trackers: bool,
    /// Sort query parameters by name. Parameters with the same name keep their order.
    ///
    /// Example: `true`
    pub sort_query: bool,
    /// Cookies to drop from requests, by name.
    ///
    /// Example: `["ab_test", "chat_*"]`
    pub ignore_cookies: Vec<Glob>,
    /// Also drop the analytics cookies, listed below.
    ///
    /// Default: `true` with a preset, else `false`
    ///
    /// Example: `false`
    pub ignore_analytics: Option<bool>,
    /// Cookies that are part of the key, by name: each value gets entries of its own.
    ///
    /// Example: `["lang"]`
    pub cookies: Vec<CookieName>,
    /// Request fields that are part of the key: each value gets entries of its own.
    ///
    /// Example: `["X-Device"]`
    pub headers: Vec<Spanned<FieldName>>,
}

impl Key {
    /// Patterns of all query parameters that it strips, those of trackers included.
    pub(crate) fn stripped_parameters(&self) -> impl Iterator<Item = &str> {
        let trackers: &[&str] = if self.strip_trackers { &TRACKERS } else { &[] };
        self.strip_query.iter().map(Glob::as_str).chain(trackers.iter().copied())
    }

    /// Patterns of all cookies that it drops from requests, those of analytics included.
    pub(crate) fn dropped_cookies(&self) -> impl Iterator<Item = &str> {
        let analytics: &[&str] = if self.ignore_analytics == Some(true) { &ANALYTICS } else { &[] };
        self.ignore_cookies.iter().map(Glob::as_str).chain(analytics.iter().copied())
    }
}

/// `[site.cache]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct SiteCache {
    /// TTL if the origin gives none. It applies to logged-in visitors, too.
    ///
    /// Default: none
    ///
    /// Example: `"60s"`
    pub default_ttl: Option<Period>,
    /// The shortest TTL.
    ///
    /// Default: none
    ///
    /// Example: `"5s"`
    pub ttl_min: Option<Spanned<Period>>,
    /// The longest TTL.
    ///
    /// Default: none
    ///
    /// Example: `"1d"`
    pub ttl_max: Option<Spanned<Period>>,
    /// A response with `Last-Modified` alone is fresh for a tenth of its age, at most a day (RFC 9111, section 4.2.2).
    ///
    /// Example: `false`
    pub heuristic: bool,
    /// How long Eyewall sends a stale response during revalidation. A time in the response overrides this (RFC 5861).
    ///
    /// Default: none
    ///
    /// Example: `"30s"`
    pub stale_while_revalidate: Option<Window>,
    /// How long Eyewall sends a stale response if the origin fails. A time in the response overrides this (RFC 5861).
    ///
    /// Default: none
    ///
    /// Example: `"1d"`
    pub stale_if_error: Option<Window>,
    /// How long Eyewall sends a stale response if it can't reach the origin, or the origin closes the connection without a
    /// response (RFC 9111, section 4.2.4).
    ///
    /// Example: `"6h"`
    pub stale_when_unreachable: Window,
    /// TTL by status if the origin gives none. It overrides `default_ttl`.
    ///
    /// Example: `{ 404 = "10s", 5xx = "1s" }`
    pub negative_ttl: BTreeMap<StatusKey, Period>,
    /// Ignore `no-cache`, `max-age`, `min-fresh` and `Pragma` of clients.
    ///
    /// Example: `true`
    pub ignore_reload: bool,
    /// Store responses with `Set-Cookie`.
    ///
    /// Example: `true`
    pub store_set_cookie: bool,
    /// Fields that replace `Cache-Control` for this cache. The first that is present counts (RFC 9213).
    ///
    /// Example: `["eyewall-cache-control", "cdn-cache-control"]`
    pub targeted: Vec<FieldName>,
    /// Response fields that Eyewall removes before it stores or sends a response. It also removes them from interim
    /// responses (103).
    ///
    /// Example: `["X-Powered-By"]`
    pub strip_response: Vec<FieldName>,
    /// The largest object to store.
    ///
    /// Default: a quarter of `size`
    ///
    /// Example: `"8M"`
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
