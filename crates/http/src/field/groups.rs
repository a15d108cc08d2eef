//! Cache groups (RFC 9875): responses that are invalidated together.
//!
//! A group is identified by its name and by the origin (scheme, host, port) of its responses:
//! [`Origin`](crate::invalidation::Origin). An invalidation by group affects only the groups that it names.

use http::{HeaderMap, HeaderName, Method};
use sfv::visitor::{EntryVisitor, Ignored, InnerListVisitor, ItemVisitor, ListVisitor, ParameterVisitor};
use sfv::{BareItemFromInput, Parser};

use crate::invalidation::is_safe;

/// `Cache-Groups`: the groups that a response is in.
pub const CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
/// `Cache-Group-Invalidation`: the groups that a response to an unsafe request invalidates.
pub const CACHE_GROUP_INVALIDATION: HeaderName = HeaderName::from_static("cache-group-invalidation");

/// The maximum number of different groups in a field; the first ones count. RFC 9875 requires at least 32.
pub const GROUPS_MAX: usize = 128;
/// The maximum length of a group's name in characters; longer names are ignored. RFC 9875 requires at least 32.
pub const GROUP_LENGTH_MAX: usize = 256;

/// The groups of a response, each once (section 2). Empty if the field is malformed.
pub fn of(response: &HeaderMap) -> Vec<String> {
    names(response, &CACHE_GROUPS)
}

/// The groups of the target's origin that a response invalidates, each once (section 3). Empty if the method is
/// safe, or the field is malformed.
///
/// Unlike the invalidation of URIs, it doesn't depend on the status.
pub fn invalidated(method: &Method, response: &HeaderMap) -> Vec<String> {
    if is_safe(method) {
        return Vec::new();
    }
    names(response, &CACHE_GROUP_INVALIDATION)
}

/// The strings of a list over all lines of a field. Structured fields are strict: one error, and the whole field
/// is ignored.
fn names(fields: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let lines: Vec<_> = fields.get_all(name).iter().map(http::HeaderValue::as_bytes).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    Parser::new(&lines.join(&b", "[..])).parse_list_with_visitor(Names::default()).unwrap_or_default()
}

#[derive(Default)]
struct Names(Vec<String>);

/// A member that is not a string.
#[derive(Debug, thiserror::Error)]
#[error("a cache group is a string; put it between quotation marks")]
struct NoString;

impl<'de> ListVisitor<'de> for Names {
    type Out = Vec<String>;
    type Error = NoString;

    fn entry(&mut self) -> Result<impl EntryVisitor<'de>, NoString> {
        Ok(self)
    }

    fn finish(self) -> Result<Self::Out, NoString> {
        Ok(self.0)
    }
}

impl<'de> EntryVisitor<'de> for &mut Names {
    type Error = NoString;

    fn item(self) -> Result<impl ItemVisitor<'de>, NoString> {
        Ok(self)
    }

    fn inner_list(self) -> Result<impl InnerListVisitor<'de>, NoString> {
        Err::<Ignored, _>(NoString)
    }
}

impl<'de> ItemVisitor<'de> for &mut Names {
    type Out = ();
    type Error = NoString;

    fn bare_item(self, item: BareItemFromInput<'de>) -> Result<impl ParameterVisitor<'de, Out = ()>, NoString> {
        let BareItemFromInput::String(name) = item else { return Err(NoString) };
        let name = name.as_str();
        let has_room = self.0.len() < GROUPS_MAX && name.len() <= GROUP_LENGTH_MAX;
        if has_room && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
        Ok(Ignored)
    }
}
