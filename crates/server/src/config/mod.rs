//! The configuration of the server, from a TOML file or from settings made in code, and checked.
//!
//! ```text
//! file ── read ──> Settings ── check ──> faults       the keys of the file
//! code ──────────────^    └─── Config::of ──> Config  the same without mistakes, with the rules of presets
//! ```
//!
//! [`load`] reads a file and reports all mistakes at once, each [`Problem`] with its line, its column and a hint.
//! [`Config::of_settings`] does the same for settings that didn't come from a file. `docs/configuration.md` describes each key; a test compares the
//! page with the code.
//!
//! # What is absent
//! - Loading a configuration opens no socket and no volume, starts no thread, and resolves no host. It changes nothing.
//! - Keys, and rules that can be matched. `key` and `rules` make them from these settings, and `sites` finds a site by its host.

pub mod access_log;
mod check;
mod check_limits;
mod check_path;
mod check_rewrite;
mod check_site;
mod check_tls;
pub mod collector;
pub mod compression;
pub mod fleet;
pub mod language;
pub mod listen;
pub mod log;
pub mod log_format;
pub(crate) mod memory;
mod messages;
pub mod names;
pub mod origin;
pub mod origin_url;
pub mod presets;
mod problem;
mod read;
pub mod redirect;
pub mod rule;
pub mod second_level;
pub mod settings;
pub mod site;
pub mod site_limits;
pub mod tls;
pub mod trace;
pub mod value;

use std::path::Path;

use http::header::STRICT_TRANSPORT_SECURITY;
use serde::Serialize;

use problem::Fault;
pub use problem::{Place, Problem};
pub use settings::{Admin, Server, Settings, Volume};
pub use site::Site;
/// A value with its place in the file; values from elsewhere have the place `0..0`.
pub use toml::Spanned;

/// A configuration without mistakes.
#[derive(Debug, Serialize)]
pub struct Config {
    /// Sockets, limits, log, administration.
    pub server: Server,
    /// The volume.
    pub cache: Volume,
    /// The purge log that the server shares with others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Spanned<fleet::Fleet>>,
    /// The sites, in the order of the file. The rules of a preset come before those of the site.
    #[serde(rename = "site")]
    pub sites: Vec<Site>,
    /// Settings that probably don't have the effect that the operator wants, in the order of the file.
    #[serde(skip)]
    pub warnings: Vec<Problem>,
}

/// Reads a configuration.
///
/// # Errors
/// All mistakes, in the order of the file. A file that can't be read is one problem, without a place.
pub fn load(path: &Path) -> Result<Config, Vec<Problem>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text),
        Err(error) => {
            let hint = Some(check_path::hint(&error, "give a file that this user may read, in UTF-8"));
            Err(vec![Problem {
                place: None,
                message: format!("the file can't be read: {error}"),
                hint,
                is_logged: false,
            }])
        }
    }
}

/// The same for the text of a file.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str) -> Result<Config, Vec<Problem>> {
    let (settings, faults) = read::settings(text);
    // Something that seems to be missing may be in a part of the file that couldn't be read.
    let is_whole = faults.is_empty();
    let (config, more) = Config::of(settings);
    let faults = faults.into_iter().chain(more.into_iter().filter(|fault| is_whole || !fault.is_absence));
    config.judged(faults.collect(), Some(text))
}

impl Config {
    /// The configuration of settings that did not come from a file.
    ///
    /// # Errors
    /// As [`load`], without places.
    pub fn of_settings(settings: Settings) -> Result<Self, Vec<Problem>> {
        let (config, faults) = Self::of(settings);
        config.judged(faults, None)
    }

    /// The configuration with its warnings, unless there is a mistake.
    fn judged(mut self, mut faults: Vec<Fault>, file: Option<&str>) -> Result<Self, Vec<Problem>> {
        faults.sort_by_key(|fault| fault.span.start);
        let warnings = faults.extract_if(.., |fault| fault.is_warning).collect();
        let problems = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.into_problem(file)).collect();
        if !faults.is_empty() {
            return Err(problems(faults));
        }
        self.warnings = problems(warnings);
        Ok(self)
    }

    /// Logs the warnings, when it comes into force.
    pub(crate) fn log_warnings(&self) {
        for warning in self.warnings.iter().filter(|warning| !warning.is_logged) {
            tracing::warn!("the configuration: {}", warning.line());
        }
    }

    /// The configuration of a text, mistakes or not.
    #[cfg(test)]
    pub(crate) fn of_unchecked(text: &str) -> Self {
        Self::of(read::settings(text).0).0
    }

    /// Makes the configuration as far as possible, and reports the mistakes.
    fn of(mut settings: Settings) -> (Self, Vec<Fault>) {
        let mut faults = expand_presets(&mut settings);
        check::settings(&settings, &mut faults);
        let has_tls = settings.site.iter().any(|site| site.get_ref().tls.is_some());
        let Settings { mut server, cache, fleet, site } = settings;
        server.complete(has_tls);
        let mut sites: Vec<site::Site> = site.into_iter().map(Spanned::into_inner).collect();
        let returned = server.tracing.iter().flat_map(|tracing| tracing.get_ref().returned());
        for name in returned {
            for site in &mut sites {
                site.cache.strip_response.push(name.clone());
            }
        }
        for site in sites.iter_mut().filter(|site| site.hsts.is_some()) {
            // Browsers follow the first of several fields, so the origin's must not be there.
            site.cache.strip_response.push(names::FieldName(STRICT_TRANSPORT_SECURITY));
        }
        (Self { server, cache, fleet, sites, warnings: Vec::new() }, faults)
    }
}

/// Puts the rules of each site's preset before its own. A preset also ignores analytics cookies, unless the site says otherwise.
fn expand_presets(settings: &mut Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    for site in &mut settings.site {
        let span = site.span();
        let site = site.get_mut();
        let Some(preset) = site.preset else { continue };
        match preset.rules() {
            // They have no place in the file.
            Ok(rules) => {
                site.key.ignore_analytics.get_or_insert(true);
                let rules = rules.into_iter().map(|rule| Spanned::new(0..0, rule));
                site.rule = rules.chain(site.rule.drain(..)).collect();
            }
            Err(message) => faults.push(Fault::new(
                span,
                message,
                "this is a bug of Eyewall, not a mistake in the file; please report it",
            )),
        }
    }
    faults
}

#[cfg(test)]
mod documented;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_tls;
