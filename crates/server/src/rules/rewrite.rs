//! The part of a rule that redirects, or changes fields on their way to the client or to the origin.

use std::ops::Range;

use eyewall_http::field::push_line;
use eyewall_page_cache::reply::StandsFor;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use toml::Spanned;

use super::{Compiled, Decision};
use crate::config::names::{FieldName, FieldValue};
use crate::config::redirect::{RedirectTarget, Requested};
use crate::config::rule::Rule;
use crate::key::CacheKey;

type Fields = Vec<(HeaderName, HeaderValue)>;

/// What a rule rewrites.
#[derive(Debug)]
pub(super) struct Rewrite {
    redirect: Option<(StatusCode, RedirectTarget)>,
    /// The prefixes of the rule's condition, for `{rest}`.
    prefixes: Vec<String>,
    removed: Vec<HeaderName>,
    set: Fields,
    added: Fields,
    removed_from_request: Vec<HeaderName>,
    set_in_request: Fields,
}

impl Rewrite {
    /// `None` if the rule rewrites nothing.
    pub(super) fn of(rule: &Rule) -> Option<Self> {
        let fields = |of_rule: &std::collections::BTreeMap<FieldName, Spanned<FieldValue>>| -> Fields {
            of_rule.iter().map(|(name, value)| (name.0.clone(), value.get_ref().0.clone())).collect()
        };
        let names = |of_rule: &[Spanned<FieldName>]| of_rule.iter().map(|name| name.get_ref().0.clone()).collect();
        let status = rule.redirect_status.as_ref().map(|status| *status.get_ref()).unwrap_or_default().0;
        let prefixes = rule.prefix.iter().flat_map(Spanned::get_ref).map(|prefix| prefix.0.clone());
        let rewrite = Self {
            redirect: rule.redirect.as_ref().map(|target| (status, target.get_ref().clone())),
            prefixes: prefixes.collect(),
            removed: names(&rule.remove_headers),
            set: fields(&rule.set_headers),
            added: fields(&rule.add_headers),
            removed_from_request: names(&rule.remove_request_headers),
            set_in_request: fields(&rule.set_request_headers),
        };
        let is_needed = rewrite.redirect.is_some() || rewrite.is_of_response() || rewrite.is_of_request();
        is_needed.then_some(rewrite)
    }

    /// Notes in the decision what it does to a request that its rule matches.
    pub(super) fn note<'a>(&'a self, decision: &mut Decision<'a>) {
        if self.redirect.is_some() {
            decision.redirect = Some(self);
        }
        decision.rewrites_response |= self.is_of_response();
    }

    /// Whether it changes fields of responses.
    fn is_of_response(&self) -> bool {
        !self.removed.is_empty() || !self.set.is_empty() || !self.added.is_empty()
    }

    fn is_of_request(&self) -> bool {
        !self.removed_from_request.is_empty() || !self.set_in_request.is_empty()
    }

    /// `is_update`: they are the fields of a 304.
    fn apply(&self, fields: &mut HeaderMap, is_update: bool) {
        // The type of such a body also says where its parts end.
        let is_multipart = fields.get(CONTENT_TYPE).is_some_and(|value| {
            value.as_bytes().get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"))
        });
        let may_change = |name: &HeaderName| !(is_multipart && name == CONTENT_TYPE);
        for name in self.removed.iter().filter(|name| may_change(name)) {
            fields.remove(name);
        }
        for (name, value) in self.set.iter().filter(|(name, _)| may_change(name)) {
            fields.insert(name, value.clone());
        }
        for (name, value) in self.added.iter().filter(|(name, _)| may_change(name)) {
            // The lines of a 304 replace all lines that the client has. Without a line here, it keeps them.
            if is_update && !fields.contains_key(name) {
                continue;
            }
            fields.append(name, value.clone());
        }
    }

    /// Removes from a 304 all fields that it would change in the response that the 304 stands for. Then a client keeps the fields that
    /// it has got from this rule.
    fn withhold(&self, fields: &mut HeaderMap) {
        let changed = self.set.iter().chain(&self.added).map(|(name, _)| name);
        for name in self.removed.iter().chain(changed) {
            fields.remove(name);
        }
    }

    /// [`Rewrite::apply`] for the head of a response with HTTP/1.1, which ends with an empty line.
    fn apply_to_head(&self, head: &mut Vec<u8>) {
        for name in self.removed.iter().chain(self.set.iter().map(|(name, _)| name)) {
            while let Some(line) = line_of(head, name) {
                head.drain(line);
            }
        }
        head.truncate(head.len() - 2);
        for (name, value) in self.set.iter().chain(&self.added) {
            push_line(head, name.as_str().as_bytes(), value.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
    }
}

/// The part of a path behind a prefix. The prefix is as rules see paths, the path as the client wrote it: with escapes, and with slashes
/// in a row. So a redirect passes on what an escape means.
fn behind<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let (bytes, mut at, mut before) = (path.as_bytes(), 0, b' ');
    for expected in prefix.bytes() {
        let (mut byte, mut end) = read(bytes, at)?;
        while byte == b'/' && before == b'/' {
            (byte, end) = read(bytes, end)?;
        }
        if byte != expected {
            return None;
        }
        (before, at) = (byte, end);
    }
    path.get(at..)
}

/// The byte at a place of a path, which may be written as an escape, and the place behind it.
fn read(path: &[u8], at: usize) -> Option<(u8, usize)> {
    let digit = |place: usize| path.get(place).and_then(|digit| char::from(*digit).to_digit(16));
    match (path.get(at)?, digit(at + 1), digit(at + 2)) {
        (b'%', Some(high), Some(low)) => Some(((high * 16 + low) as u8, at + 3)),
        (byte, ..) => Some((*byte, at + 1)),
    }
}

/// The line of the first field with this name. All names of a head are in lower case.
fn line_of(head: &[u8], name: &HeaderName) -> Option<Range<usize>> {
    let name = name.as_str().as_bytes();
    let mut start = 0;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let end = start + line.len();
        if line.strip_prefix(name).is_some_and(|rest| rest.starts_with(b":")) {
            return Some(start..end);
        }
        start = end;
    }
    None
}

impl<'a> Decision<'a> {
    /// The status and the `Location` of the redirect that answers the request, if there is one. `key` is that of the request.
    pub(crate) fn redirect(&self, key: &CacheKey) -> Option<(StatusCode, String)> {
        let rewrite = self.redirect?;
        let (status, target) = rewrite.redirect.as_ref()?;
        let rest = rewrite.prefixes.iter().find_map(|prefix| behind(key.path(), prefix)).unwrap_or_default();
        Some((*status, target.location(Requested { path: key.path(), query: key.query(), rest })))
    }

    /// The name of the rule with that redirect.
    pub(crate) fn redirecting_rule(&self) -> Option<&'a str> {
        let redirects = |rule: &&Compiled| rule.rewrite.as_deref().is_some_and(|rewrite| rewrite.redirect.is_some());
        self.rules.among(self.matched).filter(redirects).last().map(|rule| rule.name.as_str())
    }

    /// Whether a redirect answers the request.
    pub(crate) fn redirects(&self) -> bool {
        self.redirect.is_some()
    }

    /// Changes the fields of the request as these rules say.
    pub(crate) fn rewrite_request(&self, fields: &mut HeaderMap) {
        for rewrite in self.rules.among(self.matched).filter_map(|rule| rule.rewrite.as_deref()) {
            for name in &rewrite.removed_from_request {
                fields.remove(name);
            }
            for (name, value) in &rewrite.set_in_request {
                fields.insert(name, value.clone());
            }
        }
    }

    /// Changes the fields of the response before it is sent. A 304 counts as the response that it stands for: the client takes its
    /// fields for that response (RFC 9111, section 3.2).
    pub(crate) fn rewrite_response<B>(&self, response: &mut Response<B>) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let is_update = response.status() == StatusCode::NOT_MODIFIED;
        let (status, media) = match response.extensions().get::<StandsFor>() {
            Some(stands_for) => (stands_for.status, stands_for.content_type.clone()),
            None => (response.status(), response.headers().get(CONTENT_TYPE).cloned()),
        };
        if status == StatusCode::NOT_MODIFIED {
            return self.rewrite_unknown(response.headers_mut());
        }
        for rewrite in self.of_head(status, media.as_ref().map(HeaderValue::as_bytes)) {
            rewrite.apply(response.headers_mut(), is_update);
        }
    }

    /// The same for a 304 that stands for a 200 of an unknown type.
    fn rewrite_unknown(&self, fields: &mut HeaderMap) {
        for rule in self.rules.among(self.matched).filter(|rule| rule.response.takes_status(StatusCode::OK)) {
            match rule.rewrite.as_deref() {
                Some(rewrite) if rule.response.takes_any_type() => rewrite.apply(fields, true),
                Some(rewrite) => rewrite.withhold(fields),
                None => {}
            }
        }
    }

    /// [`Decision::rewrite_response`] for the head of a response with HTTP/1.1 and this status.
    pub(crate) fn rewrite_head(&self, status: StatusCode, head: &mut Vec<u8>) {
        if !self.rewrites_response {
            return;
        }
        let media = line_of(head, &CONTENT_TYPE)
            .map(|line| head[line][CONTENT_TYPE.as_str().len() + 1..].trim_ascii().to_owned());
        for rewrite in self.of_head(status, media.as_deref()) {
            rewrite.apply_to_head(head);
        }
    }

    /// The rewrites of the rules that match a response with this status and type.
    fn of_head(&self, status: StatusCode, media: Option<&[u8]>) -> impl Iterator<Item = &'a Rewrite> {
        let of_response = move |rule: &&'a Compiled| rule.response.matches_head(status, media);
        let rules = self.rules;
        rules.among(self.matched).filter(of_response).filter_map(|rule| rule.rewrite.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn the_rest_of_a_path_keeps_its_escapes() {
        for (path, prefix, expected) in [
            ("/old/a%2Fb", "/old/", Some("a%2Fb")),
            ("/old/100%25", "/old", Some("/100%25")),
            ("/old%20shop/x", "/old shop/", Some("x")),
            ("/caf%C3%A9/%C3%A9", "/caf\u{e9}/", Some("%C3%A9")),
            ("//old///a//b", "/old/", Some("//a//b")),
            ("/%2Fold/a", "/old", Some("/a")),
            ("/old", "/old", Some("")),
            ("/old", "/old/", None),
            ("/new", "/old", None),
            ("/o%", "/o%", Some("")),
        ] {
            assert_eq!(behind(path, prefix), expected, "{path} {prefix}");
        }
    }
}
