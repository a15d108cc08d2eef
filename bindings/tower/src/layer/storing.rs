//! Answers of the inner service: into the volume, if they may be stored, and to the client.

use std::sync::Arc;

use eyewall_http::field::cache_status::CacheStatus;
use eyewall_http::message::{self, Exchange};
use eyewall_http::reuse;
use eyewall_http::storing::{self, NotStored, Storable};
use eyewall_http::terms::Terms;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode, response};
use http_body::Body;

use super::ask::Asked;
use super::body::CachedBody;
use super::fill::{Content, Fill};
use super::head::{Head, Kind};
use super::incoming::{Answer, Intake};
use super::inner::Inner;
use super::reply::{self, Standing};
use super::visit::{Ask, Visit};
use super::{pages, tags};

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is longer than may be.
    TooLarge,
    Http(NotStored),
}

impl Refused {
    /// A token for `Cache-Status`.
    fn as_str(self) -> &'static str {
        match self {
            Self::TooLarge => "too-large",
            Self::Http(why) => why.as_str(),
        }
    }

    /// Whether the answer to another request for the same might be stored: then this one is no reason to give up what is there.
    pub(super) fn is_of_request(self) -> bool {
        let of_request = [NotStored::RequestNoStore, NotStored::Authorization, NotStored::Method];
        matches!(self, Self::Http(why) if of_request.contains(&why))
    }
}

/// Statuses by which this request is refused: its syntax, its size, its conditions, its user, its rate. Others may fare better.
fn is_about_the_request(status: StatusCode) -> bool {
    matches!(status.as_u16(), 400 | 401 | 403 | 407 | 408 | 411..=414 | 416 | 417 | 421 | 425 | 426 | 428 | 429 | 431)
}

impl<S: Inner<B>, B: Content> Visit<S, B> {
    /// Whether a response may be stored, and as what; else why not.
    pub(super) fn judge(
        &self,
        status: StatusCode,
        fields: &HeaderMap,
        exchange: Exchange,
    ) -> Result<Storable, Refused> {
        // A HEAD renews what is stored for a GET.
        let request = message::Request { method: &self.method(), fields: &self.parts.headers };
        let told = message::Response { status, fields };
        storing::judge(request, told, exchange, &self.settings.policy).map_err(Refused::Http)
    }

    /// An answer to what was asked.
    pub(super) async fn receive(
        &mut self,
        ask: Ask,
        response: Response<S::Content>,
        asked: Asked,
    ) -> Response<CachedBody<S::Content>> {
        let (mut head, body) = response.into_parts();
        let length = length(&head, &body);
        let why_not = match self.judge(head.status, &head.headers, asked.exchange) {
            // Who asked for a part has one.
            Ok(_) if head.status == StatusCode::PARTIAL_CONTENT => Refused::Http(NotStored::Partial),
            Ok(storable) => {
                let answer = self.answer_of(&head, &storable, length);
                let bytes_max = self.bytes_max(&answer);
                if length.is_none_or(|length| length <= bytes_max) {
                    return self.store(ask, (head, body), (answer, bytes_max, length), asked).await;
                }
                Refused::TooLarge
            }
            Err(why) => why,
        };
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status);
        self.refuse(ask, head.status, why_not);
        self.finish(&mut head.headers, &status.detail(why_not.as_str()));
        self.passed_on(head, body, asked)
    }

    /// Takes note of an answer that isn't stored.
    fn refuse(&self, ask: Ask, status: StatusCode, why_not: Refused) {
        let is_of_request = why_not.is_of_request() || is_about_the_request(status);
        // What a client's own range or condition has made says nothing of the whole.
        let is_whole = !matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED);
        // A service in trouble is helped by waiting, and its answers will be storable again.
        if is_whole && !status.is_server_error() && !is_of_request {
            self.pages.unstorable.insert(&self.key);
        }
        let is_replaced = !reuse::is_failure(status) && !is_of_request;
        if let Some(stored) = ask.stored.filter(|_| is_replaced) {
            self.pages.store.remove_found(&stored.key, &stored.found);
        }
        if let Some(ticket) = ask.ticket {
            ticket.alone();
        }
    }

    /// What all get who ask for it.
    fn answer_of(&self, head: &response::Parts, storable: &Storable, length: Option<u64>) -> Answer {
        let address_tag = self.address_tag();
        let tags = match &self.target {
            Some(target) => tags::of_response(&self.settings, target, address_tag.as_deref(), head),
            None => Vec::new(),
        };
        Answer {
            status: head.status,
            fields: pages::without(head.headers.clone(), &storable.withheld),
            terms: storable.terms,
            variant: pages::variant(storable, &self.parts.headers),
            tags,
            address_tag,
            intake: Arc::new(Intake::new(length)),
        }
    }

    /// How long the body of an answer may be that is stored.
    pub(super) fn bytes_max(&self, answer: &Answer) -> u64 {
        let kind = Kind::Response(answer.terms, HeaderMap::new());
        let head = Head { kind, status: answer.status, fields: answer.fields.clone() };
        let selecting = answer.variant.as_ref().map_or(0, |variant| variant.selecting_key.len());
        let most = self.pages.store.value_bytes_max(&self.key, &head, &answer.tags);
        most.saturating_sub(selecting as u64).min(self.settings.body_bytes_max)
    }

    /// Stores what comes, and answers with it.
    async fn store(
        &mut self,
        ask: Ask,
        (mut head, body): (response::Parts, S::Content),
        (answer, bytes_max, length): (Answer, u64, Option<u64>),
        asked: Asked,
    ) -> Response<CachedBody<S::Content>> {
        self.pages.unstorable.remove(&self.key);
        let (answer, received) = (Arc::new(answer), asked.exchange.received);
        let unread = reply::is_without_content(&self.parts, head.status, &head.headers, received);
        // Nothing has come yet: whoever asks can read from the start.
        let reader = answer.intake.reader().filter(|_| unread.is_none());
        if let Some(ticket) = &ask.ticket {
            ticket.answered(&answer);
        }
        let fill = Fill {
            pages: Arc::clone(&self.pages),
            settings: Arc::clone(&self.settings),
            key: self.key.clone(),
            answer: Arc::clone(&answer),
            length,
            bytes_max,
            is_patient: length.is_some() || unread.is_some(),
            takes: |_| true,
            mark: asked.mark,
            ticket: ask.ticket,
        };
        fill.start(body).await;
        let left = self.left(&answer.terms);
        let status = CacheStatus::forwarded(ask.why).forward_status(head.status).stored(true).ttl(left);
        self.finish(&mut head.headers, &status);
        let body = reader.map_or_else(CachedBody::empty, CachedBody::shared);
        let mut response = reply::coming(&self.parts, head.status, head.headers, received, body);
        *response.extensions_mut() = head.extensions;
        response
    }

    fn left(&self, terms: &Terms) -> i64 {
        Standing::of(terms, self.now()).left
    }

    /// An answer for this client alone.
    fn passed_on(&self, head: response::Parts, body: S::Content, asked: Asked) -> Response<CachedBody<S::Content>> {
        let received = asked.exchange.received;
        match reply::is_without_content(&self.parts, head.status, &head.headers, received) {
            Some(answer) => reply::without_content(answer),
            None => Response::from_parts(head, CachedBody::passed(body)),
        }
    }
}

/// How long a body will be, if that is known.
fn length(head: &response::Parts, body: &impl Body) -> Option<u64> {
    let told = || head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    body.size_hint().exact().or_else(told)
}
