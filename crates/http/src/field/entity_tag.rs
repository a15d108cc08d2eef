//! Entity tags and lists of them (RFC 9110, sections 8.8.3, 13.1.1 and 13.1.2).
//!
//! ```text
//! "xyzzy"    strong: the bytes are the same wherever it is the same
//! W/"xyzzy"  weak: the meaning is
//! ```
//! Between the marks stand any visible characters but the mark, and bytes from 0x80 on. A backslash escapes nothing there.

use http::header::ETAG;
use http::{HeaderMap, HeaderName};

/// An entity tag, as it stands in a field.
///
/// It has no `==`, since there are two ways to compare: [`matches_strongly`](Self::matches_strongly) and
/// [`matches_weakly`](Self::matches_weakly).
#[derive(Debug, Clone, Copy)]
pub struct EntityTag<'a> {
    is_weak: bool,
    /// What stands between the marks.
    opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a field value that is one entity tag. None if it is none: for instance without the quotation marks, or with `w/`.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::at_start_of(value.trim_ascii())?;
        rest.is_empty().then_some(tag)
    }

    /// The entity tag of a response. None if it has none, one that is malformed, or several.
    pub fn of(fields: &'a HeaderMap) -> Option<Self> {
        let mut lines = fields.get_all(ETAG).iter();
        let first = lines.next()?;
        if lines.next().is_some() {
            return None;
        }
        Self::parse(first.as_bytes())
    }

    /// Whether it is weak. A weak one says nothing of bytes, and ranges can't rely on it.
    pub fn is_weak(&self) -> bool {
        self.is_weak
    }

    /// What stands between the quotation marks.
    pub fn opaque(&self) -> &'a [u8] {
        self.opaque
    }

    /// Strong comparison: both are strong and read the same. For `If-Match`, `If-Range` and the combining of ranges.
    pub fn matches_strongly(&self, other: &EntityTag<'_>) -> bool {
        !self.is_weak && !other.is_weak && self.opaque == other.opaque
    }

    /// Weak comparison: both read the same, be they weak or strong. For `If-None-Match`.
    pub fn matches_weakly(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// The tag that `text` begins with, and what follows it.
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

/// What `If-Match` or `If-None-Match` lists.
#[derive(Debug, Clone)]
pub enum TagList<'a> {
    /// `*`: whatever representation there is.
    Any,
    /// These. None at all if every member is malformed.
    Tags(Vec<EntityTag<'a>>),
}

impl<'a> TagList<'a> {
    /// Reads all lines of a field. None if it is absent.
    ///
    /// A member that is no entity tag matches nothing; those beside it count. `*` stands for itself only where it is alone.
    pub fn of(fields: &'a HeaderMap, name: &HeaderName) -> Option<Self> {
        let mut lines = fields.get_all(name).iter().map(|line| line.as_bytes().trim_ascii()).peekable();
        lines.peek()?;
        let lines: Vec<_> = lines.collect();
        if lines == [b"*"] {
            return Some(Self::Any);
        }
        Some(Self::Tags(lines.into_iter().flat_map(tags_in).collect()))
    }

    /// Whether one of the list is the tag of a representation that exists, by strong comparison.
    pub fn has_strongly(&self, current: Option<&EntityTag<'_>>) -> bool {
        self.has(current, EntityTag::matches_strongly)
    }

    /// Whether one of the list is the tag of a representation that exists, by weak comparison.
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

/// The entity tags of one line. What is none is passed over up to the next comma.
///
/// Not by [`super::list`]: within a tag a backslash is a character like others, within a quoted string it is not.
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
