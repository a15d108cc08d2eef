//! What tells requests of the sample apart.

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::config::presets::TRACKERS;
use crate::key::{KeyRules, decoded_parameter};

/// A request that is in the sample, until it has a response.
pub(crate) struct Candidate {
    pub(super) unit: u64,
    pub(super) host: Box<str>,
    /// Path and query.
    pub(super) target: Box<str>,
}

/// The hashes of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) key: u64,
    /// Without parameters of trackers.
    pub(super) bare: u64,
    /// Whether the key has such parameters.
    pub(super) has_trackers: bool,
}

impl Candidate {
    pub(crate) fn new(unit: u64, host: &[u8], target: &str) -> Self {
        let host = String::from_utf8_lossy(host).to_ascii_lowercase();
        Self { unit, host: host.into(), target: target.into() }
    }
}

/// The hash by which a request is sampled.
#[inline]
pub(super) fn unit(host: &[u8], target: &str) -> u64 {
    let path = &target.as_bytes()[..memchr::memchr(b'?', target.as_bytes()).unwrap_or(target.len())];
    xxh3_64_with_seed(path, xxh3_64_with_seed(host, 0))
}

/// The hashes of a request for a site with these rules.
pub(super) fn keys(rules: &KeyRules, unit: u64, target: &str) -> Keys {
    let Some((_, query)) = target.split_once('?') else {
        return Keys { key: unit, bare: unit, has_trackers: false };
    };
    let (mut key, mut bare) = (Xxh3::with_seed(unit), Xxh3::with_seed(unit));
    let (mut has_trackers, mut are_kept) = (false, [false; 2]);
    for piece in query.split('&').filter(|piece| !rules.strips(piece)) {
        let name = decoded_parameter(piece.split_once('=').map_or(piece, |(name, _)| name));
        let is_tracker = is_tracker(&name);
        has_trackers |= is_tracker;
        for (at, hash) in [&mut key, &mut bare].into_iter().enumerate() {
            if at == 0 || !is_tracker {
                hash.update(piece.as_bytes());
                hash.update(b"&");
                are_kept[at] = true;
            }
        }
    }
    let of = |is_kept: bool, hash: Xxh3| if is_kept { hash.digest() } else { unit };
    Keys { key: of(are_kept[0], key), bare: of(are_kept[1], bare), has_trackers }
}

fn is_tracker(name: &str) -> bool {
    TRACKERS.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *known == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use crate::sites::Sites;

    #[test]
    fn parameters_of_trackers_make_other_keys_and_no_other_bare_ones() {
        let site = |key: &str| {
            let config = parse(&format!("[[site]]\norigins = [\"http://a\"]\n[site.key]\n{key}\n")).unwrap();
            Sites::of(&config.sites).iter().next().unwrap().key.clone()
        };
        let (plain, stripping) = (site(""), site("strip_trackers = true\nstrip_query = [\"ref\"]"));
        let unit = unit(b"a", "/page?x");
        assert_eq!(unit, super::unit(b"a", "/page"));
        assert_ne!(unit, super::unit(b"b", "/page"));
        let of = |rules: &KeyRules, target: &str| keys(rules, unit, target);
        let page = of(&plain, "/page");
        let tracked = of(&plain, "/page?utm_source=a&gclid=b&utm_source=c");
        assert_eq!((page.key, page.bare, tracked.bare), (unit, unit, unit));
        assert_eq!((tracked.key == unit, tracked.has_trackers, page.has_trackers), (false, true, false));
        assert_eq!(of(&plain, "/page?id=1&utm%5Fx").bare, of(&plain, "/page?id=1").key);
        assert_ne!(of(&plain, "/page?id=1").key, of(&plain, "/page?id=2").key);
        assert_eq!(of(&stripping, "/page?utm_source=a&ref=1"), page);
    }
}
