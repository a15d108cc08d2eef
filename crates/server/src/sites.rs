//! The sites, by host, with their keys and rules ready to use.

use std::collections::HashMap;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};

use crate::config::names::HostPattern;
use crate::config::site;
use crate::error_pages::ErrorPages;
use crate::key::KeyRules;
use crate::rules::Rules;

/// One site.
#[derive(Debug)]
pub(crate) struct Site {
    /// Its settings; the rules of its preset come before its own.
    pub(crate) settings: site::Site,
    /// The parts of its keys.
    pub(crate) key: KeyRules,
    /// Its rules.
    pub(crate) rules: Rules,
    /// The pages that it shows in place of errors.
    pub(crate) error_pages: ErrorPages,
    /// A hash of the settings that decide which responses are stored, under which keys.
    settings_hash: [u8; 32],
}

impl Site {
    fn of(settings: &site::Site) -> Self {
        let (key, rules, error_pages) = (KeyRules::of(settings), Rules::of(settings), ErrorPages::of(settings));
        Self { settings: settings.clone(), key, rules, error_pages, settings_hash: hash_of(settings) }
    }

    /// What two nodes of a fleet must have in common to share the response of a key: the key, and the settings of the site.
    pub(crate) fn basis(&self, key: &[u8]) -> [u8; 32] {
        sha256(&[&self.settings_hash, key])
    }

    /// The name of the site in its tags in the volume.
    pub(crate) fn name(&self) -> Option<&str> {
        self.settings.name()
    }
}

impl Site {
    /// The name of the site for operators: the first of its hosts that is a name, or the first one. No two sites have the same.
    pub(crate) fn label(&self) -> String {
        let first = || self.settings.hosts.first().map(|host| host.get_ref().to_string());
        self.name().map(str::to_owned).or_else(first).unwrap_or_default()
    }
}

/// Leaves out what may differ from machine to machine: the ways to the origin, folders, certificates, limits and logs.
fn hash_of(settings: &site::Site) -> [u8; 32] {
    let (origins, limits) = (Vec::new(), site::Site::default().limits);
    let common =
        site::Site { origins, origin: None, root: None, tls: None, limits, access_log: None, ..settings.clone() };
    // The other form also has the places in the file.
    let bytes = serde_json::to_vec(&common).unwrap_or_else(|_| format!("{common:?}").into_bytes());
    sha256(&[&bytes])
}

fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Context::new(&SHA256);
    for part in parts {
        hash.update(part);
    }
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    bytes
}

/// All sites. A name takes precedence over a wildcard, a longer wildcard over a shorter one, and `*` comes last.
#[derive(Debug)]
pub(crate) struct Sites {
    all: Vec<Arc<Site>>,
    by_name: HashMap<String, usize>,
    /// Suffixes that begin with a dot, the longest first.
    by_suffix: Vec<(String, usize)>,
    of_all_others: Option<usize>,
    settings_hash: [u8; 32],
}

impl Sites {
    /// The sites of a configuration, in their order.
    pub(crate) fn of(sites: &[site::Site]) -> Self {
        let all: Vec<_> = sites.iter().map(|site| Arc::new(Site::of(site))).collect();
        let hashes: Vec<&[u8]> = all.iter().map(|site| &site.settings_hash[..]).collect();
        let settings_hash = sha256(&hashes);
        let mut found =
            Self { all, by_name: HashMap::new(), by_suffix: Vec::new(), of_all_others: None, settings_hash };
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
    pub(crate) fn find(&self, host: &str) -> Option<&Arc<Site>> {
        self.all.get(self.number_of(host)?)
    }

    /// Its number, in the order of the file.
    pub(crate) fn number_of(&self, host: &str) -> Option<usize> {
        let below = || self.by_suffix.iter().find(|(suffix, _)| host.ends_with(suffix)).map(|(_, number)| *number);
        self.by_name.get(host).copied().or_else(below).or(self.of_all_others)
    }

    /// A hash of what two nodes of a fleet must have in common to share the responses of all sites ([`Site::basis`]).
    pub(crate) fn settings_hash(&self) -> [u8; 32] {
        self.settings_hash
    }

    /// All of them, in the order of the file.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Arc<Site>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn sites(text: &str) -> Sites {
        Sites::of(&parse(text).unwrap().sites)
    }

    #[test]
    fn a_site_without_hosts_is_for_all() {
        let sites = sites("[[site]]\norigins = [\"http://127.0.0.1:3000\"]");
        assert_eq!(sites.find("any.example").unwrap().key.host("any.example"), "any.example");
    }

    #[test]
    fn nodes_share_responses_by_the_same_keys_and_settings() {
        let basis = |text: &str, key: &[u8]| sites(&format!("[[site]]\n{text}")).find("x").unwrap().basis(key);
        let one = basis("origins = [\"http://a\"]", b"key");
        assert_eq!(
            one,
            basis("# The other machine.\n\norigins = [\"http://b\"]\norigin = { timeout = \"1s\" }", b"key")
        );
        assert_ne!(one, basis("origins = [\"http://a\"]", b"key2"));
        for other in [
            "key = { cookies = [\"lang\"] }",
            "cache = { ttl_min = \"1s\" }",
            "rule = [{ path = [\"/a\"], no_store = true }]",
        ] {
            assert_ne!(one, basis(&format!("origins = [\"http://a\"]\n{other}"), b"key"), "{other}");
        }
    }

    #[test]
    fn a_host_finds_the_nearest_site() {
        let text = "[[site]]\norigins = [\"http://any\"]\n[[site]]\nhosts = [\"*.b.c\"]\norigins = [\"http://below\"]\n\
                [[site]]\nhosts = [\"*.a.b.c\"]\norigins = [\"http://deeper\"]\n\
                [[site]]\nhosts = [\"x.b.c\", \"y.b.c\"]\naliases = [\"z\"]\norigins = [\"http://name\"]\n";
        let found = sites(text);
        let origin = |host: &str| found.find(host).unwrap().settings.origins[0].get_ref().to_string();
        for (host, expected) in [
            ("x.b.c", "http://name"),
            ("z", "http://name"),
            ("w.b.c", "http://below"),
            ("v.a.b.c", "http://deeper"),
            ("b.c", "http://any"),
            ("xb.c", "http://any"),
        ] {
            assert_eq!(origin(host), expected, "{host}");
        }
        let site = found.find("z").unwrap();
        assert_eq!((site.key.host("z"), site.key.host("y.b.c")), ("x.b.c", "y.b.c"));
        assert!(sites("[[site]]\nhosts = [\"a\"]\norigins = [\"http://x\"]").find("b").is_none());
    }
}
