//! The configuration of the server: what a TOML file says, or the command line, checked and ready to use.
//!
//! ```text
//! file ── read ──> Settings ── check ──> faults       what the file says, key by key
//! flags ─────────────^    └─── Config::of ──> Config  sites by host, keys and rules ready to use
//! ```
//!
//! [`load`] reads a file and tells all that is wrong with it at once, each [`Problem`] with its line, its column and a hint.
//! [`Config::of_flags`] makes the same of a command line. `docs/configuration.md` describes each key; a test holds the two
//! against each other.
//!
//! # What is absent
//! No socket, no volume and no thread is made here; a configuration that was loaded has changed nothing. Names of hosts are
//! not resolved.

mod check;
mod check_site;
mod messages;
pub mod names;
pub mod origin;
pub mod presets;
mod problem;
mod read;
pub mod rule;
pub mod settings;
pub mod site;
mod sites;
pub mod value;

use std::path::Path;

use serde::Serialize;
use toml::Spanned;

use crate::args;
use origin::{OriginSettings, Tls};
use problem::Fault;
pub use problem::{Place, Problem};
pub use settings::{Admin, Server, Settings, Volume};
pub use sites::{Site, Sites};
use value::{Period, SizeWithin, Within};

/// A configuration in which nothing is wrong.
#[derive(Debug, Serialize)]
pub struct Config {
    /// Sockets, limits, log, administration.
    pub server: Server,
    /// The volume.
    pub cache: Volume,
    /// What is served, by host.
    #[serde(rename = "site")]
    pub sites: Sites,
}

/// Reads a configuration.
///
/// # Errors
/// All that is wrong with it, in the order of the file. A file that can't be read is one problem, without a place.
pub fn load(path: &Path) -> Result<Config, Vec<Problem>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text),
        Err(error) => {
            let hint = Some("name a file that this user may read, in UTF-8".to_owned());
            Err(vec![Problem { place: None, message: format!("it can't be read: {error}"), hint }])
        }
    }
}

/// The same for the text of a file.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    let (settings, faults) = read::settings(text);
    // What is missed in a file that can't be read as a whole may stand where it can't be read.
    let is_whole = faults.is_empty();
    let (config, more) = Config::of(settings);
    let mut faults: Vec<Fault> =
        faults.into_iter().chain(more.into_iter().filter(|fault| is_whole || !fault.is_absence)).collect();
    if faults.is_empty() {
        return Ok(config);
    }
    faults.sort_by_key(|fault| fault.span.start);
    Err(faults.into_iter().map(|fault| fault.into_problem(Some(text))).collect())
}

impl Config {
    /// That of a command line.
    ///
    /// # Errors
    /// What can only be told by looking: a folder that is none, a path without its folder.
    pub fn of_flags(cache: Option<&Path>, flags: &args::Serve) -> Result<Self, Vec<Problem>> {
        Self::of_settings(Settings::of_flags(cache, flags))
    }

    /// That of settings which did not come from a file.
    ///
    /// # Errors
    /// As [`load`], without places.
    pub fn of_settings(settings: Settings) -> Result<Self, Vec<Problem>> {
        let (config, faults) = Self::of(settings);
        if faults.is_empty() {
            return Ok(config);
        }
        Err(faults.into_iter().map(|fault| fault.into_problem(None)).collect())
    }

    /// Makes what can be made, and tells what is wrong.
    fn of(mut settings: Settings) -> (Self, Vec<Fault>) {
        let mut faults = sites::expand_presets(&mut settings);
        check::settings(&settings, &mut faults);
        let Settings { server, cache, site } = settings;
        (Self { server, cache, sites: Sites::of(site) }, faults)
    }
}

impl Settings {
    /// What a command line says, in the words of the file: one site for all hosts.
    pub fn of_flags(cache: Option<&Path>, flags: &args::Serve) -> Self {
        let nowhere = |path: &Path| Spanned::new(0..0, path.to_owned());
        let mut settings = Self::default();
        settings.server.listen = flags.listen.iter().map(|address| Spanned::new(0..0, *address)).collect();
        settings.server.workers = flags.workers.map(|workers| Within(workers.get().into()));
        settings.server.admin = flags
            .admin
            .as_deref()
            .map(|socket| Spanned::new(0..0, Admin { socket: Some(nowhere(socket)), ..Admin::default() }));
        settings.server.purge_from.clone_from(&flags.purge_from);
        settings.server.purge_token_file = flags.purge_token_file.as_deref().map(nowhere);
        settings.server.access_log = flags.access_log().map(|log| Spanned::new(0..0, log));
        settings.cache.path = cache.map(nowhere);
        settings.cache.size = flags.size.map(SizeWithin);
        let mut site = site::Site { root: flags.root.as_deref().map(nowhere), ..site::Site::default() };
        for origin in &flags.origin {
            site.origins.push(Spanned::new(0..0, origin.clone()));
        }
        if !flags.origin.is_empty() {
            let timeout = Period(flags.origin_timeout);
            let tls = flags
                .origin_ca
                .as_deref()
                .map(|ca_file| Spanned::new(0..0, Tls { ca_file: Some(nowhere(ca_file)), ..Tls::default() }));
            let host_header = flags.origin_host.clone().unwrap_or_default();
            let usual = OriginSettings::default();
            let connect_timeout = usual.connect_timeout.min(timeout);
            let asked = OriginSettings { connect_timeout, timeout, host_header, tls, ..usual };
            site.origin = Some(Spanned::new(0..0, asked));
        }
        site.cache.store_set_cookie = flags.store_set_cookie;
        settings.site = vec![Spanned::new(0..0, site)];
        settings
    }
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
