//! Asking the inner service, and what its answer means.

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::message::{self, Exchange};
use eyewall_http::update;
use eyewall_http::validation::{self, Candidate, Outcome};
use eyewall_page_cache::recent_purges::Mark;
use http::header::{DATE, IF_RANGE, RANGE};
use http::{HeaderMap, HeaderValue, Response};

use super::fill::Content;
use super::inner::Inner;
use super::visit::{Answered, Ask, Visit};
use eyewall_page_cache::selection::Stored;

/// When the inner service was asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) exchange: Exchange,
    pub(super) mark: Mark,
}

impl<S: Inner<B>, B: Content> Visit<S, B> {
    /// Asks for the whole response, or whether the stored one is still right: whatever the client has already, others may have
    /// nothing.
    pub(super) async fn ask(&mut self, mut ask: Ask) -> Answered<S, B> {
        let mark = self.pages.mark(self.address.as_bytes());
        loop {
            let (fields, is_question) = self.question(&ask);
            let request = self.request(self.method(), fields);
            let requested = self.now();
            let response = match self.inner.clone().ask(request).await {
                Ok(response) => response,
                Err(fault) => return self.without_answer(ask, fault),
            };
            let asked = Asked { exchange: Exchange { requested, received: self.now() }, mark };
            let (mut head, body) = response.into_parts();
            date(&mut head.headers, asked.exchange);
            let told = message::Response { status: head.status, fields: &head.headers };
            let outcome = validation::interpret(told, &candidates(ask.stored.as_deref()));
            match (outcome, ask.stored.take()) {
                (Outcome::Updates(_), Some(mut stored)) => {
                    let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
                    let fields = update::updated(&stored.found.head.fields, &head.headers);
                    self.renew(&mut stored, fields, asked);
                    return Ok(self.hit(*stored, status));
                }
                // It answers a question that was not asked any more: once without it.
                (Outcome::AskAgain | Outcome::Updates(_), _) if is_question => {}
                (Outcome::Fails, Some(stored)) if ask.on_failure.error.is_some() => {
                    return Ok(self.hit(*stored, CacheStatus::hit().detail("stale-if-error")));
                }
                (_, stored) => {
                    ask.stored = stored;
                    return Ok(self.receive(ask, Response::from_parts(head, body), asked).await);
                }
            }
        }
    }

    /// The fields that the inner service is asked with, and whether they ask if what is stored is still right.
    fn question(&self, ask: &Ask) -> (HeaderMap, bool) {
        let mut fields = self.parts.headers.clone();
        if ask.as_it_came {
            return (fields, false);
        }
        let is_question = validation::make_conditional(&mut fields, &candidates(ask.stored.as_deref()));
        if ask.stored.is_none() && ask.leader.is_none() {
            for name in [RANGE, IF_RANGE] {
                for value in self.parts.headers.get_all(&name) {
                    fields.append(name.clone(), value.clone());
                }
            }
        }
        (fields, is_question)
    }

    /// The inner service failed without an answer.
    fn without_answer(&mut self, ask: Ask, fault: S::Fault) -> Answered<S, B> {
        let is_allowed = ask.on_failure.unreachable.is_some() && !self.pages.store.has_failed();
        match ask.stored.filter(|_| is_allowed) {
            Some(stored) => Ok(self.hit(*stored, CacheStatus::hit().detail("stale-if-error"))),
            None => Err(fault),
        }
    }

    /// Gives a stored response other fields, and what follows from them, or removes it where it may no longer be kept.
    pub(super) fn renew(&self, stored: &mut Stored, fields: HeaderMap, asked: Asked) {
        let status = stored.found.head.status;
        match self.judge(status, &fields, asked.exchange) {
            Ok(storable) => return self.pages.renew(stored, fields, &storable, asked.mark, self.settings.lasting()),
            Err(why) if why.is_of_request() => {}
            Err(_) => self.pages.store.remove_found(&stored.key, &stored.found),
        }
        stored.found.head.fields = fields;
    }
}

/// What is stored has to say when it was made (RFC 9110, section 6.6.1).
pub(super) fn date(fields: &mut HeaderMap, exchange: Exchange) {
    if !fields.contains_key(DATE)
        && let Ok(now) = HeaderValue::from_str(&httpdate::fmt_http_date(exchange.received))
    {
        fields.insert(DATE, now);
    }
}

fn candidates(stored: Option<&Stored>) -> Vec<Candidate<'_>> {
    stored.iter().map(|stored| Candidate { fields: &stored.found.head.fields, received: stored.received() }).collect()
}
