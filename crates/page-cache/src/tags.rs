//! The tags that stored responses carry, by which they are purged together.
//!
//! ```text
//! post-7                 a tag that the response names, without a namespace
//! example.org:post-7     the same tag in a namespace: other sites may use it for other responses
//! long:HASH              one that is too long for an entry
//! group:HASH             a cache group, which is one of its origin (RFC 9875)
//! address:HASH           the address, if it has several keys
//! *, example.org:*       the response has more tags than an entry can carry: a purge of any tag covers it, too
//! ```

use http::{HeaderMap, HeaderName};
use xxhash_rust::xxh3::xxh3_128;

/// An entry carries at most this many tags.
pub const TAGS_MAX: usize = 32;
/// The longest tag of an entry.
pub const TAG_BYTES_MAX: usize = 255;
/// The tag of responses with too many tags.
const MANY: &str = "*";

/// Fields in which responses name tags, separated by blanks or commas.
pub static FIELDS: [HeaderName; 3] = [
    HeaderName::from_static("surrogate-key"),
    HeaderName::from_static("cache-tag"), // tidy: word, since that is its name
    HeaderName::from_static("xkey"),
];

/// The tags of a response, each once.
#[derive(Debug)]
pub struct Tags<'a> {
    namespace: Option<&'a str>,
    tags: Vec<String>,
}

impl<'a> Tags<'a> {
    /// Only the tags of `first`, as entries carry them.
    pub fn new(namespace: Option<&'a str>, first: impl IntoIterator<Item = String>) -> Self {
        Self { namespace, tags: first.into_iter().collect() }
    }

    /// Adds a tag as entries carry it.
    pub fn push(&mut self, tag: String) {
        if !self.tags.contains(&tag) {
            self.tags.push(tag);
        }
    }

    /// Adds a tag as people write it. An empty one is ignored.
    pub fn push_named(&mut self, tag: &str) {
        if !tag.is_empty() {
            self.push(named(self.namespace, tag));
        }
    }

    /// Adds the tags in fields of these names.
    pub fn push_fields(&mut self, fields: &HeaderMap, names: &[HeaderName]) {
        for value in names.iter().flat_map(|name| fields.get_all(name)) {
            for tag in value.as_bytes().split(|byte| byte.is_ascii_whitespace() || *byte == b',') {
                self.push_named(&String::from_utf8_lossy(tag));
            }
        }
    }

    /// As many tags as an entry can carry. If there are more, the last one is the tag that every purge by tag covers.
    pub fn finish(self) -> Vec<String> {
        let Self { namespace, mut tags } = self;
        if tags.len() > TAGS_MAX {
            tags.truncate(TAGS_MAX - 1);
            tags.push(many(namespace));
        }
        tags
    }
}

/// A tag as entries carry it.
pub fn named(namespace: Option<&str>, tag: &str) -> String {
    let name = namespace.map_or_else(|| tag.to_owned(), |namespace| format!("{namespace}:{tag}"));
    if name.len() <= TAG_BYTES_MAX { name } else { format!("long:{:032x}", xxh3_128(name.as_bytes())) }
}

/// The tag that every purge by tag has to purge, too.
pub fn many(namespace: Option<&str>) -> String {
    named(namespace, MANY)
}

/// The tag of a cache group of an origin. Groups have longer names than tags.
pub fn group(origin: &str, group: &str) -> String {
    format!("group:{:032x}", xxh3_128(format!("{origin}\n{group}").as_bytes()))
}

/// The tag of an address that has several keys.
pub fn address(address: &str) -> String {
    format!("address:{:032x}", xxh3_128(address.as_bytes()))
}
