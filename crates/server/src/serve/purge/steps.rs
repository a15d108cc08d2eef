//! What the subjects of a demand mean in keys and tags.

use eyewall::Purge as Kind;
use http::Uri;

use super::{Effect, PurgeError, Subject};
use crate::config::{Site, Sites};
use crate::key::{CacheKey, KEY_BYTES_MAX, KeyError, RequestHost, Scheme, unescaped};
use crate::serve::proxy::pages::Pages;
use crate::serve::proxy::tags;
use crate::serve::store::Meant;

/// What is to be done for a subject.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// An address, and the tag that its entries carry where it has several keys.
    Address {
        address: String,
        tag: Option<String>,
    },
    Tags(Vec<String>),
    Prefixes(Vec<String>),
    Everything,
}

impl Step {
    /// # Errors
    /// Those of [`PurgeError`] that the subject itself is to blame for.
    pub(super) fn of(sites: &Sites, subject: &Subject) -> Result<Self, PurgeError> {
        match subject {
            Subject::Url(text) => of_url(sites, text),
            Subject::Tag { tag, host } => of_tag(sites, tag, host.as_deref()),
            Subject::Prefix(text) => of_prefix(sites, text),
            Subject::Host(text) => of_host(sites, text),
            Subject::Everything => Ok(Self::Everything),
        }
    }

    /// Whether the volume has to remember it.
    pub(super) fn is_noted(&self) -> bool {
        !matches!(self, Self::Address { tag: None, .. })
    }

    pub(super) fn run(&self, pages: &Pages, kind: Kind) -> Result<Effect, PurgeError> {
        let many = match self {
            Self::Address { address, tag } => {
                let was_there = pages.purge_address(address, tag.as_deref(), kind)?;
                return Ok(match tag {
                    _ if was_there => Effect::Found,
                    // There may be entries under other keys.
                    Some(_) => Effect::Accepted,
                    None => Effect::Absent,
                });
            }
            Self::Tags(tags) => pages.purge_many(tags.iter().map(|tag| Meant::Tag(tag)), kind),
            Self::Prefixes(prefixes) => pages.purge_many(prefixes.iter().map(|prefix| Meant::Prefix(prefix)), kind),
            Self::Everything => pages.purge_many([Meant::Everything], kind),
        };
        many.map(|()| Effect::Accepted).map_err(PurgeError::from)
    }

    /// The address, or the one prefix, as it stands in keys.
    pub(super) fn into_name(self) -> Option<String> {
        match self {
            Self::Address { address, .. } => Some(address),
            Self::Prefixes(prefixes) => prefixes.into_iter().next(),
            Self::Tags(_) | Self::Everything => None,
        }
    }
}

fn of_url(sites: &Sites, text: &str) -> Result<Step, PurgeError> {
    let no_url = || PurgeError::Url(text.to_owned());
    let (host, target) = split(text).ok_or_else(no_url)?;
    let site = site_of(sites, &host)?;
    // An address without a path has that of the root (RFC 9110, section 4.2.3).
    let target = if target.starts_with('/') { target.to_owned() } else { format!("/{target}") };
    let target: Uri = target.parse().map_err(|_| no_url())?;
    let key = key_of(site, &host, target, text)?;
    Ok(Step::Address { tag: tags::address(site, &key), address: key.address().to_owned() })
}

fn of_tag(sites: &Sites, tag: &str, host: Option<&str>) -> Result<Step, PurgeError> {
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
            let site = site_of(sites, &host)?;
            push(tags::named(site, tag));
            push(tags::many(site));
            let root = key_of(site, &host, Uri::from_static("/"), text)?;
            push(tags::group(root.host_prefix(), tag));
        }
        None => {
            for site in sites {
                push(tags::named(site, tag));
                push(tags::many(site));
            }
        }
    }
    Ok(Step::Tags(meant))
}

fn of_prefix(sites: &Sites, text: &str) -> Result<Step, PurgeError> {
    let no_prefix = || PurgeError::Prefix(text.to_owned());
    let (host, target) = split(text).ok_or_else(no_prefix)?;
    let is_printable = target.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    if !target.starts_with('/') || !is_printable {
        return Err(no_prefix());
    }
    let site = site_of(sites, &host)?;
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    // What is behind the last slash is the beginning of a name, which may look like a step but be none.
    let name_start = if query.is_some() { path.len() } else { path.rfind('/').map_or(0, |slash| slash + 1) };
    let (folder, name) = path.split_at(name_start);
    let folder = key_of(site, &host, folder.parse().map_err(|_| no_prefix())?, text)?;
    let wrong = |source| PurgeError::Key { text: text.to_owned(), source };
    let mut prefix = folder.address().to_owned();
    prefix.push_str(&unescaped(name).map_err(wrong)?);
    if let Some(query) = query {
        prefix.extend(["?", query]);
    }
    if prefix.len() > KEY_BYTES_MAX {
        return Err(wrong(KeyError::TooLong));
    }
    Ok(Step::Prefixes(vec![prefix]))
}

fn of_host(sites: &Sites, text: &str) -> Result<Step, PurgeError> {
    let host = host_of(text)?;
    let site = site_of(sites, &host)?;
    let root = key_of(site, &host, Uri::from_static("/"), text)?;
    let mut prefixes = vec![root.host_prefix().to_owned()];
    if host.port().is_none() {
        prefixes.push(format!("{}://{}:", Scheme::Http.as_str(), root.authority()));
    }
    Ok(Step::Prefixes(prefixes))
}

/// Host and the rest of an address. TLS ends before this server, if there is any: `https` means what came in as `http`.
fn split(text: &str) -> Option<(RequestHost, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let (authority, target) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = match scheme.to_ascii_lowercase().as_str() {
        "http" => authority,
        "https" => authority.strip_suffix(":443").unwrap_or(authority),
        _ => return None,
    };
    Some((RequestHost::parse(authority).ok()?, target))
}

fn host_of(text: &str) -> Result<RequestHost, PurgeError> {
    RequestHost::parse(text).map_err(|_| PurgeError::Host(text.to_owned()))
}

fn site_of<'a>(sites: &'a Sites, host: &RequestHost) -> Result<&'a Site, PurgeError> {
    sites.find(host.name()).map(AsRef::as_ref).ok_or_else(|| PurgeError::NoSite(host.name().to_owned()))
}

fn key_of(site: &Site, host: &RequestHost, target: Uri, text: &str) -> Result<CacheKey, PurgeError> {
    CacheKey::of_address(site, host, Scheme::Http, target)
        .map_err(|source| PurgeError::Key { text: text.to_owned(), source })
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

    fn step(subject: &Subject) -> Result<Step, PurgeError> {
        Step::of(&config::parse(SITES).unwrap().sites, subject)
    }

    #[test]
    fn addresses_are_put_through_the_rules_of_their_site() {
        for (text, expected) in [
            ("http://example.org/a", "http://example.org/a"),
            ("https://www.example.org:443/a/./b?z=1&ref=x&a=2#part", "http://example.org/a/b?a=2&z=1"),
            ("HTTP://Example.ORG:80", "http://example.org/"),
            ("http://example.org:8080?q", "http://example.org:8080/?q"),
            ("http://a.shops.example/%7ea", "http://a.shops.example/~a"),
        ] {
            let Ok(Step::Address { address, tag }) = step(&Subject::Url(text.to_owned())) else { panic!("{text}") };
            assert_eq!((address.as_str(), tag.is_some()), (expected, expected.contains("example.org")), "{text}");
        }
        for text in ["", "/a", "example.org/a", "ftp://example.org/a", "http://", "http:///a", "http://u@example.org/"]
        {
            assert!(matches!(step(&Subject::Url(text.to_owned())), Err(PurgeError::Url(_))), "{text}");
        }
        assert!(matches!(step(&Subject::Url("http://example.org/%zz".to_owned())), Err(PurgeError::Key { .. })));
        assert!(matches!(step(&Subject::Url("http://elsewhere.example/".to_owned())), Err(PurgeError::NoSite(_))));
    }

    #[test]
    fn a_prefix_is_one_of_a_whole_host() {
        for (text, expected) in [
            ("http://example.org/", "http://example.org/"),
            ("https://www.example.org/a/../b/c", "http://example.org/b/c"),
            ("http://example.org/a/..", "http://example.org/a/.."),
            ("http://example.org/.well%2dknown", "http://example.org/.well-known"),
            ("http://example.org/a/./list?page=", "http://example.org/a/list?page="),
        ] {
            let prefix = step(&Subject::Prefix(text.to_owned())).unwrap();
            assert_eq!(prefix, Step::Prefixes(vec![expected.to_owned()]), "{text}");
        }
        for text in
            ["", "http://", "http://ex", "http://example.org", "/a", "http://example.org/a b", "http://example.org/#"]
        {
            assert!(matches!(step(&Subject::Prefix(text.to_owned())), Err(PurgeError::Prefix(_))), "{text}");
        }
        let cut = step(&Subject::Prefix("http://example.org/a%2".to_owned()));
        assert!(matches!(cut, Err(PurgeError::Key { source: KeyError::Path, .. })));
        let long = step(&Subject::Prefix(format!("http://example.org/{}", "a".repeat(KEY_BYTES_MAX))));
        assert!(matches!(long, Err(PurgeError::Key { source: KeyError::TooLong, .. })));
    }

    #[test]
    fn a_host_is_that_of_all_ports_or_of_one() {
        for (text, expected) in [
            ("www.example.org", &["http://example.org/", "http://example.org:"][..]),
            ("example.org:80", &["http://example.org/"]),
            ("A.shops.example:8080", &["http://a.shops.example:8080/"]),
        ] {
            let expected = expected.iter().map(|prefix| (*prefix).to_owned()).collect();
            assert_eq!(step(&Subject::Host(text.to_owned())).unwrap(), Step::Prefixes(expected), "{text}");
        }
        for text in ["", "*.shops.example", "http://example.org/", "example.org/"] {
            assert!(matches!(step(&Subject::Host(text.to_owned())), Err(PurgeError::Host(_))), "{text}");
        }
        assert!(matches!(step(&Subject::Host("elsewhere.example".to_owned())), Err(PurgeError::NoSite(_))));
    }

    #[test]
    fn a_tag_is_one_of_a_site_or_of_each() {
        let tags = |host: Option<&str>| {
            step(&Subject::Tag { tag: "post-7".to_owned(), host: host.map(str::to_owned) }).unwrap()
        };
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let all = texts(&["example.org:post-7", "example.org:*", "post-7", "*"]);
        assert_eq!(tags(None), Step::Tags(all));
        let group = tags::group("http://example.org/", "post-7");
        assert_eq!(tags(Some("www.example.org")), Step::Tags(texts(&["example.org:post-7", "example.org:*", &group])));
        let empty = step(&Subject::Tag { tag: String::new(), host: None });
        assert!(matches!(empty, Err(PurgeError::EmptyTag)));
    }
}
