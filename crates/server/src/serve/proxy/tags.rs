//! The tags of a response that is stored for a site, by which it is purged together with others ([`eyewall_page_cache::tags`]).
//! Their namespace is the name of the site, if it has one.

use eyewall_http::field::groups;
pub(crate) use eyewall_page_cache::tags::group;
use eyewall_page_cache::tags::{self, FIELDS, Tags};
use http::{Extensions, HeaderMap, HeaderName};

use crate::key::CacheKey;
use crate::rules::Applied;
use crate::sites::Site;

/// Fields that name tags and were removed from a response: an extension of its head.
#[derive(Debug, Clone, Default)]
struct Stripped(HeaderMap);

/// Whether a field names tags.
fn is_of_tags(name: &HeaderName) -> bool {
    FIELDS.contains(name) || *name == groups::CACHE_GROUPS
}

/// Removes fields from a response. It keeps those that name tags beside the response, so that the response keeps its tags although
/// clients don't see them.
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
pub(super) fn of_response(
    site: &Site,
    key: &CacheKey,
    applied: &Applied<'_>,
    fields: &HeaderMap,
    extensions: &Extensions,
) -> Vec<String> {
    let mut tags = Tags::new(site.name(), address(site, key));
    let stripped = extensions.get::<Stripped>().map(|stripped| &stripped.0);
    let told = || [fields].into_iter().chain(stripped);
    told().for_each(|fields| tags.push_fields(fields, &FIELDS));
    applied.tags().for_each(|tag| tags.push_named(tag));
    for name in told().flat_map(groups::of) {
        tags.push(group(key.host_prefix(), &name));
    }
    tags.finish()
}

/// The tag of the address, if it can have several entries: the site's keys distinguish them, or it is that of an error page.
pub(crate) fn address(site: &Site, key: &CacheKey) -> Option<String> {
    (site.key.has_parts() || site.error_pages.has(key.path())).then(|| tags::address(key.address()))
}

/// A tag as the entries of a site carry it.
pub(crate) fn named(site: &Site, tag: &str) -> String {
    tags::named(site.name(), tag)
}

/// The tag that every purge by tag has to purge, too.
pub(crate) fn many(site: &Site) -> String {
    tags::many(site.name())
}

#[cfg(test)]
mod tests {
    use eyewall_page_cache::tags::TAG_BYTES_MAX;
    use http::{HeaderValue, Request, Response, StatusCode};

    use super::*;
    use crate::config::parse;
    use crate::key::{RequestHost, Scheme};
    use crate::sites::Sites;

    /// The tags of a response with these fields, for a site with these settings.
    fn tags(site: &str, fields: &[(&'static str, &str)]) -> Vec<String> {
        let config = parse(&format!("[[site]]\norigins = [\"http://x\"]\n{site}")).unwrap();
        let host = RequestHost::parse("a.example").unwrap();
        let sites = Sites::of(&config.sites);
        let site = sites.find(host.name()).unwrap();
        let (parts, ()) = Request::get("/p").body(()).unwrap().into_parts();
        let key = CacheKey::of(&site.key, &host, Scheme::Http, &parts).unwrap();
        let fields =
            fields.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()));
        let mut head = Response::new(()).into_parts().0;
        head.headers = fields.collect();
        let applied = site.rules.of_request(&key, &parts).of_response(StatusCode::OK, &head.headers);
        strip(applied.stripped(), &mut head.headers, &mut head.extensions);
        of_response(site, &key, &applied, &head.headers, &head.extensions)
    }

    #[test]
    fn tags_are_named_after_the_site_if_it_has_a_name() {
        let fields = [("surrogate-key", "a  b"), ("cache-tag", "b, c"), ("xkey", "d")]; // tidy: word
        assert_eq!(tags("", &fields), ["a", "b", "c", "d"]);
        let of_rule = "hosts = [\"a.example\"]\n[[site.rule]]\ntags = [\"r\"]\n";
        assert_eq!(tags(of_rule, &fields[2..]), ["a.example:d", "a.example:r"]);
    }

    #[test]
    fn tags_in_fields_that_clients_never_see_count() {
        let fields = [("surrogate-key", "a b"), ("xkey", "c"), ("cache-groups", "\"g\"")];
        let stripped = "[site.cache]\nstrip_response = [\"Surrogate-Key\", \"Cache-Groups\"]\n\
                        [[site.rule]]\nstrip_response = [\"Surrogate-Key\", \"xkey\"]\n";
        let (mut seen, mut unseen) = (tags("", &fields), tags(stripped, &fields));
        seen.sort();
        unseen.sort();
        assert_eq!((seen.len(), seen), (4, unseen));
    }

    #[test]
    fn an_address_with_several_keys_has_a_tag_of_its_own() {
        let found = tags("[site.key]\ncookies = [\"c\"]\n", &[("xkey", "d"), ("cache-groups", "\"g\"")]);
        assert!(found[0].starts_with("address:") && found[1] == "d" && found[2].starts_with("group:"), "{found:?}");
    }

    #[test]
    fn too_many_tags_become_one_that_every_purge_covers() {
        let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let found = tags("", &[("xkey", &many.join(" "))]);
        assert_eq!((found.len(), found[0].as_str(), found[31].as_str()), (32, "0", "*"));
        let long = "x".repeat(300);
        assert!(tags("", &[("xkey", &long)])[0].len() <= TAG_BYTES_MAX);
    }
}
