//! Asking the origin, and what its answer means.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::answer;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::{self, Exchange};
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::reuse::{self, OnFailure};
use eyewall_http::storing::NotStored;
use eyewall_http::update::{self, HeadEffect};
use eyewall_http::validation::{self, Candidate};
use eyewall_page_cache::recent_purges::Mark;
use http::header::CONTENT_LENGTH;
use http::{Extensions, HeaderMap, Response, StatusCode};
use hyper::body::Incoming;

use super::fragments::Unusable;
use super::inbound::Inbound;
use super::storing::{Coming, Refused};
use super::{Ask, Proxy, failed, finish, prepare, strip, tags};
use crate::rules::Applied;
use crate::serve::body::Body;
use crate::serve::origin::{ProxyError, framing};
use crate::serve::reply;
use eyewall_page_cache::selection::Stored;

impl Proxy {
    /// Asks for the whole response, or whether the stored one is still right: whatever the client has already, others may have
    /// nothing.
    pub(super) async fn fetch(self: &Arc<Self>, inbound: Inbound<'_>, mut ask: Ask) -> Response<Body> {
        let mark = self.pages.mark(inbound.key.address());
        let (target, client_info) = (inbound.target(), inbound.client_info());
        loop {
            let mut asked = inbound.forwarded_fields();
            let is_question = validation::make_conditional(&mut asked, &candidates(ask.stored.as_deref()));
            if let Some(part) = ask.part.filter(|_| ask.stored.is_none()) {
                part.ask(&mut asked);
            }
            let requested = SystemTime::now();
            let mut response = match self.origins.send(inbound.origin_request(&target, asked, &client_info)).await {
                Ok(response) => response,
                Err(error) => return self.without_origin(inbound, ask, &error, mark).await,
            };
            let exchange = Exchange { requested, received: SystemTime::now() };
            let applied = prepare(inbound.decision, &mut response);
            let (head, incoming) = response.into_parts();
            let told = message::Response { status: head.status, fields: &head.headers };
            let outcome = validation::interpret(told, &candidates(ask.stored.as_deref()));
            match (outcome, ask.stored.take()) {
                (validation::Outcome::Updates(_), Some(stored)) => {
                    let stored = self.confirmed(inbound, stored, &head.headers, Asked { applied, exchange, mark });
                    let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
                    match self.hit(inbound, *stored, status).await {
                        Ok(response) => return response,
                        // It is right, and there is too little of it: once more, for all of it.
                        Err(Unusable) => ask.why = Forward::Partial,
                    }
                }
                // It answers a question that was not asked any more: once without it.
                (validation::Outcome::AskAgain | validation::Outcome::Updates(_), _) if is_question => {}
                (validation::Outcome::Fails, Some(stored)) if ask.on_failure.error.is_some() => {
                    let status = CacheStatus::hit().detail("stale-if-error");
                    if let Ok(response) = self.hit(inbound, *stored, status).await {
                        return response;
                    }
                    let answer = Response::from_parts(head, incoming);
                    return self.receive(inbound, ask, answer, Asked { applied, exchange, mark }).await;
                }
                (_, stored) => {
                    ask.stored = stored;
                    let answer = Response::from_parts(head, incoming);
                    return match ask.part {
                        Some(part) if answer.status() == StatusCode::PARTIAL_CONTENT => {
                            self.receive_part(inbound, ask, part, answer, Asked { applied, exchange, mark }).await
                        }
                        // It is of the range alone that was asked for.
                        Some(part) if answer.status() == StatusCode::RANGE_NOT_SATISFIABLE => {
                            let status = CacheStatus::forwarded(ask.why).detail("range");
                            if part.is_all() {
                                self.passed(&inbound.parts.method, answer, status)
                            } else {
                                self.pass(inbound, status, None).await
                            }
                        }
                        _ => self.receive(inbound, ask, answer, Asked { applied, exchange, mark }).await,
                    };
                }
            }
        }
    }

    /// The origin gave no answer.
    async fn without_origin(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        ask: Ask,
        error: &ProxyError,
        mark: Mark,
    ) -> Response<Body> {
        let is_nothing_there = ask.stored.is_none() && ask.why == Forward::UriMiss;
        if let Some(response) = self.stale_without_origin(inbound, ask.stored, ask.on_failure, error).await {
            return response;
        }
        // What is stored and stale is worth more than the memory of a failure.
        if is_nothing_there
            && error.is_of_origin()
            && let Some(ttl) = Self::ttl_of_failure(inbound, error.status())
        {
            let tags = tags::address(&self.site, inbound.key).into_iter().collect();
            self.remember(inbound, (error.status(), ttl), tags, mark).await;
        }
        failed(error, CacheStatus::forwarded(ask.why))
    }

    /// What is stored, where it may be sent although the origin gave no answer (RFC 9111, section 4.2.4).
    pub(super) async fn stale_without_origin(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        stored: Option<Box<Stored>>,
        on_failure: OnFailure,
        error: &ProxyError,
    ) -> Option<Response<Body>> {
        let is_allowed = on_failure.unreachable.is_some() && !self.pages.store.has_failed();
        let stored = stored.filter(|_| is_allowed)?;
        self.hit(inbound, *stored, CacheStatus::hit().detail(error.detail())).await.ok()
    }

    /// 304: what is stored is still right (RFC 9111, section 4.3.4).
    fn confirmed(
        &self,
        inbound: Inbound<'_>,
        mut stored: Box<Stored>,
        answer: &HeaderMap,
        asked: Asked<'_>,
    ) -> Box<Stored> {
        let fields = update::updated(&stored.found.head.fields, answer);
        self.renew(inbound, &mut stored, fields, asked);
        stored
    }

    /// Gives a stored response other fields, and what follows from them, or removes it where it may no longer be kept.
    pub(super) fn renew(&self, inbound: Inbound<'_>, stored: &mut Stored, mut fields: HeaderMap, asked: Asked<'_>) {
        let status = stored.found.head.status;
        // Its tags are those of when its body came.
        let applied = strip(inbound.decision, status, &mut fields, &mut Extensions::new());
        match self.judge(inbound, &applied, (status, &fields), asked.exchange) {
            Ok(storable) => return self.pages.renew(stored, fields, &storable, asked.mark),
            Err(why) if why.is_of_request() => {}
            Err(_) => self.pages.store.remove_found(&stored.key, &stored.found),
        }
        stored.found.head.fields = fields;
    }

    /// The answer to a HEAD, and what it says of what is stored (RFC 9111, section 4.3.5).
    pub(super) fn freshen_with_head(
        &self,
        inbound: Inbound<'_>,
        mut stored: Box<Stored>,
        answer: &Response<Incoming>,
        asked: Asked<'_>,
    ) {
        let length = Some(stored.length());
        match update::effect_of_head(&stored.found.head.fields, length, answer.status(), answer.headers()) {
            HeadEffect::None => {}
            HeadEffect::Updated(fields) => self.renew(inbound, &mut stored, fields, asked),
            HeadEffect::Outdated => self.pages.store.remove_found(&stored.key, &stored.found),
        }
    }

    /// An answer: into the volume, if it may be stored, and to the client.
    pub(super) async fn receive(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        ask: Ask,
        response: Response<Incoming>,
        asked: Asked<'_>,
    ) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        let key = inbound.key.as_bytes();
        let timeout = self.origins.timeouts().piece;
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        let told = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        // A response that tells no length because it has no content is as long as nothing.
        let length = if answer::has_length(head.status) { told } else { Some(0) };
        let may_be_fragmented = head.status == StatusCode::OK;
        let bytes_max = if may_be_fragmented { self.object_bytes_max() } else { self.entry_bytes_max() };
        let judged = self.judge(inbound, &asked.applied, (head.status, &head.headers), asked.exchange);
        let keeps_stored = self.keeps_stored(inbound, head.status, &judged).await;
        let entry = judged.and_then(|storable| match head.status {
            // Nobody asked for a part.
            StatusCode::PARTIAL_CONTENT => Err(Refused::Http(NotStored::Partial)),
            _ if keeps_stored => Err(Refused::KeepsStored),
            _ if framing::is_coded(&head.extensions) => Err(Refused::Coding),
            _ if length.is_some_and(|length| length > bytes_max) => Err(Refused::TooLarge),
            _ => Ok((self.entry(inbound, &head, &storable, asked)?, storable)),
        });
        let why_not = match entry {
            Ok((entry, storable)) => {
                self.pages.unstorable.remove(key);
                if let Some(ttl) = Self::ttl_of_bare(head.status, length, &storable) {
                    if let Some(stored) = ask.stored.filter(|_| !reuse::is_failure(head.status)) {
                        self.pages.store.remove_found(&stored.key, &stored.found);
                    }
                    let is_remembered = self.remember(inbound, (head.status, ttl), entry.tags, asked.mark).await;
                    let status = if is_remembered {
                        status.stored(true).ttl(ttl.as_secs() as i64)
                    } else {
                        status.detail(Refused::KeepsStored.as_str())
                    };
                    finish(&mut head.headers, head.version, &status);
                    return arranged(inbound, head.status, head.headers, Body::empty(), asked.exchange);
                }
                let (range, skipped, forward_status) = (None, 0, head.status);
                let coming = Coming { head, incoming, storable, entry, length, range, skipped, forward_status };
                return self.store(inbound, ask, coming, asked).await;
            }
            Err(why) => why,
        };
        // An origin in trouble is helped by waiting, and will be storable again.
        let is_kept =
            ask.stored.as_ref().is_some_and(|stored| stored.withstands(head.status, &self.policy, SystemTime::now()));
        let is_replaced = !is_kept && !why_not.is_of_request();
        if is_replaced && !head.status.is_server_error() {
            self.pages.unstorable.insert(key);
        }
        if let Some(stored) = ask.stored.filter(|_| is_replaced && !reuse::is_failure(head.status)) {
            self.pages.store.remove_found(&stored.key, &stored.found);
        }
        finish(&mut head.headers, head.version, &status.detail(why_not.as_str()));
        arranged(inbound, head.status, head.headers, Body::passed(incoming, timeout), asked.exchange)
    }
}

/// When the origin was asked, and what the rules say of its answer.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) applied: Applied<'a>,
    pub(super) exchange: Exchange,
    pub(super) mark: Mark,
}

/// A response to this request: 304 if the client has it already.
pub(super) fn arranged(
    inbound: Inbound<'_>,
    status: StatusCode,
    fields: HeaderMap,
    body: Body,
    exchange: Exchange,
) -> Response<Body> {
    let current = Representation { status, fields: &fields, received: exchange.received };
    match precondition::evaluate(Role::Cache, &inbound.parts.method, inbound.fields(), Some(&current)) {
        Outcome::NotModified => reply::not_modified(&fields),
        Outcome::Proceed | Outcome::Failed | Outcome::Partial(_) => reply::response(status, fields, body),
    }
}

fn candidates(stored: Option<&Stored>) -> Vec<Candidate<'_>> {
    stored.iter().map(|stored| Candidate { fields: &stored.found.head.fields, received: stored.received() }).collect()
}
