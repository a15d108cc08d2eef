//! Asking the origin, and what its answer means.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::{self, Exchange};
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::reuse;
use eyewall_http::update::{self, HeadEffect};
use eyewall_http::validation::{self, Candidate};
use http::header::{AGE, CONTENT_LENGTH};
use http::{HeaderMap, HeaderValue, Response};
use hyper::body::Incoming;

use super::answer::Answer;
use super::fill::Fill;
use super::inbound::Inbound;
use super::intake::Intake;
use super::pages::{self, Stored};
use super::purged::Mark;
use super::{Ask, Proxy, failed, finish, hit, prepare, tags};
use crate::rules::Applied;
use crate::serve::body::Body;
use crate::serve::origin::{Fault, Outgoing};
use crate::serve::{NAME, reply};

/// What the origin answered, after [`prepare`].
struct Received<'a> {
    response: Response<Incoming>,
    applied: Applied<'a>,
    exchange: Exchange,
    /// What was purged when it was asked.
    mark: Mark,
}

impl Proxy {
    /// Asks for the whole response, or whether the stored one is still right: whatever the client has already, others may have
    /// nothing.
    pub(super) async fn fetch(self: &Arc<Self>, inbound: Inbound<'_>, mut ask: Ask) -> Response<Body> {
        let mark = self.pages.purged.mark(inbound.key.address().as_bytes());
        let (target, peer) = (inbound.target(), inbound.peer());
        loop {
            let mut asked = inbound.forwarded_fields(&self.site);
            let is_question = validation::make_conditional(&mut asked, &candidates(ask.stored.as_deref()));
            let requested = SystemTime::now();
            let response = match self.origins.send(Outgoing::get(&target, asked, &peer)).await {
                Ok(response) => response,
                Err(fault) => return self.without_origin(inbound, ask, &fault),
            };
            let exchange = Exchange { requested, received: SystemTime::now() };
            let (mut head, incoming) = response.into_parts();
            let applied = prepare(inbound.decision, head.status, &mut head.headers);
            let told = message::Response { status: head.status, fields: &head.headers };
            let outcome = validation::interpret(told, &candidates(ask.stored.as_deref()));
            match (outcome, ask.stored.take()) {
                (validation::Outcome::Updates(_), Some(stored)) => {
                    let stored = self.confirmed(inbound, stored, &head.headers, exchange);
                    if let Some(kind) = self.pages.purged.since(mark) {
                        self.pages.catch_up(&stored.key, kind);
                    }
                    let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
                    return hit::answer(inbound, *stored, status);
                }
                // It answers a question that was not asked any more: once without it.
                (validation::Outcome::AskAgain | validation::Outcome::Updates(_), _) if is_question => {}
                (validation::Outcome::Fails, Some(stored)) if ask.on_failure.error.is_some() => {
                    let status = CacheStatus::hit().detail("stale-if-error");
                    return hit::answer(inbound, *stored, status);
                }
                (_, stored) => {
                    ask.stored = stored;
                    let received = Received { response: Response::from_parts(head, incoming), applied, exchange, mark };
                    return self.receive(inbound, ask, received);
                }
            }
        }
    }

    /// The origin gave no answer.
    fn without_origin(&self, inbound: Inbound<'_>, ask: Ask, fault: &Fault) -> Response<Body> {
        let is_allowed = ask.on_failure.unreachable.is_some() && !self.pages.store.has_failed();
        match ask.stored.filter(|_| is_allowed) {
            Some(stored) => hit::answer(inbound, *stored, CacheStatus::hit().detail(fault.detail())),
            None => failed(fault, CacheStatus::forwarded(ask.why)),
        }
    }

    /// 304: what is stored is still right (RFC 9111, section 4.3.4).
    fn confirmed(
        &self,
        inbound: Inbound<'_>,
        mut stored: Box<Stored>,
        answer: &HeaderMap,
        exchange: Exchange,
    ) -> Box<Stored> {
        let fields = update::updated(&stored.found.head.fields, answer);
        self.renew(inbound, &mut stored, fields, exchange);
        stored
    }

    /// Gives a stored response other fields, and what follows from them, or removes it where it may no longer be kept.
    fn renew(&self, inbound: Inbound<'_>, stored: &mut Stored, fields: HeaderMap, exchange: Exchange) {
        let status = stored.found.head.status;
        let applied = inbound.decision.of_response(status, &fields);
        if let Ok(storable) = self.judge(inbound, &applied, (status, &fields), exchange) {
            self.pages.renew(stored, fields, &storable);
        } else {
            stored.found.head.fields = fields;
            self.pages.store.remove(&stored.key);
        }
    }

    /// The answer to a HEAD, and what it says of what is stored (RFC 9111, section 4.3.5).
    pub(super) fn heed(
        &self,
        inbound: Inbound<'_>,
        mut stored: Box<Stored>,
        answer: &Response<Incoming>,
        requested: SystemTime,
    ) {
        let exchange = Exchange { requested, received: SystemTime::now() };
        let length = Some(stored.found.bytes().len() as u64);
        match update::effect_of_head(&stored.found.head.fields, length, answer.status(), answer.headers()) {
            HeadEffect::None => {}
            HeadEffect::Updated(fields) => self.renew(inbound, &mut stored, fields, exchange),
            HeadEffect::Outdated => self.pages.store.remove(&stored.key),
        }
    }

    /// A whole answer: into the volume, if it may be stored, and to the client.
    fn receive(&self, inbound: Inbound<'_>, ask: Ask, received: Received<'_>) -> Response<Body> {
        let Received { response, applied, exchange, mark } = received;
        let (mut head, incoming) = response.into_parts();
        let key = inbound.key.as_bytes();
        let timeout = self.origins.timeouts().piece;
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let is_too_large = length.is_some_and(|length| length > self.body_bytes_max());
        let why_not = match self.judge(inbound, &applied, (head.status, &head.headers), exchange) {
            Ok(_) if is_too_large => "too-large",
            Ok(storable) => {
                self.pages.passes.remove(key);
                let answer = Arc::new(Answer {
                    status: head.status,
                    fields: pages::without(head.headers.clone(), &storable.withheld),
                    terms: storable.terms,
                    variant: pages::variant(&storable, inbound.fields()),
                    tags: tags::of_response(&self.site, inbound.key, &applied, &head.headers),
                    address_tag: tags::address(&self.site, inbound.key),
                    intake: Arc::new(Intake::default()),
                });
                // Nothing has come yet: whoever asks can read from the start.
                let body = answer.intake.reader().map_or_else(Body::empty, Body::shared);
                if let Some(ticket) = &ask.ticket {
                    ticket.answered(&answer);
                }
                let left = storable.terms.fresh_for(SystemTime::now()).as_secs() as i64;
                let fill = Fill {
                    pages: Arc::clone(&self.pages),
                    key: key.to_vec(),
                    answer,
                    length,
                    bytes_max: self.body_bytes_max(),
                    mark,
                    _ticket: ask.ticket,
                };
                fill.start(incoming, timeout);
                finish(&mut head.headers, head.version, &status.stored(true).ttl(left));
                return arranged(inbound, head.status, head.headers, body, exchange);
            }
            Err(why) => why,
        };
        // An origin in trouble is helped by waiting, and will be storable again.
        if !head.status.is_server_error() {
            self.pages.passes.insert(key);
        }
        if let Some(stored) = ask.stored.filter(|_| !reuse::is_failure(head.status)) {
            self.pages.store.remove(&stored.key);
        }
        finish(&mut head.headers, head.version, &status.detail(why_not));
        arranged(inbound, head.status, head.headers, Body::passed(incoming, timeout), exchange)
    }
}

/// The answer to a request that waited for another one's. `None` if the start of the body is gone.
pub(super) fn follow(inbound: Inbound<'_>, answer: &Arc<Answer>, why: Forward) -> Option<Response<Body>> {
    let body = Body::shared(answer.intake.reader()?);
    let now = SystemTime::now();
    let mut fields = answer.fields.clone();
    fields.insert(AGE, HeaderValue::from(answer.terms.age(now).as_secs()));
    let status = CacheStatus::forwarded(why).forward_status(answer.status).stored(true).collapsed(true);
    status.append_to(&mut fields, NAME);
    Some(arranged(inbound, answer.status, fields, body, Exchange { requested: now, received: now }))
}

/// A response to this request: 304 if the client has it already.
fn arranged(
    inbound: Inbound<'_>,
    status: http::StatusCode,
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
