//! The state that all workers share: the configuration, the volume, and the state of each site.
//!
//! A reload makes another one of it ([`Shared::renewed`]), which may fail and changes nothing else. Everything that a reload can
//! change has its place here, and everything that can go wrong with it (a file, a folder, a certificate) goes wrong here.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use eyewall::Cache;
use eyewall_files::FileCache;
use eyewall_fleet_redis::Fleet;
use eyewall_tls::clock::Clock;
use serde_json::{Value, json};
use toml::Spanned;

use super::admission::Admission;
use super::error::Error;
use super::files::{self, Files};
use super::log::{Logs, Sinks};
use super::metrics::Metrics;
use super::origin::{OriginSite, Settings};
use super::peers::Peers;
use super::second_level::Level;
use super::spans::Exporters;
use super::tls::{self, CertificateStatus, Tls, policy};
use super::token::Token;
use super::trace::Tracing;
use crate::config::names::HostPattern;
use crate::config::{Config, site};
use crate::sites::{Site, Sites};
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::store::Store;

/// The state of the whole server, by one configuration.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    /// The sites of the configuration, ready to use.
    pub(crate) by_host: Sites,
    /// Their sources, in the order of the configuration.
    pub(crate) sites: Vec<SharedSite>,
    /// The same ones for all configurations of a server, so that requests in flight and their followers live on.
    pub(crate) pages: Arc<Pages>,
    /// The limits for the requests of clients to any site.
    pub(crate) admission: Option<Admission>,
    files: FileCache,
    /// The longest `stale_when_unreachable` of all sites. The cache keeps a stale response at least this long.
    pub(crate) stale_when_unreachable: Duration,
    /// The token that allows a `PURGE`, as an alternative to an address in `purge_from`.
    pub(crate) purge_token: Option<Token>,
    /// The token of the administration. Requests to an address must have it; at a socket, only those of browsers that change something.
    pub(crate) admin_token: Option<Token>,
    /// The certificates, once they are loaded, if a site has any.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Which sites share certificates.
    pub(crate) certificate_groups: Vec<Option<usize>>,
    /// The port for redirects to HTTPS, once it is bound.
    pub(crate) https_port: Option<u16>,
    /// The fleet, if the server belongs to one. The same one for all configurations of a server.
    pub(crate) fleet: Option<Arc<Fleet>>,
    /// The nodes that this one takes responses from, if it has any.
    pub(crate) peers: Option<Arc<Peers>>,
    /// The second level, if there is one.
    pub(crate) second_level: Option<Arc<Level>>,
    pub(crate) cache: Cache,
    /// The counters. The same ones for all configurations of a server.
    pub(crate) metrics: Arc<Metrics>,
    /// The names of requests, if they get any, once their collector is open.
    pub(crate) tracing: Option<Arc<Tracing>>,
    /// The collectors of spans. The same ones for all configurations of a server.
    pub(crate) exporters: Arc<Exporters>,
    /// The access logs, once they are open.
    pub(crate) logs: Arc<Logs>,
    /// Where their lines go. The same ones for all configurations of a server.
    pub(crate) sinks: Arc<Sinks>,
    /// The clock of certificates and of the keys of session tickets.
    clock: Arc<dyn Clock>,
}

/// The sites of the configuration before.
struct Before<'a> {
    /// Those whose origins no site has taken over.
    sites: Vec<&'a SharedSite>,
    all: &'a [SharedSite],
    metrics: &'a Metrics,
    /// The first hosts of the sites that there are from now on.
    kept: HashSet<Option<&'a HostPattern>>,
}

/// The sources of a site's responses.
pub(crate) struct SharedSite {
    pub(crate) site: Arc<Site>,
    pub(crate) files: Option<Arc<Files>>,
    pub(crate) origins: Option<Arc<OriginSite>>,
    /// Whether a worker fetches the error pages already; one is enough.
    pub(crate) fetches_pages: AtomicBool,
    pub(crate) admission: Option<Admission>,
}

impl Shared {
    /// # Errors
    /// [`Error::Root`], if a folder can't be served, [`Error::Tls`], and [`Error::TokenFile`].
    pub(crate) fn new(config: Config, cache: &Cache, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let store = Arc::new(Store::new(cache.clone()));
        let pages = Arc::new(Pages::new(store, None));
        Self::with(config, cache, FileCache::new(cache.clone()), pages, clock, (Arc::default(), None, &[]))
    }

    /// The state by another configuration. Origins whose settings are the same are the same ones, with their health. Others take
    /// over what is known of the health of their addresses.
    ///
    /// # Errors
    /// As [`Shared::new`].
    pub(crate) fn renewed(&self, config: Config) -> Result<Self, Error> {
        let (files, pages, clock) = (self.files.clone(), Arc::clone(&self.pages), Arc::clone(&self.clock));
        let known = (Arc::clone(&self.metrics), self.admission.as_ref(), &self.sites[..]);
        let shared = Self::with(config, &self.cache, files, pages, clock, known)?;
        let (fleet, peers, second_level) = (self.fleet.clone(), self.peers.clone(), self.second_level.clone());
        let (sinks, exporters) = (Arc::clone(&self.sinks), Arc::clone(&self.exporters));
        Ok(Self { fleet, peers, second_level, exporters, sinks, ..shared })
    }

    fn with(
        config: Config,
        cache: &Cache,
        files: FileCache,
        pages: Arc<Pages>,
        clock: Arc<dyn Clock>,
        (metrics, admission, known_sites): (Arc<Metrics>, Option<&Admission>, &[SharedSite]),
    ) -> Result<Self, Error> {
        let by_host = Sites::of(&config.sites);
        let mut before = Before {
            sites: known_sites.iter().collect(),
            all: known_sites,
            metrics: &metrics,
            kept: by_host.iter().map(|site| first_host(&site.settings)).collect(),
        };
        let renewed = |site| SharedSite::new(site, &files, &mut before);
        let sites = by_host.iter().map(renewed).collect::<Result<_, _>>()?;
        let windows = config.sites.iter().map(|site| site.cache.stale_when_unreachable.0);
        let stale_when_unreachable = windows.max().unwrap_or_default();
        let purge_token = config.server.purge_token_file.as_ref().map(Spanned::get_ref);
        let admin = config.server.admin.as_ref().map(Spanned::get_ref);
        let admin_token = admin.and_then(|admin| admin.token_file.as_ref()).map(Spanned::get_ref);
        Ok(Self {
            purge_token: purge_token.map(|path| token(path)).transpose()?,
            admin_token: admin_token.map(|path| token(path)).transpose()?,
            tracing: None,
            exporters: Arc::default(),
            admission: Admission::of_server(&config.server.limits, admission),
            certificate_groups: policy::certificate_groups(&config),
            config: Arc::new(config),
            by_host,
            sites,
            pages,
            files,
            stale_when_unreachable,
            tls: None,
            https_port: None,
            fleet: None,
            peers: None,
            second_level: None,
            cache: cache.clone(),
            metrics,
            logs: Arc::default(),
            sinks: Arc::default(),
            clock,
        })
    }

    /// Opens the access logs and the collector of spans. A state that answers no requests has none.
    ///
    /// # Errors
    /// Those of [`Logs::open`], [`Exporters::open`] and [`Tracing::of`].
    pub(crate) fn open_logs(&mut self) -> Result<(), Error> {
        self.logs = Arc::new(Logs::open(&self.config, &self.by_host, &self.sinks)?);
        let settings = self.config.server.tracing.as_ref().map(Spanned::get_ref);
        self.tracing = Tracing::of(settings, self.exporters.open(settings)?)?.map(Arc::new);
        Ok(())
    }

    /// Loads the certificates, and starts the threads that keep them up, unless the state `before` has the same ones. Call it once
    /// the addresses are bound, since an authority may ask for a challenge at once.
    ///
    /// # Errors
    /// Those of [`Tls::start`].
    pub(crate) fn begin_tls(&mut self, https_port: Option<u16>, before: Option<&Self>) -> Result<(), Error> {
        self.https_port = https_port;
        self.tls = match before.filter(|before| tls::has_same_settings(&before.config, &self.config)) {
            Some(before) => before.tls.clone(),
            None => Tls::start(&self.config, &self.clock)?.map(Arc::new),
        };
        Ok(())
    }

    /// Ends what only this configuration does by itself, now that `next` is in force.
    pub(crate) fn retire(&self, next: &Self) {
        for SharedSite { site, origins, .. } in &next.sites {
            let Some(origins) = origins else { continue };
            origins.begin();
            // They may be those of a site with another name.
            origins.count_for(&site.label(), &next.metrics);
        }
        for origins in self.sites.iter().filter_map(|site| site.origins.as_ref()) {
            let mut kept = next.sites.iter().filter_map(|site| site.origins.as_ref());
            if !kept.any(|kept| Arc::ptr_eq(kept, origins)) {
                origins.retire();
            }
        }
        if let Some(tls) = &self.tls
            && !next.tls.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, tls))
        {
            tls.retire();
        }
    }

    /// The certificates of the site of this number.
    pub(crate) fn certificates(&self, site: usize) -> Vec<CertificateStatus> {
        self.tls.as_ref().map(|tls| tls.status(site)).unwrap_or_default()
    }
}

impl SharedSite {
    /// Takes what stays the same from one of the sites `before`, and removes that one. The site of `known_sites` with the same first host
    /// gives it the buckets of its clients, and the requests that its origins have.
    fn new(site: &Arc<Site>, cache: &FileCache, before: &mut Before<'_>) -> Result<Self, Error> {
        let files = match &site.settings.root {
            Some(root) => Some(open(root.get_ref(), &site.settings, cache, &before.sites)?),
            None => None,
        };
        // No other site has this host.
        let same = |known: &&Self| first_host(&known.site.settings) == first_host(&site.settings);
        let same = before.all.iter().find(same);
        let same_origins = same.and_then(|known| known.origins.as_deref());
        let origins = (!site.settings.origins.is_empty()).then(|| origins(site, before, same_origins));
        let fetches_pages = AtomicBool::new(false);
        let admission = Admission::of_site(&site.settings.limits, same.and_then(|known| known.admission.as_ref()));
        Ok(Self { site: Arc::clone(site), files, origins: origins.transpose()?, fetches_pages, admission })
    }
}

fn token(path: &Path) -> Result<Token, Error> {
    Token::read(path).map_err(|source| Error::TokenFile { path: path.to_owned(), source })
}

/// Opens a folder, unless a site before has the same one: that one knows which files it has.
fn open(root: &Path, site: &site::Site, cache: &FileCache, before: &[&SharedSite]) -> Result<Arc<Files>, Error> {
    let failed = |source: io::Error| Error::Root { path: root.to_owned(), source };
    let options = files::options(site);
    let mut known = before.iter().filter_map(|before| before.files.as_ref());
    if let Some(files) = known.find(|files| files.serves(root, &options)) {
        return Ok(Arc::clone(files));
    }
    Files::open(root, cache, options).map(Arc::new).map_err(failed)
}

fn origins(named: &Site, before: &mut Before<'_>, same_site: Option<&OriginSite>) -> Result<Arc<OriginSite>, Error> {
    let site = &named.settings;
    // The file of certificates may have changed.
    let reads_files = site.origin_settings().tls.is_some_and(|tls| tls.get_ref().ca_file.is_some());
    let asked = asked_origins(site);
    let Before { sites, kept, metrics, .. } = before;
    let is_same = |known: &&SharedSite| {
        let (host, settings) = (first_host(&known.site.settings), &known.site.settings);
        // A site that stays keeps its own: with other limits, its requests would count for both.
        let is_free = host == first_host(site) || !kept.contains(&host);
        is_free && !reads_files && asked_origins(settings) == asked
    };
    if let Some(origins) = sites.iter().position(is_same).and_then(|same| sites.remove(same).origins.clone()) {
        return Ok(origins);
    }
    let origins = OriginSite::new(Settings::of(site), same_site).map_err(Error::Tls)?;
    origins.count_for(&named.label(), metrics);
    for known in sites.iter().filter_map(|before| before.origins.as_ref()) {
        origins.take_over(known);
    }
    Ok(Arc::new(origins))
}

fn first_host(site: &site::Site) -> Option<&HostPattern> {
    site.hosts.first().map(Spanned::get_ref)
}

/// All settings of a site's origins.
fn asked_origins(site: &site::Site) -> Value {
    json!([site.origins, site.origin_settings(), site.limits.of_origins()])
}

#[cfg(test)]
mod tests {
    use eyewall::Options;
    use eyewall_tls::clock::SystemClock;

    use super::*;
    use crate::config::parse;

    #[test]
    fn a_site_that_stays_gives_its_origins_to_no_other() {
        let site = |host: &str, requests: u64| {
            let origins = "origins = [\"http://127.0.0.1:1\"]";
            format!("[[site]]\nhosts = [\"{host}\"]\n{origins}\nlimits = {{ origin_requests = {requests} }}\n")
        };
        let cache = Options::new().size(1 << 20).heap().unwrap();
        let renewed = |before: &Shared, sites: &[String]| before.renewed(parse(&sites.concat()).unwrap()).unwrap();
        let origins = |shared: &Shared, site: usize| Arc::clone(shared.sites[site].origins.as_ref().unwrap());
        let first = Shared::new(parse(&site("a", 10)).unwrap(), &cache, Arc::new(SystemClock)).unwrap();
        let known = origins(&first, 0);
        for sites in [[site("b", 10), site("a", 5)], [site("a", 5), site("b", 10)]] {
            let second = renewed(&first, &sites);
            assert!((0..2).all(|number| !Arc::ptr_eq(&origins(&second, number), &known)));
        }
        let second = renewed(&first, &[site("b", 10), site("a", 10)]);
        assert!(Arc::ptr_eq(&origins(&second, 1), &known) && !Arc::ptr_eq(&origins(&second, 0), &known));
        assert!(Arc::ptr_eq(&origins(&renewed(&first, &[site("b", 10)]), 0), &known), "the site has another name");
    }
}
