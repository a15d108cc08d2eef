//! The state that all workers share: the configuration, the volume, and the state of each site.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eyewall::Cache;
use eyewall_files::FileCache;
use toml::Spanned;

use super::admission::Admission;
use super::error::Error;
use super::files::{self, Files};
use super::origin::{OriginSite, Settings};
use super::token::Token;
use crate::config::Config;
use crate::sites::{Site, Sites};
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::store::Store;

/// The state of the whole server.
pub(crate) struct Shared {
    pub(crate) config: Config,
    /// The sites of the configuration, ready to use.
    pub(crate) by_host: Sites,
    /// Their sources, in the order of the configuration.
    pub(crate) sites: Vec<SharedSite>,
    pub(crate) pages: Arc<Pages>,
    /// The limits for the requests of clients to any site.
    pub(crate) admission: Option<Admission>,
    /// The longest `stale_when_unreachable` of all sites. The cache keeps a stale response at least this long.
    pub(crate) stale_when_unreachable: Duration,
    /// The token that allows a `PURGE`, as an alternative to an address in `purge_from`.
    pub(crate) purge_token: Option<Token>,
}

/// The sources of a site's responses.
pub(crate) struct SharedSite {
    pub(crate) site: Arc<Site>,
    pub(crate) files: Option<Arc<Files>>,
    pub(crate) origins: Option<Arc<OriginSite>>,
    pub(crate) admission: Option<Admission>,
    /// Whether a worker checks the origins already; one is enough.
    pub(crate) is_checked: AtomicBool,
}

impl Shared {
    /// # Errors
    /// [`Error::Root`], if a folder can't be served, [`Error::Tls`], and [`Error::TokenFile`].
    pub(crate) fn new(config: Config, cache: &Cache) -> Result<Self, Error> {
        let store = Arc::new(Store::new(cache.clone()));
        let files = FileCache::new(cache.clone());
        let by_host = Sites::of(&config.sites);
        let sites = by_host.iter().map(|site| SharedSite::new(site, &files)).collect::<Result<_, _>>()?;
        let windows = config.sites.iter().map(|site| site.cache.stale_when_unreachable.0);
        let stale_when_unreachable = windows.max().unwrap_or_default();
        let pages = Arc::new(Pages::new(store, None));
        let purge_token = config
            .server
            .purge_token_file
            .as_ref()
            .map(Spanned::get_ref)
            .map(|path| Token::read(path).map_err(|source| Error::TokenFile { path: path.clone(), source }));
        let admission = Admission::of_server(&config.server.limits, None);
        let purge_token = purge_token.transpose()?;
        Ok(Self { config, by_host, sites, pages, admission, stale_when_unreachable, purge_token })
    }
}

impl SharedSite {
    fn new(site: &Arc<Site>, cache: &FileCache) -> Result<Self, Error> {
        let files = site.settings.root.as_ref().map(Spanned::get_ref).map(|path| {
            let files = Files::open(path, cache, files::options(&site.settings));
            files.map(Arc::new).map_err(|source| Error::Root { path: path.clone(), source })
        });
        let origins = (!site.settings.origins.is_empty())
            .then(|| OriginSite::new(Settings::of(&site.settings)).map(Arc::new).map_err(Error::Tls));
        Ok(Self {
            site: Arc::clone(site),
            files: files.transpose()?,
            origins: origins.transpose()?,
            admission: Admission::of_site(&site.settings.limits, None),
            is_checked: AtomicBool::new(false),
        })
    }
}
