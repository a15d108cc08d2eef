//! The targets of a purge request: the keys, tags and prefixes of its subjects.

use eyewall::Purge as Kind;
use http::Uri;

use super::{Effect, PurgeError, Subject};
use crate::config::{self, Config};
use crate::key::{CacheKey, KEY_BYTES_MAX, KeyError, RequestHost, Scheme, unescaped};
use crate::serve::proxy::tags;
use crate::sites::{Site, Sites};
use eyewall_fleet::Covers;
use eyewall_page_cache::pages::Pages;
use eyewall_page_cache::store::PurgeTarget;

/// The target of a subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An address, under each scheme.
    Address(Vec<Address>),
    Tags(Vec<String>),
    Prefixes(Vec<String>),
    /// The beginning of keys of any kind.
    KeyPrefix(Vec<u8>),
    Everything,
}

/// The address as it is in keys, and the tag of its entries if it has several keys.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Address {
    address: String,
    tag: Option<String>,
}

impl Address {
    pub(super) fn text(&self) -> &str {
        &self.address
    }

    pub(super) fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }
}

/// The configuration that gives subjects their targets.
pub(super) struct Scope<'a> {
    pub(super) sites: &'a Sites,
    /// The schemes of keys. A purge covers all of them, whichever it names: the operator may not know by which scheme a proxy asks,
    /// and wants to purge the page under each.
    pub(super) schemes: &'static [Scheme],
}

impl<'a> Scope<'a> {
    /// Without TLS and without a trusted proxy, only Eyewall's own requests for error pages have `https`.
    pub(super) fn of(config: &Config, sites: &'a Sites) -> Self {
        let is_asked_for = |site: &config::Site| site.tls.is_some() || !site.error_page.is_empty();
        let has_https = config.sites.iter().any(is_asked_for) || !config.server.trusted_proxies.is_empty();
        let schemes: &[Scheme] = if has_https { &[Scheme::Http, Scheme::Https] } else { &[Scheme::Http] };
        Self { sites, schemes }
    }

    fn site(&self, host: &RequestHost) -> Result<&'a Site, PurgeError> {
        self.sites.find(host.name()).map(AsRef::as_ref).ok_or_else(|| PurgeError::NoSite(host.name().to_owned()))
    }

    /// The keys of an address.
    fn keys(&self, host: &RequestHost, target: &Uri, text: &str) -> Result<Vec<CacheKey>, PurgeError> {
        let site = self.site(host)?;
        let key = |scheme: &Scheme| CacheKey::of_address(&site.key, host, *scheme, target.clone());
        let wrong = |source| PurgeError::Key { text: text.to_owned(), source };
        self.schemes.iter().map(|scheme| key(scheme).map_err(wrong)).collect()
    }
}

impl Target {
    /// # Errors
    /// The [`PurgeError`]s of a wrong subject.
    pub(super) fn of(scope: &Scope<'_>, subject: &Subject) -> Result<Self, PurgeError> {
        match subject {
            Subject::Url(text) => of_url(scope, text),
            Subject::Tag { tag, host } => of_tag(scope, tag, host.as_deref()),
            Subject::Prefix(text) => of_prefix(scope, text),
            Subject::Host(text) => of_host(scope, text),
            Subject::Everything => Ok(Self::Everything),
            Subject::EntryTag(tag) => Ok(Self::Tags(vec![tag.clone()])),
            Subject::EntryPrefix(prefix) => Ok(Self::KeyPrefix(prefix.clone())),
        }
    }

    /// What it covers, for notes.
    pub(super) fn covers(&self) -> Vec<Covers<'_>> {
        match self {
            Self::Address(keys) => keys
                .iter()
                .flat_map(|key| [Some(Covers::Address(key.text())), key.tag().map(Covers::Tag)])
                .flatten()
                .collect(),
            Self::Tags(tags) => tags.iter().map(|tag| Covers::Tag(tag)).collect(),
            Self::Prefixes(prefixes) => prefixes.iter().map(|prefix| Covers::Prefix(prefix.as_bytes())).collect(),
            Self::KeyPrefix(prefix) => vec![Covers::Prefix(prefix)],
            Self::Everything => vec![Covers::Everything],
        }
    }

    /// Whether the volume has to remember the purge.
    pub(super) fn is_noted(&self) -> bool {
        !matches!(self, Self::Address(keys) if keys.iter().all(|key| key.tag.is_none()))
    }

    pub(super) fn run(&self, pages: &Pages, kind: Kind) -> Result<Effect, PurgeError> {
        let many = match self {
            Self::Address(keys) => {
                let mut was_there = false;
                for Address { address, tag } in keys {
                    was_there |= pages.purge_address(address, tag.as_deref(), kind)?;
                }
                return Ok(match was_there {
                    true => Effect::Found,
                    // The address may have entries under other keys.
                    false if self.is_noted() => Effect::Accepted,
                    false => Effect::Absent,
                });
            }
            Self::Tags(tags) => pages.purge_many(tags.iter().map(|tag| PurgeTarget::Tag(tag)), kind),
            Self::Prefixes(prefixes) => {
                pages.purge_many(prefixes.iter().map(|prefix| PurgeTarget::Prefix(prefix.as_bytes())), kind)
            }
            Self::KeyPrefix(prefix) => pages.purge_many([PurgeTarget::Prefix(prefix)], kind),
            Self::Everything => pages.purge_many([PurgeTarget::Everything], kind),
        };
        many.map(|()| Effect::Accepted).map_err(PurgeError::from)
    }

    /// The address, or the prefix, as it is in the first key.
    pub(super) fn into_name(self) -> Option<String> {
        match self {
            Self::Address(keys) => keys.into_iter().next().map(|key| key.address),
            Self::Prefixes(prefixes) => prefixes.into_iter().next(),
            Self::Tags(_) | Self::KeyPrefix(_) | Self::Everything => None,
        }
    }
}

fn of_url(scope: &Scope<'_>, text: &str) -> Result<Target, PurgeError> {
    let no_url = || PurgeError::Url(text.to_owned());
    let (host, target) = split(text).ok_or_else(no_url)?;
    let site = scope.site(&host)?;
    // An address without a path has that of the root (RFC 9110, section 4.2.3).
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let target: Uri = target.parse().map_err(|_| no_url())?;
    let keys = scope.keys(&host, &target, text)?;
    let address = |key: CacheKey| Address { tag: tags::address(site, &key), address: key.address().to_owned() };
    Ok(Target::Address(keys.into_iter().map(address).collect()))
}

fn of_tag(scope: &Scope<'_>, tag: &str, host: Option<&str>) -> Result<Target, PurgeError> {
    if tag.is_empty() {
        return Err(PurgeError::EmptyTag);
    }
    let mut meant: Vec<String> = Vec::new();
    let mut push = |tag: String| {
        if !meant.contains(&tag) {
            meant.push(tag);
        }
    };
    match host {
        Some(text) => {
            let host = host_of(text)?;
            let site = scope.site(&host)?;
            push(tags::named(site, tag));
            push(tags::many(site));
            for root in scope.keys(&host, &Uri::from_static("/"), text)? {
                push(tags::group(root.host_prefix(), tag));
            }
        }
        None => {
            for site in scope.sites {
                push(tags::named(site, tag));
                push(tags::many(site));
            }
        }
    }
    Ok(Target::Tags(meant))
}

fn of_prefix(scope: &Scope<'_>, text: &str) -> Result<Target, PurgeError> {
    let no_prefix = || PurgeError::Prefix(text.to_owned());
    let (host, target) = split(text).ok_or_else(no_prefix)?;
    let is_printable = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !target.starts_with('/') || !is_printable {
        return Err(no_prefix());
    }
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    // The text after the last slash is the beginning of a name, so `.` or `..` may be the beginning of a longer name.
    let name_start = if query.is_some() { path.len() } else { path.rfind('/').map_or(0, |slash| slash + 1) };
    let (folder, name) = path.split_at(name_start);
    let folders = scope.keys(&host, &folder.parse().map_err(|_| no_prefix())?, text)?;
    let wrong = |source| PurgeError::Key { text: text.to_owned(), source };
    let mut rest = unescaped(name).map_err(wrong)?.into_owned();
    if let Some(query) = query {
        rest.extend(["?", query]);
    }
    let prefixes: Vec<String> = folders.iter().map(|folder| format!("{}{rest}", folder.address())).collect();
    if prefixes.iter().any(|prefix| prefix.len() > KEY_BYTES_MAX) {
        return Err(wrong(KeyError::TooLong));
    }
    Ok(Target::Prefixes(prefixes))
}

fn of_host(scope: &Scope<'_>, text: &str) -> Result<Target, PurgeError> {
    let host = host_of(text)?;
    let mut prefixes = Vec::new();
    for root in scope.keys(&host, &Uri::from_static("/"), text)? {
        prefixes.push(root.host_prefix().to_owned());
        if host.port().is_none() {
            prefixes.push(format!("{}://{}:", root.scheme().as_str(), root.authority()));
        }
    }
    Ok(Target::Prefixes(prefixes))
}

/// Host and the rest of an address. Its scheme doesn't count ([`Scope`]), except for its default port.
fn split(text: &str) -> Option<(RequestHost, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = match scheme.to_ascii_lowercase().as_str() {
        "http" => authority.strip_suffix(":80").unwrap_or(authority),
        "https" => authority.strip_suffix(":443").unwrap_or(authority),
        _ => return None,
    };
    Some((RequestHost::parse(authority).ok()?, target))
}

fn host_of(text: &str) -> Result<RequestHost, PurgeError> {
    RequestHost::parse(text).map_err(|_| PurgeError::Host(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const SITES: &str = r#"
        [[site]]
        hosts = ["example.org"]
        aliases = ["www.example.org"]
        origins = ["http://127.0.0.1:1"]
        key = { strip_query = ["ref"], sort_query = true, cookies = ["lang"] }
        [[site]]
        hosts = ["*.shops.example"]
        origins = ["http://127.0.0.1:1"]
    "#;

    fn target(subject: &Subject) -> Result<Target, PurgeError> {
        let config = config::parse(SITES).unwrap();
        Target::of(&Scope::of(&config, &Sites::of(&config.sites)), subject)
    }

    #[test]
    fn addresses_get_the_keys_of_their_site() {
        for (text, expected) in [
            ("http://example.org/a", "http://example.org/a"),
            ("https://www.example.org:443/a/./b?z=1&ref=x&a=2#part", "http://example.org/a/b?a=2&z=1"),
            ("HTTP://Example.ORG:80", "http://example.org/"),
            ("http://example.org:8080?q", "http://example.org:8080/?q"),
            ("http://a.shops.example/%7ea", "http://a.shops.example/~a"),
        ] {
            let Ok(Target::Address(keys)) = target(&Subject::Url(text.to_owned())) else { panic!("{text}") };
            let found: Vec<_> = keys.iter().map(|key| (key.address.as_str(), key.tag.is_some())).collect();
            assert_eq!(found, [(expected, expected.contains("example.org"))], "{text}");
        }
        for text in ["", "/a", "example.org/a", "ftp://example.org/a", "http://", "http:///a", "http://u@example.org/"]
        {
            assert!(matches!(target(&Subject::Url(text.to_owned())), Err(PurgeError::Url(_))), "{text}");
        }
        assert!(matches!(target(&Subject::Url("http://example.org/%zz".to_owned())), Err(PurgeError::Key { .. })));
        assert!(matches!(target(&Subject::Url("http://elsewhere.example/".to_owned())), Err(PurgeError::NoSite(_))));
    }

    #[test]
    fn a_prefix_has_a_whole_host() {
        for (text, expected) in [
            ("http://example.org/", "http://example.org/"),
            ("https://www.example.org/a/../b/c", "http://example.org/b/c"),
            ("http://example.org/a/..", "http://example.org/a/.."),
            ("http://example.org/.well%2dknown", "http://example.org/.well-known"),
            ("http://example.org/a/./list?page=", "http://example.org/a/list?page="),
        ] {
            let prefix = target(&Subject::Prefix(text.to_owned())).unwrap();
            assert_eq!(prefix, Target::Prefixes(vec![expected.to_owned()]), "{text}");
        }
        for text in
            ["", "http://", "http://ex", "http://example.org", "/a", "http://example.org/a b", "http://example.org/#"]
        {
            assert!(matches!(target(&Subject::Prefix(text.to_owned())), Err(PurgeError::Prefix(_))), "{text}");
        }
        let cut = target(&Subject::Prefix("http://example.org/a%2".to_owned()));
        assert!(matches!(cut, Err(PurgeError::Key { source: KeyError::Path, .. })));
        let long = target(&Subject::Prefix(format!("http://example.org/{}", "a".repeat(KEY_BYTES_MAX))));
        assert!(matches!(long, Err(PurgeError::Key { source: KeyError::TooLong, .. })));
    }

    #[test]
    fn a_host_means_all_ports_or_one() {
        for (text, expected) in [
            ("www.example.org", &["http://example.org/", "http://example.org:"][..]),
            ("example.org:80", &["http://example.org/"]),
            ("A.shops.example:8080", &["http://a.shops.example:8080/"]),
        ] {
            let expected = expected.iter().map(|prefix| (*prefix).to_owned()).collect();
            assert_eq!(target(&Subject::Host(text.to_owned())).unwrap(), Target::Prefixes(expected), "{text}");
        }
        for text in ["", "*.shops.example", "http://example.org/", "example.org/"] {
            assert!(matches!(target(&Subject::Host(text.to_owned())), Err(PurgeError::Host(_))), "{text}");
        }
        assert!(matches!(target(&Subject::Host("elsewhere.example".to_owned())), Err(PurgeError::NoSite(_))));
    }

    #[test]
    fn a_tag_belongs_to_a_site_or_to_each() {
        let tags = |host: Option<&str>| {
            target(&Subject::Tag { tag: "post-7".to_owned(), host: host.map(str::to_owned) }).unwrap()
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let all = texts(&["example.org:post-7", "example.org:*", "post-7", "*"]);
        assert_eq!(tags(None), Target::Tags(all));
        let group = tags::group("http://example.org/", "post-7");
        assert_eq!(
            tags(Some("www.example.org")),
            Target::Tags(texts(&["example.org:post-7", "example.org:*", &group]))
        );
        let empty = target(&Subject::Tag { tag: String::new(), host: None });
        assert!(matches!(empty, Err(PurgeError::EmptyTag)));
    }

    #[test]
    fn with_a_trusted_proxy_a_purge_also_covers_https() {
        let config = config::parse(&format!("[server]\ntrusted_proxies = [\"::1\"]\n{SITES}")).unwrap();
        let sites = Sites::of(&config.sites);
        let target = |subject: Subject| Target::of(&Scope::of(&config, &sites), &subject).unwrap();
        let Target::Address(keys) = target(Subject::Url("https://a.shops.example/a".to_owned())) else {
            panic!("a target")
        };
        let addresses: Vec<_> = keys.iter().map(|key| key.address.as_str()).collect();
        assert_eq!(addresses, ["http://a.shops.example/a", "https://a.shops.example/a"]);
        let prefixes = |texts: &[&str]| Target::Prefixes(texts.iter().map(|text| (*text).to_owned()).collect());
        let prefix = target(Subject::Prefix("http://a.shops.example/a?b".to_owned()));
        assert_eq!(prefix, prefixes(&["http://a.shops.example/a?b", "https://a.shops.example/a?b"]));
        let host = target(Subject::Host("a.shops.example:81".to_owned()));
        assert_eq!(host, prefixes(&["http://a.shops.example:81/", "https://a.shops.example:81/"]));
        let tag = target(Subject::Tag { tag: "t".to_owned(), host: Some("a.shops.example".to_owned()) });
        let Target::Tags(tags) = tag else { panic!("tags") };
        for scheme in ["http", "https"] {
            assert!(tags.contains(&tags::group(&format!("{scheme}://a.shops.example/"), "t")));
        }
    }
}
