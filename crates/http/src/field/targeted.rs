//! Targeted cache control (RFC 9213): fields such as `CDN-Cache-Control`, which apply to some caches only.
//!
//! They look like `Cache-Control`, but they are Structured Fields (RFC 9651), which are parsed strictly. A malformed or empty field
//! counts as absent. The first valid field decides alone; `Cache-Control` and `Expires` are then ignored.

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Dictionary, Item, ListEntry, Parser};

use super::cache_control::{ResponseDirectives, Scope};
use super::seconds::SECONDS_MAX;

/// The field for caches that act for the origin, wherever they are (RFC 9213, section 3.1).
pub const CDN_CACHE_CONTROL: HeaderName = HeaderName::from_static("cdn-cache-control");

/// The directives that apply to a response, and their source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Control {
    /// The directives of the response to this cache.
    pub directives: ResponseDirectives,
    /// Whether they come from a targeted field, so that `Cache-Control` and `Expires` don't count.
    pub is_targeted: bool,
}

impl Control {
    /// The directives of a response for a cache that obeys these targeted fields, the most specific first
    /// (section 2.2).
    pub fn of(fields: &HeaderMap, targets: &[HeaderName]) -> Self {
        match targets.iter().find_map(|target| directives(fields, target)) {
            Some(directives) => Self { directives, is_targeted: true },
            None => Self { directives: ResponseDirectives::of(fields), is_targeted: false },
        }
    }
}

/// The directives of one targeted field. `None` if it is absent, empty or malformed.
///
/// Names are in lower case; parameters are ignored. A directive that is false, or has a value of the wrong type,
/// counts as absent (section 2.1). A negative time is 0.
pub fn directives(fields: &HeaderMap, target: &HeaderName) -> Option<ResponseDirectives> {
    if !fields.contains_key(target) {
        return None;
    }
    let lines: Vec<&[u8]> = fields.get_all(target).iter().map(http::HeaderValue::as_bytes).collect();
    let members: Dictionary = Parser::new(&lines.join(&b", "[..])).parse().ok()?;
    if members.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (name, value) in &members {
        take(&mut directives, name.as_str().as_bytes(), value);
    }
    Some(directives)
}

fn take(directives: &mut ResponseDirectives, name: &[u8], value: &ListEntry) {
    if let Some(flag) = directives.flag(name) {
        *flag = is_true(value);
    } else if let Some(time) = directives.time(name) {
        *time = seconds(value);
    } else if let Some(found) = directives.scope(name) {
        *found = scope(value);
    }
}

fn is_true(value: &ListEntry) -> bool {
    matches!(value, ListEntry::Item(item) if item.bare_item.as_boolean() == Some(true))
}

fn seconds(value: &ListEntry) -> Option<u32> {
    let ListEntry::Item(item) = value else { return None };
    let number = i64::from(item.bare_item.as_integer()?);
    Some(number.clamp(0, SECONDS_MAX.into()) as u32)
}

/// True, one name as a token, or names as a string or an inner list.
fn scope(value: &ListEntry) -> Scope {
    match value {
        ListEntry::Item(_) if is_true(value) => Scope::Response,
        ListEntry::Item(item) => match text(&item.bare_item) {
            Some(names) => Scope::of_names(super::list::split(names.as_bytes(), b',')),
            None => Scope::Nothing,
        },
        ListEntry::InnerList(list) => Scope::of_names(
            list.items.iter().map(|Item { bare_item, .. }| text(bare_item).unwrap_or_default().as_bytes()),
        ),
    }
}

fn text(item: &BareItem) -> Option<&str> {
    match item {
        BareItem::String(text) => Some(text.as_str()),
        BareItem::Token(text) => Some(text.as_str()),
        _ => None,
    }
}
