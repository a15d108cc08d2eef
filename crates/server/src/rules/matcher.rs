//! Whether a rule matches a request and its response.

use std::borrow::Cow;

use globset::{Candidate, GlobMatcher, GlobSet};
use http::header::{CONTENT_TYPE, COOKIE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::config::names::Glob;
use crate::config::rule::{PathGlob, Rule};
use crate::config::value::Statuses;
use crate::key::{CacheKey, cookies, decoded, decoded_parameter};

/// The parts of a request that the rules of a site use; Eyewall prepares only these.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Inspected {
    path: bool,
}

impl Inspected {
    pub(super) fn of<'a>(matchers: impl IntoIterator<Item = &'a RequestMatcher>) -> Self {
        let looks = |matcher: &RequestMatcher| {
            matcher.paths.is_some()
                || matcher.prefixes.is_some()
                || matcher.extensions.is_some()
                || matcher.other_paths.is_some()
        };
        Self { path: matchers.into_iter().any(looks) }
    }
}

/// A request as rules see it.
pub(super) struct RequestView<'a> {
    /// The path as a file system would read it: escapes decoded, slashes in a row merged. So a client can't evade a rule for
    /// `/admin/` by `//admin/` or `/%61dmin%2F`.
    path: Cow<'a, str>,
    query: &'a str,
    request: &'a Parts,
}

impl<'a> RequestView<'a> {
    pub(super) fn of(inspected: Inspected, key: &'a CacheKey, request: &'a Parts) -> Self {
        let path = if inspected.path { merged(decoded(key.path())) } else { Cow::Borrowed("") };
        Self { path, query: key.query().unwrap_or_default(), request }
    }

    fn has_path(&self, globs: &GlobSet) -> bool {
        globs.is_match_candidate(&Candidate::from_bytes(self.path.as_bytes()))
    }
}

fn merged(path: Cow<'_, str>) -> Cow<'_, str> {
    if !path.contains("//") {
        return path;
    }
    let mut merged = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter != '/' || !merged.ends_with('/') {
            merged.push(letter);
        }
    }
    Cow::Owned(merged)
}

/// The conditions of a rule on the request. Each given part has to match, and no part whose name begins with `other`.
#[derive(Debug)]
pub(super) struct RequestMatcher {
    paths: Option<GlobSet>,
    prefixes: Option<Vec<String>>,
    extensions: Option<Vec<String>>,
    query: Option<Pairs>,
    methods: Option<Vec<Method>>,
    cookies: Option<Pairs>,
    headers: Vec<(HeaderName, GlobMatcher)>,
    other_paths: Option<GlobSet>,
    other_query: Option<Pairs>,
    other_cookies: Option<Pairs>,
}

impl RequestMatcher {
    pub(super) fn of(rule: &Rule) -> Self {
        let headers = rule.header.iter().flat_map(toml::Spanned::get_ref);
        let paths =
            |globs: &toml::Spanned<Vec<PathGlob>>| Glob::set(globs.get_ref().iter().map(|glob| glob.0.as_str()), false);
        let pairs = |globs: &toml::Spanned<Vec<Glob>>| Pairs::of(globs.get_ref());
        Self {
            paths: rule.path.as_ref().map(paths),
            prefixes: rule.prefix.as_ref().map(|all| all.get_ref().iter().map(|prefix| prefix.0.clone()).collect()),
            extensions: rule.extension.as_ref().map(|all| all.get_ref().iter().map(|end| end.0.clone()).collect()),
            query: rule.query.as_ref().map(pairs),
            methods: rule.method.as_ref().map(|all| all.get_ref().iter().map(|method| method.0.clone()).collect()),
            cookies: rule.cookie.as_ref().map(pairs),
            headers: headers.filter_map(|(name, glob)| Some((name.0.clone(), glob.matcher()?))).collect(),
            other_paths: rule.unless_path.as_ref().map(paths),
            other_query: rule.unless_query.as_ref().map(pairs),
            other_cookies: rule.unless_cookie.as_ref().map(pairs),
        }
    }

    /// The fields that it uses.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = &HeaderName> {
        let cookies = self.cookies.as_ref().or(self.other_cookies.as_ref());
        self.headers.iter().map(|(name, _)| name).chain(cookies.map(|_| &COOKIE))
    }

    pub(super) fn matches(&self, view: &RequestView<'_>) -> bool {
        self.unmet(view).is_none()
    }

    /// The name of a condition that the request doesn't meet, as in the configuration. `None`: the rule matches.
    #[inline]
    pub(super) fn unmet(&self, view: &RequestView<'_>) -> Option<&'static str> {
        let request = view.request;
        if self.methods.as_ref().is_some_and(|methods| !methods.contains(&request.method)) {
            return Some("method");
        }
        if self.prefixes.as_ref().is_some_and(|all| !all.iter().any(|prefix| view.path.starts_with(prefix.as_str()))) {
            return Some("prefix");
        }
        if self.extensions.as_ref().is_some_and(|all| !ends_with_one(&view.path, all)) {
            return Some("extension");
        }
        if self.paths.as_ref().is_some_and(|paths| !view.has_path(paths)) {
            return Some("path");
        }
        if !self.headers.iter().all(|(name, glob)| has(&request.headers, name, glob)) {
            return Some("header");
        }
        if self.cookies.as_ref().is_some_and(|pairs| !pairs.match_cookies(&request.headers)) {
            return Some("cookie");
        }
        if self.query.as_ref().is_some_and(|pairs| !pairs.match_query(view.query)) {
            return Some("query");
        }
        if self.other_paths.as_ref().is_some_and(|paths| view.has_path(paths)) {
            return Some("unless_path");
        }
        if self.other_cookies.as_ref().is_some_and(|pairs| pairs.match_cookies(&request.headers)) {
            return Some("unless_cookie");
        }
        if self.other_query.as_ref().is_some_and(|pairs| pairs.match_query(view.query)) {
            return Some("unless_query");
        }
        None
    }
}

fn ends_with_one(path: &str, extensions: &[String]) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    name.rsplit_once('.').is_some_and(|(_, end)| extensions.iter().any(|wanted| wanted.eq_ignore_ascii_case(end)))
}

fn has(fields: &HeaderMap, name: &HeaderName, glob: &GlobMatcher) -> bool {
    fields.get_all(name).iter().any(|value| glob.is_match_candidate(&Candidate::from_bytes(value.as_bytes())))
}

/// Patterns for names and values: a pattern with `=` matches both, any other pattern the name.
#[derive(Debug)]
struct Pairs {
    names: GlobSet,
    pairs: GlobSet,
}

impl Pairs {
    fn of(globs: &[Glob]) -> Self {
        let of_kind = |is_pair: bool| globs.iter().map(Glob::as_str).filter(move |text| text.contains('=') == is_pair);
        Self { names: Glob::set(of_kind(false), false), pairs: Glob::set(of_kind(true), false) }
    }

    fn match_cookies(&self, fields: &HeaderMap) -> bool {
        cookies(fields).filter(|(name, _)| !name.is_empty()).any(|(name, value)| {
            self.names.is_match_candidate(&Candidate::from_bytes(name))
                || (!self.pairs.is_empty() && {
                    let pair = [name, b"=", value].concat();
                    self.pairs.is_match_candidate(&Candidate::from_bytes(&pair))
                })
        })
    }

    /// Names and values as the origin would read them.
    fn match_query(&self, query: &str) -> bool {
        query.split('&').filter(|piece| !piece.is_empty()).any(|piece| {
            let name = piece.split_once('=').map_or(piece, |(name, _)| name);
            self.names.is_match(&*decoded_parameter(name)) || self.pairs.is_match(&*decoded_parameter(piece))
        })
    }
}

/// The conditions of a rule on the response.
#[derive(Debug)]
pub(super) struct ResponseMatcher {
    content_types: Option<GlobSet>,
    statuses: Option<Vec<Statuses>>,
}

impl ResponseMatcher {
    pub(super) fn of(rule: &Rule) -> Self {
        let types = |globs: &toml::Spanned<Vec<crate::config::rule::MediaGlob>>| {
            Glob::set(globs.get_ref().iter().map(|glob| glob.0.as_str()), true)
        };
        Self {
            content_types: rule.content_type.as_ref().map(types),
            statuses: rule.status.as_ref().map(|statuses| statuses.get_ref().clone()),
        }
    }

    /// Whether every response matches.
    pub(super) fn is_any(&self) -> bool {
        self.content_types.is_none() && self.statuses.is_none()
    }

    /// Whether a response of any type matches.
    pub(super) fn takes_any_type(&self) -> bool {
        self.content_types.is_none()
    }

    /// Whether a response with this status matches if its type does.
    pub(super) fn takes_status(&self, status: StatusCode) -> bool {
        self.statuses.as_ref().is_none_or(|all| all.iter().any(|statuses| statuses.contains(status)))
    }

    pub(super) fn matches(&self, status: StatusCode, fields: &HeaderMap) -> bool {
        self.matches_head(status, fields.get(CONTENT_TYPE).map(HeaderValue::as_bytes))
    }

    /// The same for a response with this `Content-Type`.
    pub(super) fn matches_head(&self, status: StatusCode, content_type: Option<&[u8]>) -> bool {
        self.takes_status(status)
            && self.content_types.as_ref().is_none_or(|types| {
                content_type
                    .and_then(media_type)
                    .is_some_and(|found| types.is_match_candidate(&Candidate::from_bytes(found)))
            })
    }
}

/// The type without its parameters (RFC 9110, section 8.3.1).
fn media_type(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| *byte == b';').next().map(<[u8]>::trim_ascii)
}
