//! The part of a rule that redirects, or changes fields on their way to the client or to the origin.

use std::ops::Range;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use toml::Spanned;

use super::{Compiled, Decision};
use crate::config::names::{FieldName, FieldValue};
use crate::config::redirect::{RedirectTarget, Requested};
use crate::config::rule::Rule;
use crate::key::{CacheKey, decoded};

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

    fn apply(&self, fields: &mut HeaderMap) {
        // The type of such a body also says where its parts end.
        let is_multipart = fields.get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"multipart/"));
        let may_change = |name: &HeaderName| !(is_multipart && name == CONTENT_TYPE);
        for name in self.removed.iter().filter(|name| may_change(name)) {
            fields.remove(name);
        }
        for (name, value) in self.set.iter().filter(|(name, _)| may_change(name)) {
            fields.insert(name, value.clone());
        }
        for (name, value) in self.added.iter().filter(|(name, _)| may_change(name)) {
            fields.append(name, value.clone());
        }
    }

    /// The same for the head of a response with HTTP/1.1, which ends with an empty line.
    fn apply_to_head(&self, head: &mut Vec<u8>) {
        for name in self.removed.iter().chain(self.set.iter().map(|(name, _)| name)) {
            while let Some(line) = line_of(head, name) {
                head.drain(line);
            }
        }
        head.truncate(head.len() - 2);
        for (name, value) in self.set.iter().chain(&self.added) {
            for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                head.extend_from_slice(piece);
            }
        }
        head.extend_from_slice(b"\r\n");
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
        let path = super::matcher::merged(decoded(key.path()));
        let behind = |prefix: &String| path.strip_prefix(prefix.as_str());
        let rest = rewrite.prefixes.iter().find_map(behind).unwrap_or_default();
        Some((*status, target.location(Requested { path: key.path(), query: key.query(), rest })))
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

    /// Changes the fields of the response before it is sent.
    pub(crate) fn rewrite_response<B>(&self, response: &mut Response<B>) {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let (status, media) = (response.status(), response.headers().get(CONTENT_TYPE).cloned());
        for rewrite in self.of_head(status, media.as_ref().map(HeaderValue::as_bytes)) {
            rewrite.apply(response.headers_mut());
        }
    }

    /// The same for the head of a response with HTTP/1.1 and this status.
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
