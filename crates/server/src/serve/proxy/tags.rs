//! The tags that a stored response carries in the volume, by which it is purged together with others.
//!
//! ```text
//! post-7                 given by the origin, or by a rule, of a site for all hosts
//! example.org:post-7     the same of a site that has a name: sites may use the same tags for different things
//! group:HASH             a cache group, which is one of its origin (RFC 9875)
//! address:HASH           the address, where one has several keys
//! example.org:*          it has more tags than an entry can carry: a purge of any tag means it, too
//! ```

use std::borrow::Cow;

use eyewall_http::field::groups;
use http::{Extensions, HeaderMap, HeaderName, response};
use xxhash_rust::xxh3::xxh3_128;

use crate::config::Site;
use crate::key::CacheKey;
use crate::rules::Applied;

/// So many tags an entry can have.
const TAGS_MAX: usize = 32;
/// The longest tag of an entry.
const TAG_BYTES_MAX: usize = 255;

/// Fields in which origins name tags, separated by blanks or commas.
static FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("surrogate-key"),
    HeaderName::from_static("cache-tag"), // tidy: word, since that is its name
    HeaderName::from_static("xkey"),
];
/// What responses carry that have more tags than fit.
const MANY: &str = "*";

/// Fields of a response that name tags, and were stripped of it: an extension of its head.
#[derive(Debug, Clone, Default)]
struct Stripped(HeaderMap);

/// Whether a field names tags.
fn is_of_tags(name: &HeaderName) -> bool {
    FIELDS.contains(name) || *name == groups::CACHE_GROUPS
}

/// Takes fields off a response. Those that name tags are kept beside it: that its clients don't see them takes no tag from it.
pub(super) fn strip<'a>(
    names: impl Iterator<Item = &'a HeaderName>,
    fields: &mut HeaderMap,
    extensions: &mut Extensions,
) {
    for name in names {
        if is_of_tags(name) && fields.contains_key(name) {
            let mut stripped = extensions.remove::<Stripped>().unwrap_or_default();
            stripped.0.extend(fields.get_all(name).iter().map(|value| (name.clone(), value.clone())));
            extensions.insert(stripped);
        }
        fields.remove(name);
    }
}

/// The tags of a response that is stored for a site.
pub(crate) fn of_response(site: &Site, key: &CacheKey, applied: &Applied<'_>, head: &response::Parts) -> Vec<String> {
    let mut tags: Vec<String> = address(site, key).into_iter().collect();
    let mut push = |tag: String| {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    };
    let stripped = head.extensions.get::<Stripped>().map(|stripped| &stripped.0);
    let told = || [&head.headers].into_iter().chain(stripped);
    for value in told().flat_map(|fields| FIELDS.iter().flat_map(|name| fields.get_all(name))) {
        let names = value.as_bytes().split(|byte| byte.is_ascii_whitespace() || *byte == b',');
        for tag in names.filter(|tag| !tag.is_empty()) {
            push(named(site, &String::from_utf8_lossy(tag)));
        }
    }
    for tag in applied.tags() {
        push(named(site, tag));
    }
    for name in told().flat_map(groups::of) {
        push(group(key.host_prefix(), &name));
    }
    if tags.len() > TAGS_MAX {
        tags.truncate(TAGS_MAX - 1);
        tags.push(many(site));
    }
    tags
}

/// The tag of the address, where the site's keys tell several entries of one address apart.
pub(crate) fn address(site: &Site, key: &CacheKey) -> Option<String> {
    site.key.has_parts().then(|| format!("address:{:032x}", xxh3_128(key.address().as_bytes())))
}

/// A tag as the entries of a site carry it.
pub(crate) fn named(site: &Site, tag: &str) -> String {
    let name = match site.name() {
        Some(name) => Cow::Owned(format!("{name}:{tag}")),
        None => Cow::Borrowed(tag),
    };
    if name.len() <= TAG_BYTES_MAX { name.into_owned() } else { format!("long:{:032x}", xxh3_128(name.as_bytes())) }
}

/// What a purge by tag has to purge besides.
pub(crate) fn many(site: &Site) -> String {
    named(site, MANY)
}

/// The tag of a cache group. Groups have longer names than tags.
pub(crate) fn group(origin: &str, group: &str) -> String {
    format!("group:{:032x}", xxh3_128(format!("{origin}\n{group}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request, Response, StatusCode};

    use super::*;
    use crate::config::parse;
    use crate::key::{RequestHost, Scheme};

    /// The tags of a response with these fields, for a site with these settings.
    fn tags(site: &str, fields: &[(&'static str, &str)]) -> Vec<String> {
        let config = parse(&format!("[[site]]\norigins = [\"http://x\"]\n{site}")).unwrap();
        let host = RequestHost::parse("a.example").unwrap();
        let site = config.sites.find(host.name()).unwrap();
        let (parts, ()) = Request::get("/p").body(()).unwrap().into_parts();
        let key = CacheKey::of(site, &host, Scheme::Http, &parts).unwrap();
        let fields =
            fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let mut head = Response::new(()).into_parts().0;
        head.headers = fields.collect();
        let applied = site.rules.of_request(&key, &parts).of_response(StatusCode::OK, &head.headers);
        strip(applied.stripped(), &mut head.headers, &mut head.extensions);
        of_response(site, &key, &applied, &head)
    }

    #[test]
    fn they_are_named_after_the_site_if_it_has_a_name() {
        let fields = [("surrogate-key", "a  b"), ("cache-tag", "b, c"), ("xkey", "d")]; // tidy: word
        assert_eq!(tags("", &fields), ["a", "b", "c", "d"]);
        let of_rule = "hosts = [\"a.example\"]\n[[site.rule]]\ntags = [\"r\"]\n";
        assert_eq!(tags(of_rule, &fields[2..]), ["a.example:d", "a.example:r"]);
    }

    #[test]
    fn those_of_fields_that_no_client_sees_count() {
        let fields = [("surrogate-key", "a b"), ("xkey", "c"), ("cache-groups", "\"g\"")];
        let stripped = "[site.cache]\nstrip_response = [\"Surrogate-Key\", \"Cache-Groups\"]\n\
                        [[site.rule]]\nstrip_response = [\"Surrogate-Key\", \"xkey\"]\n";
        let (mut seen, mut unseen) = (tags("", &fields), tags(stripped, &fields));
        seen.sort();
        unseen.sort();
        assert_eq!((seen.len(), seen), (4, unseen));
    }

    #[test]
    fn an_address_of_several_keys_has_one_of_its_own() {
        let found = tags("[site.key]\ncookies = [\"c\"]\n", &[("xkey", "d"), ("cache-groups", "\"g\"")]);
        assert!(found[0].starts_with("address:") && found[1] == "d" && found[2].starts_with("group:"), "{found:?}");
    }

    #[test]
    fn more_than_fit_are_one_that_every_purge_means() {
        let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let found = tags("", &[("xkey", &many.join(" "))]);
        assert_eq!((found.len(), found[0].as_str(), found[31].as_str()), (32, "0", "*"));
        let long = "x".repeat(300);
        assert!(tags("", &[("xkey", &long)])[0].len() <= TAG_BYTES_MAX);
    }
}
