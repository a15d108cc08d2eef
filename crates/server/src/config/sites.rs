//! The sites, by host, with their keys and rules ready to use.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use toml::Spanned;

use super::names::HostPattern;
use super::problem::Fault;
use super::settings::Settings;
use super::site;
use crate::key::KeyRules;
use crate::rules::Rules;

/// One site.
#[derive(Debug, Serialize)]
pub struct Site {
    /// Its settings; the rules of its preset come before its own.
    #[serde(flatten)]
    pub settings: site::Site,
    /// The parts of its keys.
    #[serde(skip)]
    pub(crate) key: KeyRules,
    /// Its rules.
    #[serde(skip)]
    pub(crate) rules: Rules,
    /// The first of its hosts that is a name. Aliases have it in their keys.
    #[serde(skip)]
    first_name: Option<String>,
}

impl Site {
    fn of(settings: site::Site) -> Self {
        let first_name = settings.hosts.iter().find_map(|host| match host.get_ref() {
            HostPattern::Name(name) => Some(name.clone()),
            HostPattern::Below(_) | HostPattern::Any => None,
        });
        Self {
            key: KeyRules::of(&settings.key),
            rules: Rules::of(&settings.cache, settings.rule.iter().map(Spanned::get_ref)),
            first_name,
            settings,
        }
    }

    /// The name of the site in its tags in the volume: the first of its hosts that is a name. A site for all hosts has none.
    pub fn name(&self) -> Option<&str> {
        self.first_name.as_deref()
    }

    /// The host in the keys, for the host of a request.
    pub fn key_host<'a>(&'a self, host: &'a str) -> &'a str {
        match &self.first_name {
            Some(name) if self.settings.aliases.iter().any(|alias| alias.get_ref().0 == host) => name,
            _ => host,
        }
    }
}

/// All sites. A name takes precedence over a wildcard, a longer wildcard over a shorter one, and `*` comes last.
#[derive(Debug)]
pub struct Sites {
    all: Vec<Arc<Site>>,
    by_name: HashMap<String, usize>,
    /// Suffixes that begin with a dot, the longest first.
    by_suffix: Vec<(String, usize)>,
    of_all_others: Option<usize>,
}

impl Sites {
    pub(super) fn of(sites: Vec<Spanned<site::Site>>) -> Self {
        let all = sites.into_iter().map(|site| Arc::new(Site::of(site.into_inner()))).collect();
        let mut found = Self { all, by_name: HashMap::new(), by_suffix: Vec::new(), of_all_others: None };
        for (number, site) in found.all.iter().enumerate() {
            for host in &site.settings.hosts {
                match host.get_ref() {
                    HostPattern::Name(name) => {
                        found.by_name.insert(name.clone(), number);
                    }
                    HostPattern::Below(suffix) => found.by_suffix.push((suffix.clone(), number)),
                    HostPattern::Any => found.of_all_others = Some(number),
                }
            }
            let aliases = site.settings.aliases.iter().map(|alias| (alias.get_ref().0.clone(), number));
            found.by_name.extend(aliases);
        }
        found.by_suffix.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        found
    }

    /// The site for a host, in lower case.
    pub fn find(&self, host: &str) -> Option<&Arc<Site>> {
        self.all.get(self.number_of(host)?)
    }

    /// Its number, in the order of the file.
    pub fn number_of(&self, host: &str) -> Option<usize> {
        let below = || self.by_suffix.iter().find(|(suffix, _)| host.ends_with(suffix)).map(|(_, number)| *number);
        self.by_name.get(host).copied().or_else(below).or(self.of_all_others)
    }

    /// All of them, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Site>> {
        self.all.iter()
    }
}

impl<'a> IntoIterator for &'a Sites {
    type Item = &'a Arc<Site>;
    type IntoIter = std::slice::Iter<'a, Arc<Site>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Serialize for Sites {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.iter().map(Arc::as_ref))
    }
}

/// Puts the rules of each site's preset before its own. A preset also ignores analytics cookies, unless the site says otherwise.
pub(super) fn expand_presets(settings: &mut Settings) -> Vec<Fault> {
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
