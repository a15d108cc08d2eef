//! Requests to the upstream, and what the answers mean.

use std::sync::Arc;

use eyewall_http::answer;
use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::message::{self, Exchange};
use eyewall_http::reuse::OnFailure;
use eyewall_http::update;
use eyewall_http::validation::{self, Candidate, Outcome};
use http::header::{CONTENT_LENGTH, DATE, IF_RANGE, RANGE};
use http::{Extensions, HeaderMap, HeaderValue, Method, Response, StatusCode};

use super::{Answered, Ask, Unanswered, Visit};
use crate::carried::Carried;
use crate::pages::Pages;
use crate::recent_purges::Mark;
use crate::reply::Reply;
use crate::selection::Stored;
use crate::settings::Place;
use crate::upstream::{Failure, Question, Rules, Upstream};

/// When the upstream was asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The times of the request and its answer.
    pub exchange: Exchange,
    /// The mark of purges when the upstream was asked.
    pub mark: Mark,
}

impl<U: Upstream> Visit<U> {
    /// Asks for the whole response, or validates the stored one. The client's own conditions don't count, because other clients may
    /// have no copy.
    pub(super) async fn fetch(self: &Arc<Self>, mut ask: Ask) -> Answered<U> {
        let mark = self.pages.mark(&self.address);
        loop {
            let (fields, is_question) = self.question(&ask);
            let requested = self.now();
            let is_for_all = self.is_for_all(&ask);
            let response = match self.ask_for(self.method(), fields, is_for_all).await {
                Ok(response) => response,
                Err(error) => return self.without_answer(ask, error, mark).await,
            };
            let asked = Asked { exchange: Exchange { requested, received: self.now() }, mark };
            let (mut head, body) = response.into_parts();
            date(&mut head.headers, asked.exchange);
            let rules = self.rules(head.status, &mut head.headers, &mut head.extensions);
            let told = message::Response { status: head.status, fields: &head.headers };
            let outcome = validation::interpret(told, &candidates(ask.stored.as_deref()));
            match (outcome, ask.stored.take()) {
                (Outcome::Updates(_), Some(stored)) => {
                    // The stored response is still right (RFC 9111, section 4.3.4).
                    let fields = update::updated(&stored.found.head.fields, &head.headers);
                    let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
                    let carried = rules.carried;
                    if let Some(stored) = self.renew(stored, fields, asked, carried).await
                        && let Ok(response) = self.hit(stored, status).await
                    {
                        return Ok(response);
                    }
                    // It is right, but it is only a part. Ask again for all of it.
                    ask.why = Forward::Partial;
                }
                // The answer is to a condition that no longer holds. Ask once without it.
                (Outcome::AskAgain | Outcome::Updates(_), _) if is_question => {}
                (Outcome::Fails, Some(stored)) if ask.on_failure.error.is_some() => {
                    let status = CacheStatus::hit().detail("stale-if-error");
                    if let Ok(response) = self.hit(stored, status).await {
                        return Ok(response);
                    }
                    return Ok(self.receive(ask, (head, body), rules, asked).await);
                }
                (_, stored) => {
                    ask.stored = stored;
                    let Some(part) = ask.part else {
                        return Ok(self.receive(ask, (head, body), rules, asked).await);
                    };
                    return match head.status {
                        StatusCode::PARTIAL_CONTENT => {
                            if let Some(carried) = rules.carried {
                                head.extensions.insert(*carried);
                            }
                            self.receive_part(ask, part, (head, body), rules.is_opaque, asked).await
                        }
                        // The answer is to the range alone.
                        StatusCode::RANGE_NOT_SATISFIABLE => {
                            let status = CacheStatus::forwarded(ask.why).detail("range");
                            if part.is_all() {
                                Ok(self.passed_on((head, body), status))
                            } else {
                                self.pass(status, None).await
                            }
                        }
                        _ => Ok(self.receive(ask, (head, body), rules, asked).await),
                    };
                }
            }
        }
    }

    /// The fields of the request to the upstream, and whether they validate the stored response.
    fn question(&self, ask: &Ask) -> (HeaderMap, bool) {
        let mut fields = self.fields();
        if ask.as_it_came {
            return (fields, false);
        }
        let is_question = validation::make_conditional(&mut fields, &candidates(ask.stored.as_deref()));
        if let Some(part) = ask.part.filter(|_| ask.stored.is_none()) {
            part.ask(&mut fields);
        }
        if self.settings.place == Place::Origin && ask.stored.is_none() && ask.leader.is_none() {
            for name in [RANGE, IF_RANGE] {
                for value in self.parts.headers.get_all(&name) {
                    fields.append(name.clone(), value.clone());
                }
            }
        }
        (fields, is_question)
    }

    /// Whether the answer of another cache is as good as that of the origin.
    fn is_for_all(&self, ask: &Ask) -> bool {
        let is_demanding = self.directives.no_cache || self.directives.no_store;
        !ask.as_it_came && !is_demanding && !self.is_unstorable()
    }

    pub(crate) async fn ask(&self, method: Method, fields: HeaderMap) -> Result<Response<U::Body>, U::Error> {
        self.ask_for(method, fields, false).await
    }

    pub(crate) async fn ask_for(
        &self,
        method: Method,
        fields: HeaderMap,
        is_for_all: bool,
    ) -> Result<Response<U::Body>, U::Error> {
        let (client, content) = (&self.parts, self.content.as_ref());
        let response = self.upstream.ask(Question { client, method, fields, content, is_for_all }).await?;
        Ok(without_false_length(response))
    }

    pub(crate) fn rules(&self, status: StatusCode, fields: &mut HeaderMap, extensions: &mut Extensions) -> Rules<'_> {
        let mut rules = self.upstream.rules(&self.settings, status, fields, extensions);
        if let Some(carried) = extensions.remove::<Carried>() {
            rules.tags.clone_from(&carried.tags);
            rules.carried = Some(Box::new(carried));
        }
        rules
    }

    /// The upstream gave no answer.
    async fn without_answer(self: &Arc<Self>, ask: Ask, error: U::Error, mark: Mark) -> Answered<U> {
        let failure = self.upstream.failure(&error);
        let is_nothing_there = ask.stored.is_none() && ask.why == Forward::UriMiss;
        if let Some(response) = self.stale_instead(ask.stored, ask.on_failure, &failure).await {
            return Ok(response);
        }
        // A stale response is worth more than a remembered failure.
        if is_nothing_there
            && failure.status.is_server_error()
            && let Some(ttl) = self.upstream.failure_ttl(&failure)
        {
            let tags = self.address_tag.clone().into_iter().collect();
            self.remember((failure.status, ttl), tags, mark).await;
        }
        Err(Unanswered { error, status: CacheStatus::forwarded(ask.why) })
    }

    /// The stored response, if it may be sent although the upstream gave no answer (RFC 9111, section 4.2.4).
    pub(super) async fn stale_instead(
        self: &Arc<Self>,
        stored: Option<Box<Stored>>,
        on_failure: OnFailure,
        failure: &Failure,
    ) -> Option<Reply<U::Body>> {
        let is_allowed = on_failure.unreachable.is_some() && !self.pages.store.has_failed();
        let stored = stored.filter(|_| is_allowed)?;
        self.hit(stored, CacheStatus::hit().detail(failure.detail)).await.ok()
    }

    /// Gives a stored response other fields, with all that follows from them; removes it if it may no longer be kept. Returns it as
    /// it is now. None if the write panicked.
    pub(crate) async fn renew(
        &self,
        mut stored: Box<Stored>,
        mut fields: HeaderMap,
        asked: Asked,
        carried: Option<Box<Carried>>,
    ) -> Option<Box<Stored>> {
        let status = stored.found.head.status;
        // It keeps the tags from when its body arrived.
        let rules = self.rules(status, &mut fields, &mut Extensions::new());
        let rules = Rules { carried, ..rules };
        match self.judge(&rules, (status, &fields), asked.exchange) {
            Ok(storable) => {
                self.renew_compressible(&mut stored, rules.codings, &mut fields);
                let lasting = self.settings.lasting();
                let renewing = move |pages: &Pages| {
                    pages.renew(&mut stored, fields, &storable, asked.mark, lasting);
                    stored
                };
                return self.pages.write(renewing).await;
            }
            Err(why) => {
                stored.found.head.fields = fields;
                if why.is_of_request() {
                    return Some(stored);
                }
            }
        }
        let removing = move |pages: &Pages| {
            pages.store.remove_found(&stored.key, &stored.found);
            stored
        };
        self.pages.write(removing).await
    }
}

/// Removes the length if its status forbids one (204), or if it is that of another response (304; RFC 9110, section 8.6).
pub(super) fn without_false_length<B>(mut response: Response<B>) -> Response<B> {
    if !answer::has_length(response.status()) {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    response
}

/// A stored response has to say when it was made (RFC 9110, section 6.6.1).
pub(crate) fn date(fields: &mut HeaderMap, exchange: Exchange) {
    if !fields.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(exchange.received))
    {
        fields.insert(DATE, now);
    }
}

fn candidates(stored: Option<&Stored>) -> Vec<Candidate<'_>> {
    stored.iter().map(|stored| Candidate { fields: &stored.found.head.fields, received: stored.received() }).collect()
}
