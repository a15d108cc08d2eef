//! Entity tags and lists of them (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2).
//!
//! ```text
//! "xyzzy"    strong: representations with the same tag have the same bytes
//! W/"xyzzy"  weak: they have the same meaning
//! ```
//! Between the quotation marks there may be any visible characters except the mark, and bytes from 0x80 on. A backslash is no escape.

use http::header::ETAG;
use http::{HeaderMap, HeaderName};

/// An entity tag, as spelled in a field.
///
/// It has no `==`, since there are two comparisons: [`matches_strongly`](Self::matches_strongly) and
/// [`matches_weakly`](Self::matches_weakly).
#[derive(Debug, Clone, Copy)]
pub struct EntityTag<'a> {
    is_weak: bool,
    /// The text between the marks.
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a field value that is one entity tag. `None` if it isn't, for instance without the quotation
    /// marks, or with `w/`.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::at_start_of(value.trim_ascii())?;
        rest.is_empty().then_some(tag)
    }

    /// The entity tag of a response. `None` if it has none, a malformed one, or several.
    pub fn of(fields: &'a HeaderMap) -> Option<Self> {
        let mut lines = fields.get_all(ETAG).iter();
        let first = lines.next()?;
        if lines.next().is_some() {
            return None;
        }
        Self::parse(first.as_bytes())
    }

    /// Whether it is weak. A weak tag says nothing about bytes, so ranges can't rely on it.
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }

    /// The text between the quotation marks.
    pub fn opaque(&self) -> &'a [u8] {
        self.opaque
    }

    /// Strong comparison: both are strong and equal. For `If-Match`, `If-Range` and combining ranges.
    pub fn matches_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Weak comparison: both are equal, whether weak or strong. For `If-None-Match`.
    pub fn matches_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// The tag at the beginning of `text`, and the rest.
    fn at_start_of(text: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (is_weak, marked) = match text.strip_prefix(b"W/") {
            Some(marked) => (true, marked),
            None => (false, text),
        };
        let inner = marked.strip_prefix(b"\"")?;
        let end = inner.iter().position(|byte| *byte == b'"')?;
        let (opaque, rest) = (&inner[..end], &inner[end + 1..]);
        opaque.iter().all(|byte| is_etagc(*byte)).then_some((Self { is_weak, opaque }, rest))
    }
}

fn is_etagc(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)
}

/// The content of `If-Match` or `If-None-Match`.
#[derive(Debug, Clone)]
pub enum TagList<'a> {
    /// `*`: any representation.
    Any,
    /// These tags. Empty if every member is malformed.
    Tags(Vec<EntityTag<'a>>),
}

impl<'a> TagList<'a> {
    /// Reads all lines of a field. `None` if it is absent.
    ///
    /// A member that is not an entity tag matches nothing; the other members count. `*` has its meaning only
    /// if it is alone.
    pub fn of(fields: &'a HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut lines = fields.get_all(name).iter().map(|line| line.as_bytes().trim_ascii()).peekable();
        lines.peek()?;
        let lines: Vec<_> = lines.collect();
        if lines == [b"*"] {
            return Some(Self::Any);
        }
        Some(Self::Tags(lines.into_iter().flat_map(tags_in).collect()))
    }

    /// Whether one of the list matches the tag of an existing representation, by strong comparison.
    pub fn has_strongly(&self, current: Option<&EntityTag<'_>>) -> bool {
        self.has(current, EntityTag::matches_strongly)
    }

    /// Whether one of the list matches the tag of an existing representation, by weak comparison.
    pub fn has_weakly(&self, current: Option<&EntityTag<'_>>) -> bool {
        self.has(current, EntityTag::matches_weakly)
    }

    fn has(&self, current: Option<&EntityTag<'_>>, matches: fn(&EntityTag<'a>, &EntityTag<'_>) -> bool) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => current.is_some_and(|current| tags.iter().any(|tag| matches(tag, current))),
        }
    }
}

/// The entity tags of one line. Anything else is skipped up to the next comma.
///
/// [`super::list`] can't be used: a backslash is an escape in a quoted string, but not in a tag.
fn tags_in(line: &[u8]) -> Vec<EntityTag<'_>> {
    let mut tags = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if let Some((tag, after)) = EntityTag::at_start_of(rest) {
            let after = after.trim_ascii_start();
            if after.is_empty() || after.starts_with(b",") {
                tags.push(tag);
            }
            rest = after;
        }
        match rest.iter().position(|byte| *byte == b',') {
            Some(comma) => rest = &rest[comma + 1..],
            None => return tags,
        }
    }
}
