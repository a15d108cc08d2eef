//! HTTPS to clients: the certificates of all sites, their upkeep, and what each site wants of HTTPS.
//!
//! ```text
//! configuration ──> Tls ──> certificates <── handshakes (listen/handshake)
//!                    ├───> upkeep: a thread that reads changed files, and changes the keys of session tickets
//!                    └───> ACME: a thread of eyewall-tls that gets certificates
//! ```
//! [`policy`] decides for each request: a redirect, 421, HSTS, the answer to an ACME challenge.

pub(crate) mod policy;
mod status;
mod upkeep;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyewall_tls::acme::{Acme, Challenges};
use eyewall_tls::clock::Clock;
use eyewall_tls::{Certificates, HostFiles, Identity, IdentityFiles, MinimumVersion, Tickets, Watched, server_config};
use rustls::ServerConfig;
use toml::Spanned;

use super::error::Error;
use crate::config::site::Site;
use crate::config::tls::{ServerTls, SiteTls};
use crate::config::{self, Config};
pub(crate) use status::CertificateStatus;
pub(crate) use upkeep::Upkeep;

/// All that handshakes need, and the threads that keep it up. Dropping it ends them.
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) certificates: Arc<Certificates>,
    challenges: Option<Arc<Challenges>>,
    /// The files of each site, in the order of the configuration.
    files: Vec<Vec<IdentityFiles>>,
    /// `None` once another configuration is in force.
    threads: Mutex<Option<Threads>>,
}

/// What keeps the certificates up.
struct Threads {
    upkeep: Upkeep,
    acme: Option<Acme>,
}

impl Tls {
    /// Loads the certificates, and starts the threads. `None`: no site has `tls`.
    ///
    /// # Errors
    /// A certificate or the state folder can't be used, or the system gives no thread.
    pub(crate) fn start(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Self>, Error> {
        let sites = || config.sites.iter();
        if !sites().any(|site| site.tls.is_some()) {
            return Ok(None);
        }
        let defaults = ServerTls::default();
        let settings = config.server.tls.as_ref().map_or(&defaults, Spanned::get_ref);
        let sets: Vec<Vec<String>> =
            sites().filter(|site| site.is_auto()).flat_map(Site::certificate_names).map(|name| vec![name]).collect();
        let tickets = Arc::new(tickets(settings, !sets.is_empty(), clock)?);
        let acme = if sets.is_empty() { None } else { Some(acme(config, settings, &sets, clock)?) };
        let own = sites().filter_map(|site| match site.tls.as_ref().map(Spanned::get_ref)? {
            SiteTls::Files(files) => Some(files.iter().filter_map(config::tls::CertificateFiles::identity)),
            SiteTls::Auto => None,
        });
        let own: Vec<IdentityFiles> = own.flatten().collect();
        let hosts: Vec<Vec<HostFiles>> = sites().map(|site| host_files(site, acme.as_ref())).collect();
        let files = hosts.iter().map(|hosts| hosts.iter().flat_map(|host| host.files.clone()).collect()).collect();
        let watched = Watched::open(hosts.into_iter().flatten().collect())?;
        for site in sites() {
            warn_of_hosts(site, &watched);
        }
        let challenges = acme.as_ref().map(|acme| Arc::clone(acme.challenges()));
        let certificates = Arc::new(Certificates::new(challenges.clone()));
        let (config, upkeep) = begin(watched, own, &certificates, tickets, settings.version_min.into(), clock)?;
        let threads = Mutex::new(Some(Threads { upkeep, acme }));
        Ok(Some(Self { config, certificates, challenges, files, threads }))
    }

    /// The answers to an authority's challenges, if a site gets its certificates by ACME.
    pub(crate) fn challenges(&self) -> Option<&Arc<Challenges>> {
        self.challenges.as_ref()
    }

    /// Whether a client may name this host in its handshake (SNI).
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.certificates.has(name)
    }

    /// Ends the threads, without a wait for them: one may be in a request to an authority.
    pub(crate) fn retire(&self) {
        let threads = self.threads().take();
        // If the system gives no thread for that, they end here.
        let _ = std::thread::Builder::new().name("retired".to_owned()).spawn(move || drop(threads));
    }

    fn threads(&self) -> MutexGuard<'_, Option<Threads>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Begins to use these certificates, and to keep them up. The operator renews the `own` ones.
///
/// # Errors
/// The library refuses our settings, or the system gives no thread.
pub(crate) fn begin(
    watched: Watched,
    own: Vec<IdentityFiles>,
    certificates: &Arc<Certificates>,
    tickets: Arc<Tickets>,
    minimum: MinimumVersion,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<ServerConfig>, Upkeep), Error> {
    for (files, identity) in watched.identities() {
        upkeep::warn_of(files, identity, clock.now());
    }
    watched.publish(certificates);
    let config = server_config(Arc::clone(certificates), Arc::clone(&tickets), minimum)?;
    let upkeep = Upkeep::start(watched, own, Arc::clone(certificates), tickets, Arc::clone(clock))?;
    Ok((config, upkeep))
}

/// Whether two configurations need the same certificates, by the same way.
pub(crate) fn has_same_settings(one: &Config, other: &Config) -> bool {
    let of_site = |site: &Site| serde_json::json!([site.certificate_names(), has_any(site), site.tls]);
    let all = |config: &Config| -> serde_json::Value {
        let sites: Vec<_> = config.sites.iter().map(of_site).collect();
        serde_json::json!([config.server.tls, config.server.acme, sites])
    };
    all(one) == all(other)
}

/// The keys of session tickets. Without the default folder, they last as long as the process.
fn tickets(settings: &ServerTls, needs_state: bool, clock: &Arc<dyn Clock>) -> Result<Tickets, Error> {
    if let Some(path) = &settings.tickets {
        return Ok(Tickets::open(path, Arc::clone(clock))?);
    }
    let folder = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.state);
    let failed = match folder {
        Ok(()) => match Tickets::open(&settings.state.join("tickets"), Arc::clone(clock)) {
            Ok(tickets) => return Ok(tickets),
            Err(error) => Error::Tickets(error),
        },
        Err(source) => Error::State { path: settings.state.clone(), source },
    };
    if needs_state {
        return Err(failed);
    }
    tracing::warn!(
        error = %failed,
        "clients can't resume their TLS sessions after a restart; give `state` or `tickets` in [server.tls] a place that Eyewall may \
         write to"
    );
    Ok(Tickets::in_memory(Arc::clone(clock))?)
}

fn acme(config: &Config, settings: &ServerTls, sets: &[Vec<String>], clock: &Arc<dyn Clock>) -> Result<Acme, Error> {
    let defaults = config::tls::Acme::default();
    let given = config.server.acme.as_ref().map_or(&defaults, Spanned::get_ref);
    let key_file = given.external_account_key_file.as_ref().map(|path| path.get_ref().clone());
    let settings = given
        .settings(settings.state.join("acme"))
        .map_err(|source| Error::State { path: key_file.unwrap_or_default(), source })?;
    Ok(Acme::start(settings, sets, Arc::clone(clock))?)
}

/// The hosts of a site with the files of their certificates. A name from an authority has a certificate of its own, so that no other
/// name's failure holds it up.
fn host_files(site: &Site, acme: Option<&Acme>) -> Vec<HostFiles> {
    let names = site.certificate_names();
    match (site.tls.as_ref().map(Spanned::get_ref), acme) {
        (Some(SiteTls::Auto), Some(acme)) => {
            let host = |name: String| {
                let files = vec![acme.files(std::slice::from_ref(&name))];
                HostFiles { hosts: vec![name], files, may_be_missing: true }
            };
            names.into_iter().map(host).collect()
        }
        (Some(SiteTls::Files(given)), _) => {
            let files = given.iter().filter_map(config::tls::CertificateFiles::identity).collect();
            // A site for all other hosts serves those that its certificates name.
            let hosts = if has_any(site) { Vec::new() } else { names };
            vec![HostFiles { hosts, files, may_be_missing: false }]
        }
        _ => Vec::new(),
    }
}

fn has_any(site: &Site) -> bool {
    site.hosts.iter().any(|host| matches!(host.get_ref(), config::names::HostPattern::Any))
}

/// Names the hosts that no certificate of their site is for.
fn warn_of_hosts(site: &Site, watched: &Watched) {
    let Some(SiteTls::Files(given)) = site.tls.as_ref().map(Spanned::get_ref) else { return };
    let files: Vec<_> = given.iter().filter_map(config::tls::CertificateFiles::identity).collect();
    let of_site: Vec<&Arc<Identity>> =
        watched.identities().filter(|(found, _)| files.contains(found)).map(|(_, identity)| identity).collect();
    for name in site.certificate_names() {
        if !of_site.iter().any(|identity| covers(identity.names(), &name)) {
            let file = files.first().map(|files| shown(&files.certificate)).unwrap_or_default();
            tracing::warn!(host = name, file, "the certificate is not for this host, and clients refuse it");
        }
    }
}

/// Whether a certificate with these names is for a host, or for all hosts of a wildcard.
fn covers(names: &[String], host: &str) -> bool {
    let parent = host.split_once('.').map(|(_, parent)| parent);
    names.iter().any(|name| name == host || name.strip_prefix("*.").is_some_and(|below| Some(below) == parent))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_covers_one_label() {
        let names = ["example.org".to_owned(), "*.example.org".to_owned()];
        for (host, is_covered) in [
            ("example.org", true),
            ("www.example.org", true),
            ("*.example.org", true),
            ("a.www.example.org", false),
            ("example.net", false),
            ("org", false),
        ] {
            assert_eq!(covers(&names, host), is_covered, "{host}");
        }
    }
}
