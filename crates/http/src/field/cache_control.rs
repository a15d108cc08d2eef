//! The `Cache-Control` field of requests and responses (RFC 9111, section 5.2), and `Pragma` (section 5.4).
//!
//! Malformed values get their most restrictive reading. A lifetime that is not a number is 0 (section 4.2.1), and the smallest of
//! several counts. If quotation marks don't close, the line is read both with and without them.

use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderMap, HeaderName};

use super::list;
use super::seconds::{self, SECONDS_MAX};

/// The directives of a request to caches on its path (RFC 9111, section 5.2.1). Times are in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a directive of its own")]
pub struct RequestDirectives {
    /// Nothing of this exchange may be stored.
    pub no_store: bool,
    /// No response without validation; also by `Pragma: no-cache` if there is no `Cache-Control`.
    pub no_cache: bool,
    /// The content is not to be transformed, for instance compressed.
    pub no_transform: bool,
    /// Only a stored response: don't forward the request.
    pub only_if_cached: bool,
    /// The maximum age of the response.
    pub max_age: Option<u32>,
    /// How long the response must stay fresh. The largest of several values counts; a value that is not a
    /// number makes no response fresh enough.
    pub min_fresh: Option<u32>,
    /// How long the response may have been stale; [`SECONDS_MAX`] if the request names no time.
    pub max_stale: Option<u32>,
    /// How long the response may have been stale if the origin fails (RFC 5861, section 4).
    pub stale_if_error: Option<u32>,
}

/// The directives of a response to caches (RFC 9111, section 5.2.2; RFC 5861; RFC 8246). Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a directive of its own")]
pub struct ResponseDirectives {
    /// How long the response is fresh.
    pub max_age: Option<u32>,
    /// How long it is fresh in a shared cache.
    pub s_maxage: Option<u32>,
    /// Nothing of it may be stored.
    pub no_store: bool,
    /// The part that may not be sent without validation.
    pub no_cache: Scope,
    /// The part that a shared cache may not store.
    pub private: Scope,
    /// It may be stored where that would otherwise be forbidden.
    pub public: bool,
    /// It may not be used when stale.
    pub must_revalidate: bool,
    /// A shared cache may not use it when stale.
    pub proxy_revalidate: bool,
    /// Only a cache that understands the status may store it.
    pub must_understand: bool,
    /// The content is not to be transformed, for instance compressed.
    pub no_transform: bool,
    /// It doesn't change while it is fresh.
    pub immutable: bool,
    /// How long it may have been stale while the cache revalidates it in the background.
    pub stale_while_revalidate: Option<u32>,
    /// How long it may have been stale if the origin fails.
    pub stale_if_error: Option<u32>,
}

/// The part of a response that `private` or `no-cache` applies to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// The directive is absent.
    #[default]
    Nothing,
    /// These fields.
    Fields(Vec<HeaderName>),
    /// The whole response.
    Response,
}

impl RequestDirectives {
    /// The directives of a request.
    pub fn of(fields: &HeaderMap) -> Self {
        let mut directives = Self::default();
        for_each(fields, |name, argument| directives.take(name, argument));
        if !fields.contains_key(CACHE_CONTROL) {
            directives.no_cache =
                list::members(fields, &PRAGMA).any(|directive| directive.eq_ignore_ascii_case(b"no-cache"));
        }
        directives
    }

    /// The same, without directives that make a cache forward the request although it has a fresh response.
    pub fn without_reloads(self) -> Self {
        Self { no_cache: false, max_age: None, min_fresh: None, ..self }
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        match name {
            b"no-store" => self.no_store = true,
            b"no-cache" => self.no_cache = true,
            b"no-transform" => self.no_transform = true,
            b"only-if-cached" => self.only_if_cached = true,
            b"max-age" => keep_smallest(&mut self.max_age, seconds_or_none(argument)),
            b"min-fresh" => self.min_fresh = self.min_fresh.max(argument.and_then(number)),
            b"max-stale" if argument.is_none() => keep_smallest(&mut self.max_stale, SECONDS_MAX),
            b"max-stale" => keep_smallest(&mut self.max_stale, seconds_or_none(argument)),
            b"stale-if-error" => keep_smallest(&mut self.stale_if_error, seconds_or_none(argument)),
            _ => {}
        }
    }
}

impl ResponseDirectives {
    /// The directives of the `Cache-Control` field of a response. A targeted field may take precedence:
    /// [`super::targeted`].
    pub fn of(fields: &HeaderMap) -> Self {
        let mut directives = Self::default();
        for_each(fields, |name, argument| directives.take(name, argument));
        directives
    }

    /// Whether the response itself names its lifetime.
    pub fn has_lifetime(&self) -> bool {
        self.max_age.is_some() || self.s_maxage.is_some()
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        if let Some(flag) = self.flag(name) {
            *flag = true;
        } else if let Some(time) = self.time(name) {
            keep_smallest(time, seconds_or_none(argument));
        } else if let Some(scope) = self.scope(name) {
            scope.widen(Scope::of_argument(argument));
        }
    }

    /// Sets the directive of this name, in lower case, if it has no argument.
    pub(super) fn flag(&mut self, name: &[u8]) -> Option<&mut bool> {
        Some(match name {
            b"no-store" => &mut self.no_store,
            b"public" => &mut self.public,
            b"must-revalidate" => &mut self.must_revalidate,
            b"proxy-revalidate" => &mut self.proxy_revalidate,
            b"must-understand" => &mut self.must_understand,
            b"no-transform" => &mut self.no_transform,
            b"immutable" => &mut self.immutable,
            _ => return None,
        })
    }

    /// Sets the directive of this name, in lower case, if it has a time.
    pub(super) fn time(&mut self, name: &[u8]) -> Option<&mut Option<u32>> {
        Some(match name {
            b"max-age" => &mut self.max_age,
            b"s-maxage" => &mut self.s_maxage,
            b"stale-while-revalidate" => &mut self.stale_while_revalidate,
            b"stale-if-error" => &mut self.stale_if_error,
            _ => return None,
        })
    }

    /// Sets the directive of this name, in lower case, if it may name fields.
    pub(super) fn scope(&mut self, name: &[u8]) -> Option<&mut Scope> {
        Some(match name {
            b"no-cache" => &mut self.no_cache,
            b"private" => &mut self.private,
            _ => return None,
        })
    }
}

impl Scope {
    /// The fields that it names, if it applies to fields.
    pub fn fields(&self) -> &[HeaderName] {
        match self {
            Self::Fields(names) => names,
            Self::Nothing | Self::Response => &[],
        }
    }

    /// The fields of a list of names. An empty list, or an invalid name, means the whole response.
    pub(super) fn of_names<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let names: Result<Vec<_>, _> = names.map(HeaderName::from_bytes).collect();
        match names {
            Ok(names) if !names.is_empty() => Self::Fields(names),
            _ => Self::Response,
        }
    }

    fn of_argument(argument: Option<&[u8]>) -> Self {
        match argument {
            Some(argument) => Self::of_names(list::split(&list::unquoted(argument), b',')),
            None => Self::Response,
        }
    }

    fn widen(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::Fields(names), Self::Fields(more)) => names.extend(more),
            (Self::Nothing, other) => *self = other,
            (_, Self::Response) => *self = Self::Response,
            _ => {}
        }
    }
}

/// Calls `take` with the name in lower case and the argument of each directive.
fn for_each(fields: &HeaderMap, mut take: impl FnMut(&[u8], Option<&[u8]>)) {
    let mut take_member = |member: &[u8]| {
        let (name, argument) = list::directive(member);
        take(&name.to_ascii_lowercase(), argument);
    };
    for line in fields.get_all(CACHE_CONTROL) {
        list::split(line.as_bytes(), b',').for_each(&mut take_member);
        if !is_closed(line.as_bytes()) {
            // Read the text after an unclosed quotation mark, too: it may be a `no-store`.
            line.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).for_each(&mut take_member);
        }
    }
}

/// Whether all quotation marks of a line are paired.
pub(crate) fn is_closed(line: &[u8]) -> bool {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for byte in line {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ => {}
        }
    }
    !is_quoted
}

fn keep_smallest(kept: &mut Option<u32>, seconds: u32) {
    *kept = Some(kept.map_or(seconds, |kept| kept.min(seconds)));
}

fn seconds_or_none(argument: Option<&[u8]>) -> u32 {
    argument.and_then(number).unwrap_or(0)
}

fn number(argument: &[u8]) -> Option<u32> {
    seconds::parse(&list::unquoted(argument))
}
