//! A miss that another node answers: the home of the key.
//!
//! ```text
//! home is this node, or none ──> the origin
//! home ──sign of life in time──> its answer ──the notes allow it──> taken
//!   │ none                           └ nothing, refused, broken ──> the origin
//!   └──> the origin, too: the first answer is taken
//! ```
//! For a range of what isn't stored, the home is asked for the fragments around it, as the origin is without peers. So nobody has to send a
//! large body from its start.
//!
//! A home that is down or slow costs this node one request to the origin. A node that goes down after its sign of life is waited for no
//! longer.

use std::pin::pin;
use std::sync::Arc;

use eyewall_fleet::{AsOf, Subject};
use eyewall_http::field::range::ContentRange;
use eyewall_http::ranges::fields_of_part;
use eyewall_http::strong_validator;
use eyewall_page_cache::cached_body::CachedBody;
use eyewall_page_cache::carried::{Carried, Envelope, WhyNot};
use eyewall_page_cache::upstream::Question;
use http::header::{
    AGE, CONTENT_LENGTH, HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use tokio::time::timeout;

use super::Proxy;
use super::inbound::Inbound;
use crate::key::{CacheKey, RequestHost};
use crate::serve::origin::{ProxyError, ResponseBody};
use crate::serve::peers::{Made, PageQuestion, Peers};
use crate::serve::trace::{self, Ids};
use crate::serve::trusted_proxies::Forwarded;

/// Fields about the client's own copy, and the host, which the question names.
const OF_CLIENT: [http::HeaderName; 7] =
    [HOST, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

/// The part that a node asks for.
struct Wanted {
    range: Option<HeaderValue>,
    /// The version that it has other parts of.
    of: Option<HeaderValue>,
}

impl Inbound {
    /// Asks the home of the key, or the origin.
    pub(super) async fn ask_for_all(&self, question: Question<'_>) -> Result<Response<ResponseBody>, ProxyError> {
        let home = self.received.as_ref().and_then(|received| {
            let peers = self.proxy.peers.as_ref().filter(|_| question.is_for_all && question.method == Method::GET)?;
            Some((peers, peers.home(self.key.as_bytes())?, received))
        });
        let Some((peers, home, received)) = home else { return self.ask_origin(question).await };
        let _under_way = home.enter();
        if home.is_self {
            return self.ask_origin(question).await;
        }
        let validators = PageQuestion::validators_of(&question.fields);
        let has_some = !validators.is_empty() || question.fields.contains_key(IF_RANGE);
        let is_hot = peers.is_hot(self.key.as_bytes()) || has_some;
        let wanted = Wanted { range: question.fields.get(RANGE).cloned(), of: question.fields.get(IF_RANGE).cloned() };
        let asked = self.page_question(peers, &question, received, validators);
        // After a sign of life, as long as for an origin.
        let patience = self.proxy.origins.timeouts().head;
        let mut asking = pin!(peers.ask(&home, asked));
        let first = timeout(peers.hedge(&home), &mut asking).await;
        let is_late = first.is_err();
        let taking = async {
            let alive = match first {
                Ok(alive) => alive,
                Err(_) => asking.await,
            };
            let made = alive.ok()?.answer_of(&home, patience).await.ok()?;
            let site = self.proxy.site.name().unwrap_or("*");
            home.has_settings(site, !matches!(made.envelope, Envelope::Nothing(WhyNot::OtherSettings)));
            self.take(peers, made, &wanted, is_hot)
        };
        if is_late {
            return self.race(taking, question).await;
        }
        match taking.await {
            Some(response) => Ok(response),
            None => self.ask_origin(question).await,
        }
    }

    /// The first answer of the two. If the origin fails, the other node may still have one.
    async fn race(
        &self,
        taking: impl Future<Output = Option<Response<ResponseBody>>>,
        question: Question<'_>,
    ) -> Result<Response<ResponseBody>, ProxyError> {
        let (mut taking, mut asking) = (pin!(taking), pin!(self.ask_origin(question)));
        let answered = tokio::select! {
            biased;
            taken = &mut taking => return match taken {
                Some(response) => Ok(response),
                None => asking.await,
            },
            answered = &mut asking => answered,
        };
        match answered {
            Ok(response) if !response.status().is_server_error() => Ok(response),
            failed => taking.await.map_or(failed, Ok),
        }
    }

    fn page_question(
        &self,
        peers: &Peers,
        question: &Question<'_>,
        received: &HeaderMap,
        validators: HeaderMap,
    ) -> PageQuestion {
        let mut fields = received.clone();
        eyewall_http::field::connection::drop_hop_by_hop(&mut fields);
        for name in OF_CLIENT {
            fields.remove(name);
        }
        // Whole fragments around what the client wants.
        if let Some(range) = question.fields.get(RANGE) {
            fields.insert(RANGE, range.clone());
        }
        if let Some(ids) = question.client.extensions.get::<Arc<Ids>>() {
            ids.write(&mut fields);
        }
        peers.append_loop(&mut fields);
        PageQuestion {
            basis: self.proxy.site.basis(self.key.as_bytes()),
            scheme: self.key.scheme(),
            authority: self.key.authority().to_owned(),
            target: question.client.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
            client: self.client,
            forwarded: question.client.extensions.get::<Forwarded>().cloned(),
            validators,
            fields,
        }
    }

    /// The response of another node, if it gives one and no later purge covers it.
    fn take(&self, peers: &Peers, made: Made, wanted: &Wanted, is_hot: bool) -> Option<Response<ResponseBody>> {
        let Made { envelope, body, received } = made;
        let (mut carried, status, range) = match envelope {
            Envelope::Response(carried) => (carried, None, None),
            Envelope::Unchanged(carried) => (carried, Some(StatusCode::NOT_MODIFIED), None),
            Envelope::Part(carried, range) if wanted.range.is_some() => {
                (carried, Some(StatusCode::PARTIAL_CONTENT), Some(range))
            }
            Envelope::Part(..) | Envelope::Nothing(_) => return None,
        };
        // The home may have another version than the one that this node has stored in part.
        let version = strong_validator::if_range(&carried.fields, received);
        if wanted.of.is_some() && wanted.of != version {
            return None;
        }
        let (address, key) = (self.key.address(), self.key.as_bytes());
        let fleet = self.proxy.fleet.as_ref()?;
        if !fleet.allows(&carried.as_of, Subject { address, key, tags: &carried.tags }) {
            return None;
        }
        carried.limit(peers.keep(), received);
        // If the home gives all, the cache cuts the client's range out of it.
        carried.is_kept = is_hot || wanted.range.is_some() && range.is_none();
        let mut response = Response::new(body);
        *response.status_mut() = status.unwrap_or(carried.status);
        let mut fields = carried.fields.clone();
        fields.insert(AGE, carried.age_seconds(received).into());
        match (range, carried.length) {
            (Some(range), length) => fields = fields_of_part(&fields, &range, length)?,
            (None, Some(length)) if status.is_none() => {
                fields.insert(CONTENT_LENGTH, length.into());
            }
            _ => {}
        }
        *response.headers_mut() = fields;
        response.extensions_mut().insert(carried);
        Some(response)
    }
}

impl Proxy {
    /// Makes a response for another node, whose volume was right up to `as_of` before. It never asks a third one.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(crate) async fn answer_peer(
        self: &Arc<Self>,
        question: &PageQuestion,
        as_of: AsOf,
    ) -> Result<(Envelope, CachedBody<ResponseBody>), WhyNot> {
        let host = RequestHost::parse(&question.authority).map_err(|_| WhyNot::NotServed)?;
        let request = Request::get(&question.target).body(()).map_err(|_| WhyNot::NotServed)?;
        let (mut parts, ()) = request.into_parts();
        parts.headers = question.fields.clone();
        if let Some(forwarded) = &question.forwarded {
            parts.extensions.insert(forwarded.clone());
        }
        if let Some(ids) = trace::of_peer(self.tracing.as_ref(), &parts.headers) {
            parts.extensions.insert(ids);
        }
        let key = CacheKey::of(&self.site.key, &host, question.scheme, &parts).map_err(|_| WhyNot::NotServed)?;
        // Another configuration, as while a new one is rolled out: the response of another key, or one that its rules forbid.
        if question.basis != self.site.basis(key.as_bytes()) {
            return Err(WhyNot::OtherSettings);
        }
        let visit = self.visit_of_peer(parts, key, question.client, as_of);
        let decision = visit.upstream.decision();
        if decision.bypass.is_some() || decision.redirects() || self.pages.store.has_failed() {
            return Err(WhyNot::NotServed);
        }
        if visit.is_unstorable() {
            return Err(WhyNot::NotStored);
        }
        let mut response = visit.answer().await.map_err(|_| WhyNot::Failed)?;
        let is_failure = response.status().is_server_error();
        let Some(carried) = response.extensions_mut().remove::<Carried>() else {
            return Err(if is_failure { WhyNot::Failed } else { WhyNot::NotStored });
        };
        let envelope = match (response.status(), ContentRange::of(response.headers())) {
            (StatusCode::PARTIAL_CONTENT, Some(ContentRange::Satisfied { range, .. })) => {
                Envelope::Part(carried, range)
            }
            // The other node has to see the refusal of the origin.
            (StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE, _) => return Err(WhyNot::NotStored),
            _ if question.has(&carried.fields) => return Ok((Envelope::Unchanged(carried), CachedBody::empty())),
            _ => Envelope::Response(carried),
        };
        Ok((envelope, response.into_body()))
    }
}
