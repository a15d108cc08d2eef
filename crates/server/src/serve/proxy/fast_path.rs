//! Answers to simple requests from the volume. The head of the response is written from that of the entry, field by field, and its
//! body is the entry's value. If the entry isn't fresh, whole and in memory, the request takes the full path.
//!
//! The fast path gives the answer that [`Proxy::answer`] would give, by the same decisions: the key, the rules, the choice among
//! variants and the terms of reuse are those of the full path. Only the fields that these look at are passed to them.

use std::time::SystemTime;

use eyewall::Hit;
use eyewall_http::coding::{self, Coding};
use eyewall_http::field::cache_control::RequestDirectives;
use eyewall_http::reuse::{self, Reuse};
use eyewall_http::vary_index::{Variant, VaryIndex};
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, Request, StatusCode};
use itoa::Buffer;

use super::Proxy;
use crate::key::{CacheKey, RequestHost, Scheme};
use crate::rules::Decision;
use crate::serve::simple_request::SimpleRequest;
use crate::serve::{NAME, fields};
use eyewall_page_cache::compression::form::{self, Chosen, Form};
use eyewall_page_cache::head::{HeadView, Kind};
use eyewall_page_cache::visit::Freshness;

/// A response by the fast path.
pub(crate) struct FastHit<'a> {
    pub(crate) status: StatusCode,
    /// Pins the body as long as this value lives.
    pub(crate) hit: Hit<'a>,
    /// When it was looked up.
    pub(crate) looked_up: SystemTime,
}

impl Proxy {
    /// The entry that answers a simple request of this site. Writes the head of the response, of HTTP/1.1, into `head`.
    pub(crate) fn fast_hit(
        &self,
        request: &SimpleRequest<'_>,
        host: &RequestHost,
        head: &mut Vec<u8>,
    ) -> Option<FastHit<'_>> {
        let found = self.try_fast_hit(request, host, head).filter(|found| found.hit.is_intact());
        if found.is_none() && self.pages.store.has_failed() {
            self.pages.store.notice_loss(&[]);
        }
        found
    }

    fn try_fast_hit(&self, request: &SimpleRequest<'_>, host: &RequestHost, head: &mut Vec<u8>) -> Option<FastHit<'_>> {
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.uri = request.target.parse().ok()?;
        // The missing part is a fragment, and the full path refuses the request.
        if parts.uri.path_and_query()?.as_str().len() != request.target.len() {
            return None;
        }
        parts.headers = self.received(request, &self.looked_at);
        let key = CacheKey::of(&self.site.key, host, request.scheme, &parts).ok()?;
        let decision = self.site.rules.of_request(&key, &parts);
        if decision.bypass.is_some() || decision.redirects() {
            return None;
        }
        let now = SystemTime::now();
        let variant;
        let (key, hit) = match self.fresh_entry(key.as_bytes(), now)? {
            Entry::Response(hit) => (key.as_bytes(), hit),
            Entry::VaryIndex(vary_index) => {
                variant = self.fresh_variant(key.as_bytes(), request, decision, &vary_index, now)?;
                (&variant.0[..], variant.1)
            }
        };
        let view = HeadView::of(hit.metadata())?;
        if view.status.as_u16() >= 400 && self.site.error_pages.replaces(view.status) {
            return None;
        }
        let (is_last, hsts) = (request.is_last, self.hsts_line.as_deref().filter(|_| request.scheme == Scheme::Https));
        if view.compressible.is_some()
            && let Some((coding, form)) = self.fresh_form(key, &view, request)?
        {
            let body = BodyOfHead { coding: Some(coding), length: form.len() };
            let status = write_head(view, body, now, is_last, hsts, head)?;
            decision.rewrite_head(status, head);
            return hit.is_intact().then_some(FastHit { status, hit: form, looked_up: now });
        }
        let body = BodyOfHead { coding: None, length: hit.len() };
        let status = write_head(view, body, now, is_last, hsts, head)?;
        decision.rewrite_head(status, head);
        Some(FastHit { status, hit, looked_up: now })
    }

    /// The compressed form that the client gets in place of the response with this key and head. `None`: the full path has to look
    /// for it.
    fn fresh_form(&self, key: &[u8], head: &HeadView<'_>, request: &SimpleRequest<'_>) -> Option<Chosen<Hit<'_>>> {
        let (Some(compressible), Some(compression)) = (head.compressible, &self.settings.compression) else {
            return Some(None);
        };
        let (store, mut is_resident) = (&self.pages.store, true);
        let look = |coding| {
            let form = form::key(key, coding);
            is_resident &= store.is_likely_resident(&form);
            if is_resident { store.form(&form, compressible.version) } else { Form::NotSmaller }
        };
        let offered = compressible.codings.and(compression.codings);
        let wanted = coding::wanted_in(offered, request.values(ACCEPT_ENCODING.as_str()));
        let chosen = form::choose(wanted, look, |coding| self.pages.ask_for_form(key, compressible, coding));
        is_resident.then_some(chosen)
    }

    /// The fields of a simple request with these names, as far as a client may set them.
    fn received(&self, request: &SimpleRequest<'_>, names: &[http::HeaderName]) -> HeaderMap {
        let mut fields = request.fields_of(names);
        if !fields.is_empty() || !self.site.key.languages().is_empty() {
            fields::receive(&mut fields, &self.site.key, request.is_from_trusted_proxy);
        }
        fields
    }

    fn fresh_entry(&self, key: &[u8], now: SystemTime) -> Option<Entry<'_>> {
        let store = &self.pages.store;
        if !store.is_likely_resident(key) {
            return None;
        }
        let hit = store.hit_if(key, |hit| {
            let Some(view) = HeadView::of(hit.metadata()) else { return false };
            match view.kind {
                Kind::VaryIndex => true,
                Kind::Response(terms) => {
                    has_simple_head(view.status)
                        && reuse::decide(&terms, &RequestDirectives::default(), now, &self.policy) == Reuse::Fresh
                }
                Kind::Fragmented(..) | Kind::Fragment | Kind::Form(_) => false,
            }
        })?;
        if HeadView::of(hit.metadata())?.kind == Kind::VaryIndex {
            return VaryIndex::decode(&hit).map(Entry::VaryIndex);
        }
        Some(Entry::Response(hit))
    }

    /// The variant that matches by the latest list of names. If none is stored there, an earlier list may select another one; the
    /// full path finds that out.
    fn fresh_variant(
        &self,
        key: &[u8],
        request: &SimpleRequest<'_>,
        decision: Decision<'_>,
        vary_index: &VaryIndex,
        now: SystemTime,
    ) -> Option<(Vec<u8>, Hit<'_>)> {
        let names = vary_index.name_lists().next()?;
        let mut fields = self.received(request, names);
        decision.drop_ignored_cookies(&mut fields);
        decision.rewrite_request(&mut fields);
        let variant = Variant::of(names, &fields);
        let key = vary_index.key_of(key, &variant);
        match self.fresh_entry(&key, now)? {
            Entry::Response(hit) => Some((key, hit)),
            Entry::VaryIndex(_) => None,
        }
    }
}

/// A fresh entry.
enum Entry<'a> {
    Response(Hit<'a>),
    VaryIndex(VaryIndex),
}

/// Whether a response of this status has a body and a length, and is no partial response.
fn has_simple_head(status: StatusCode) -> bool {
    !status.is_informational()
        && !matches!(status, StatusCode::NO_CONTENT | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED)
        && status.canonical_reason().is_some()
}

/// The body that a head is for.
struct BodyOfHead {
    /// `None`: as it is stored.
    coding: Option<Coding>,
    length: usize,
}

/// Writes the head of a response with this body, and returns the status.
fn write_head(
    view: HeadView<'_>,
    BodyOfHead { coding, length }: BodyOfHead,
    now: SystemTime,
    is_last: bool,
    hsts: Option<&str>,
    head: &mut Vec<u8>,
) -> Option<StatusCode> {
    let Kind::Response(terms) = view.kind else { return None };
    let status = view.status;
    head.clear();
    push(head, &["HTTP/1.1 ", status.as_str(), " ", status.canonical_reason()?, "\r\n"]);
    // Before a stored one, from before the site had `hsts`: browsers follow the first (RFC 6797, section 8.1).
    push(head, hsts.as_slice());
    match coding {
        Some(coding) => view.write_lines_of_form(coding, head)?,
        None => view.write_lines(head)?,
    }
    write_freshness(Freshness::of(&terms, now), head);
    push(head, &["content-length: ", Buffer::new().format(length), "\r\n"]);
    push(head, &[if is_last { "connection: close\r\n\r\n" } else { "\r\n" }]);
    Some(status)
}

/// The lines of HTTP/1 that a plain hit has in addition to the stored fields, as the full path writes them by [`Visit::finish`].
///
/// [`Visit::finish`]: eyewall_page_cache::visit::Visit::finish
fn write_freshness(freshness: Freshness, head: &mut Vec<u8>) {
    let (mut age, mut left) = (Buffer::new(), Buffer::new());
    push(head, &["age: ", age.format(freshness.age), "\r\nvia: 1.1 ", fields::BY, "\r\ncache-status: ", NAME]);
    push(head, &["; hit; ttl=", left.format(freshness.left), "\r\n"]);
}

fn push(head: &mut Vec<u8>, pieces: &[&str]) {
    for piece in pieces {
        head.extend_from_slice(piece.as_bytes());
    }
}
