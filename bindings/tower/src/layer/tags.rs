//! The tags of stored responses, by which they are purged together ([`eyewall_page_cache::tags`]).

use eyewall_http::field::groups;
use eyewall_http::invalidation::Origin;
use eyewall_page_cache::tags;
use http::{Extensions, HeaderMap, Uri};

use super::settings::Settings;

/// Tags that a handler gives a response without a header field: an extension of the response.
///
/// ```
/// use eyewall_tower::Tags;
///
/// let mut response = http::Response::new("a teapot");
/// response.extensions_mut().insert(Tags::new(["product:7", "shop"]));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags(Vec<String>);

impl Tags {
    /// Up to 32 tags, of any bytes. Empty tags are ignored.
    pub fn new<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        Self(tags.into_iter().map(Into::into).collect())
    }
}

/// The tags of a response that is stored for `target`, after those of `first`.
pub(crate) fn of_response(
    settings: &Settings,
    target: &Uri,
    first: Option<&str>,
    fields: &HeaderMap,
    extensions: &Extensions,
) -> Vec<String> {
    let mut tags = tags::Tags::new(settings.namespace.as_deref(), first.map(str::to_owned));
    tags.push_fields(fields, &settings.tag_fields);
    let set = extensions.get::<Tags>().map(|Tags(set)| set.as_slice()).unwrap_or_default();
    for tag in set {
        tags.push_named(tag);
    }
    groups::of(fields).iter().filter_map(|name| group(target, name)).for_each(|tag| tags.push(tag));
    tags.finish()
}

/// A tag as entries carry it.
pub(crate) fn named(settings: &Settings, tag: &str) -> String {
    tags::named(settings.namespace.as_deref(), tag)
}

/// The tag that every purge by tag has to purge, too.
pub(crate) fn many(settings: &Settings) -> String {
    tags::many(settings.namespace.as_deref())
}

/// The tag of a cache group of the origin of an address. Groups have longer names than tags.
pub(crate) fn group(target: &Uri, group: &str) -> Option<String> {
    Some(tags::group(&Origin::of(target)?.to_string(), group))
}

#[cfg(test)]
mod tests {
    use eyewall_page_cache::tags::TAG_BYTES_MAX;
    use http::Response;

    use super::*;

    fn tags(settings: &Settings, fields: &[(&'static str, &str)], set: Tags) -> Vec<String> {
        let mut response = Response::builder();
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let head = response.extension(set).body(()).unwrap().into_parts().0;
        of_response(settings, &Uri::from_static("http://a.example/p"), None, &head.headers, &head.extensions)
    }

    #[test]
    fn fields_and_handlers_name_tags() {
        let fields = [("surrogate-key", "a  b"), ("cache-tag", "b, c"), ("xkey", "d")]; // tidy: word
        let mut settings = Settings::default();
        assert_eq!(tags(&settings, &fields, Tags::new(["e", "", "a"])), ["a", "b", "c", "d", "e"]);
        settings.namespace = Some("shop".to_owned());
        assert_eq!(tags(&settings, &fields[2..], Tags::default()), ["shop:d"]);
        assert!(tags(&settings, &[("cache-groups", "\"g\"")], Tags::default())[0].starts_with("group:"));
    }

    #[test]
    fn too_many_tags_become_one_that_every_purge_covers() {
        let settings = Settings::default();
        let found = tags(&settings, &[], Tags::new((0..40).map(|number| number.to_string())));
        assert_eq!((found.len(), found[0].as_str(), found[31].as_str()), (32, "0", "*"));
        assert!(tags(&settings, &[], Tags::new(["x".repeat(300)]))[0].len() <= TAG_BYTES_MAX);
    }
}
