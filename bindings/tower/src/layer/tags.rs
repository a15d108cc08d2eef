//! The tags of stored responses, by which they are purged together.
//!
//! ```text
//! post-7            given by the inner service, where the layer has no namespace
//! shop:post-7       the same where it has one
//! group:HASH        a cache group, which is one of its origin (RFC 9875)
//! address:HASH      the address, where one has several keys
//! *                 it has more tags than an entry can carry: a purge of any tag means it, too
//! ```

use eyewall_http::field::groups;
use eyewall_http::invalidation::Origin;
use http::{Uri, response};
use xxhash_rust::xxh3::xxh3_128;

use super::settings::Settings;

/// So many tags an entry can have.
const TAGS_MAX: usize = 32;
/// The longest tag of an entry.
const TAG_BYTES_MAX: usize = 255;
/// What responses carry that have more tags than fit.
const MANY: &str = "*";

/// Tags of a response that no header field tells: an extension of it, for handlers to set.
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
    /// Up to 32 tags, of any bytes; an empty one is none.
    pub fn new<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        Self(tags.into_iter().map(Into::into).collect())
    }
}

/// The tags of a response that is stored for `target`, with `first` before them.
pub(crate) fn of_response(
    settings: &Settings,
    target: &Uri,
    first: Option<&str>,
    head: &response::Parts,
) -> Vec<String> {
    let mut tags: Vec<String> = first.map(str::to_owned).into_iter().collect();
    let mut push = |tag: String| {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    };
    for value in settings.tag_fields.iter().flat_map(|name| head.headers.get_all(name)) {
        let names = value.as_bytes().split(|byte| byte.is_ascii_whitespace() || *byte == b',');
        for tag in names.filter(|tag| !tag.is_empty()) {
            push(named(settings, &String::from_utf8_lossy(tag)));
        }
    }
    let set = head.extensions.get::<Tags>().map(|Tags(set)| set.as_slice()).unwrap_or_default();
    for tag in set.iter().filter(|tag| !tag.is_empty()) {
        push(named(settings, tag));
    }
    for name in groups::of(&head.headers) {
        if let Some(tag) = group(target, &name) {
            push(tag);
        }
    }
    if tags.len() > TAGS_MAX {
        tags.truncate(TAGS_MAX - 1);
        tags.push(many(settings));
    }
    tags
}

/// A tag as entries carry it.
pub(crate) fn named(settings: &Settings, tag: &str) -> String {
    let name = match &settings.namespace {
        Some(namespace) => format!("{namespace}:{tag}"),
        None => tag.to_owned(),
    };
    if name.len() <= TAG_BYTES_MAX { name } else { format!("long:{:032x}", xxh3_128(name.as_bytes())) }
}

/// What a purge by tag has to purge besides.
pub(crate) fn many(settings: &Settings) -> String {
    named(settings, MANY)
}

/// The tag of a cache group of the origin of an address. Groups have longer names than tags.
pub(crate) fn group(target: &Uri, group: &str) -> Option<String> {
    let origin = Origin::of(target)?;
    Some(format!("group:{:032x}", xxh3_128(format!("{origin}\n{group}").as_bytes())))
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn tags(settings: &Settings, fields: &[(&'static str, &str)], set: Tags) -> Vec<String> {
        let mut response = Response::builder();
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        let head = response.extension(set).body(()).unwrap().into_parts().0;
        of_response(settings, &Uri::from_static("http://a.example/p"), None, &head)
    }

    #[test]
    fn fields_and_handlers_name_them() {
        let fields = [("surrogate-key", "a  b"), ("cache-tag", "b, c"), ("xkey", "d")]; // tidy: word
        let mut settings = Settings::default();
        assert_eq!(tags(&settings, &fields, Tags::new(["e", "", "a"])), ["a", "b", "c", "d", "e"]);
        settings.namespace = Some("shop".to_owned());
        assert_eq!(tags(&settings, &fields[2..], Tags::default()), ["shop:d"]);
        assert!(tags(&settings, &[("cache-groups", "\"g\"")], Tags::default())[0].starts_with("group:"));
    }

    #[test]
    fn more_than_fit_are_one_that_every_purge_means() {
        let settings = Settings::default();
        let found = tags(&settings, &[], Tags::new((0..40).map(|number| number.to_string())));
        assert_eq!((found.len(), found[0].as_str(), found[31].as_str()), (32, "0", "*"));
        assert!(tags(&settings, &[], Tags::new(["x".repeat(300)]))[0].len() <= TAG_BYTES_MAX);
    }
}
