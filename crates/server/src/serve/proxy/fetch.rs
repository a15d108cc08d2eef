//! Asking the origin, and what its answer means.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::field::groups;
use eyewall_http::message::{self, Exchange};
use eyewall_http::precondition::{self, Outcome, Representation, Role};
use eyewall_http::reuse;
use eyewall_http::update::{self, HeadEffect};
use eyewall_http::validation::{self, Candidate};
use http::header::{AGE, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response};
use hyper::body::Incoming;

use super::answer::Answer;
use super::fill::Fill;
use super::intake::Intake;
use super::pages::{self, Stored, group_tag};
use super::purged::Mark;
use super::{Ask, Proxy, failed, finish, hit, prepare};
use crate::serve::body::Body;
use crate::serve::origin::Fault;
use crate::serve::{NAME, fields, reply};

/// So many tags an entry can have; RFC 9875 asks for as many groups at least.
const TAGS_MAX: usize = 32;

impl Proxy {
    /// Asks for the whole response, or whether the stored one is still right: whatever the client has already, others may have
    /// nothing.
    pub(super) async fn fetch(self: &Arc<Self>, request: &Parts, mut ask: Ask) -> Response<Body> {
        let mark = self.pages.purged.mark(&ask.key);
        loop {
            let mut asked = fields::of_forwarded_request(&request.headers, request.version);
            let is_question = validation::make_conditional(&mut asked, &candidates(ask.stored.as_deref()));
            let requested = SystemTime::now();
            let response = match self.origins.fetch(Method::GET, &request.uri, asked).await {
                Ok(response) => response,
                Err(fault) => return self.without_origin(request, ask, &fault),
            };
            let exchange = Exchange { requested, received: SystemTime::now() };
            let (mut head, incoming) = response.into_parts();
            prepare(&mut head.headers);
            let told = message::Response { status: head.status, fields: &head.headers };
            let outcome = validation::interpret(told, &candidates(ask.stored.as_deref()));
            match (outcome, ask.stored.take()) {
                (validation::Outcome::Updates(_), Some(stored)) => {
                    let stored = self.confirmed(request, stored, &head.headers, exchange);
                    if self.pages.purged.has_come_since(mark) {
                        self.pages.store.remove(&stored.key);
                    }
                    let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
                    return hit::answer(request, *stored, status);
                }
                // It answers a question that was not asked any more: once without it.
                (validation::Outcome::AskAgain | validation::Outcome::Updates(_), _) if is_question => {}
                (validation::Outcome::Fails, Some(stored)) if ask.on_failure.error.is_some() => {
                    let status = CacheStatus::hit().detail("stale-if-error");
                    return hit::answer(request, *stored, status);
                }
                (_, stored) => {
                    ask.stored = stored;
                    return self.receive(request, ask, Response::from_parts(head, incoming), exchange, mark);
                }
            }
        }
    }

    /// The origin gave no answer.
    fn without_origin(&self, request: &Parts, ask: Ask, fault: &Fault) -> Response<Body> {
        let is_allowed = ask.on_failure.unreachable.is_some() && !self.pages.store.has_failed();
        match ask.stored.filter(|_| is_allowed) {
            Some(stored) => hit::answer(request, *stored, CacheStatus::hit().detail(fault.detail())),
            None => failed(fault, CacheStatus::forwarded(ask.why)),
        }
    }

    /// 304: what is stored is still right (RFC 9111, section 4.3.4).
    fn confirmed(
        &self,
        request: &Parts,
        mut stored: Box<Stored>,
        answer: &HeaderMap,
        exchange: Exchange,
    ) -> Box<Stored> {
        let fields = update::updated(&stored.found.head.fields, answer);
        self.pages.renew(&mut stored, &request.headers, fields, exchange);
        stored
    }

    /// The answer to a HEAD, and what it says of what is stored (RFC 9111, section 4.3.5).
    pub(super) fn heed(
        &self,
        request: &Parts,
        mut stored: Box<Stored>,
        answer: &Response<Incoming>,
        requested: SystemTime,
    ) {
        let exchange = Exchange { requested, received: SystemTime::now() };
        let length = Some(stored.found.bytes().len() as u64);
        match update::effect_of_head(&stored.found.head.fields, length, answer.status(), answer.headers()) {
            HeadEffect::None => {}
            HeadEffect::Updated(fields) => self.pages.renew(&mut stored, &request.headers, fields, exchange),
            HeadEffect::Outdated => self.pages.store.remove(&stored.key),
        }
    }

    /// A whole answer: into the volume, if it may be stored, and to the client.
    fn receive(
        &self,
        request: &Parts,
        ask: Ask,
        response: Response<Incoming>,
        exchange: Exchange,
        mark: Mark,
    ) -> Response<Body> {
        let (mut head, incoming) = response.into_parts();
        let timeout = self.origins.timeouts().piece;
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        let length = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        let is_too_large = length.is_some_and(|length| length > self.pages.store.entry_bytes_max());
        let why_not = match self.pages.judge(&request.headers, head.status, &head.headers, exchange) {
            Ok(_) if is_too_large => "too-large",
            Ok(storable) => {
                self.pages.passes.remove(&ask.key);
                let groups = groups::of(&head.headers);
                let answer = Arc::new(Answer {
                    status: head.status,
                    fields: pages::without(head.headers.clone(), &storable.withheld),
                    terms: storable.terms,
                    variant: pages::variant(&storable, &request.headers),
                    tags: groups.iter().take(TAGS_MAX).map(|name| group_tag(&self.origins.key(), name)).collect(),
                    intake: Arc::new(Intake::default()),
                });
                // Nothing has come yet: whoever asks can read from the start.
                let body = answer.intake.reader().map_or_else(Body::empty, Body::shared);
                if let Some(ticket) = &ask.ticket {
                    ticket.answered(&answer);
                }
                let left = storable.terms.fresh_for(SystemTime::now()).as_secs() as i64;
                let fill =
                    Fill { pages: Arc::clone(&self.pages), key: ask.key, answer, length, mark, _ticket: ask.ticket };
                fill.start(incoming, timeout);
                finish(&mut head.headers, head.version, &status.stored(true).ttl(left));
                return arranged(request, head.status, head.headers, body, exchange);
            }
            Err(why) => why.as_str(),
        };
        // An origin in trouble is helped by waiting, and will be storable again.
        if !head.status.is_server_error() {
            self.pages.passes.insert(&ask.key);
        }
        if let Some(stored) = ask.stored.filter(|_| !reuse::is_failure(head.status)) {
            self.pages.store.remove(&stored.key);
        }
        finish(&mut head.headers, head.version, &status.detail(why_not));
        arranged(request, head.status, head.headers, Body::passed(incoming, timeout), exchange)
    }
}

/// The answer to a request that waited for another one's. `None` if the start of the body is gone.
pub(super) fn follow(request: &Parts, answer: &Arc<Answer>, why: Forward) -> Option<Response<Body>> {
    let body = Body::shared(answer.intake.reader()?);
    let now = SystemTime::now();
    let mut fields = answer.fields.clone();
    fields.insert(AGE, HeaderValue::from(answer.terms.age(now).as_secs()));
    let status = CacheStatus::forwarded(why).forward_status(answer.status).stored(true).collapsed(true);
    status.append_to(&mut fields, NAME);
    Some(arranged(request, answer.status, fields, body, Exchange { requested: now, received: now }))
}

/// A response to this request: 304 if the client has it already.
fn arranged(
    request: &Parts,
    status: http::StatusCode,
    fields: HeaderMap,
    body: Body,
    exchange: Exchange,
) -> Response<Body> {
    let current = Representation { status, fields: &fields, received: exchange.received };
    match precondition::evaluate(Role::Cache, &request.method, &request.headers, Some(&current)) {
        Outcome::NotModified => reply::not_modified(&fields),
        Outcome::Proceed | Outcome::Failed | Outcome::Partial(_) => reply::response(status, fields, body),
    }
}

fn candidates(stored: Option<&Stored>) -> Vec<Candidate<'_>> {
    stored.iter().map(|stored| Candidate { fields: &stored.found.head.fields, received: stored.received() }).collect()
}
