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

use super::answer::Answer;
use super::ask::Asked;
use super::body::CachedBody;
use super::fill::{Content, Fill};
use super::inner::Inner;
use super::reply::{self, AgeAndTtl};
use super::tags;
use super::visit::{Ask, Visit};
use eyewall_page_cache::body::BodyStream;
use eyewall_page_cache::head::{Head, Kind};
use eyewall_page_cache::pages;
use eyewall_page_cache::selection::Stored;

/// Why an answer is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is an error, and what is stored is worth more.
    KeepsStored,
    /// It, or one of its fields, is longer than may be.
    TooLarge,
    Http(NotStored),
}

impl Refused {
    /// A token for `Cache-Status`.
    fn as_str(self) -> &'static str {
        match self {
            Self::KeepsStored => "keeps-stored",
            Self::TooLarge => "too-large",
            Self::Http(why) => why.as_str(),
        }
    }

    /// Whether the answer to another request for the same might be stored: then this one is no reason to give up what is there.
    pub(super) fn is_of_request(self) -> bool {
        match self {
            Self::KeepsStored => true,
            Self::TooLarge => false,
            Self::Http(why) => why.is_of_request(),
        }
    }
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
                let bytes_max = self.bytes_max(&answer).filter(|most| length.is_none_or(|length| length <= *most));
                match bytes_max {
                    _ if self.keeps_stored(&answer).await => Refused::KeepsStored,
                    Some(bytes_max) => {
                        return self.store(ask, (head, body), (answer, bytes_max, length), asked).await;
                    }
                    None => Refused::TooLarge,
                }
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
        // What a client's own range or condition has made says nothing of the whole.
        let is_whole = !matches!(status, StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED);
        // A service in trouble is helped by waiting, and its answers will be storable again.
        let is_kept = ask.stored.as_ref().is_some_and(|stored| self.withstands(stored, status));
        let is_replaced = !is_kept && !why_not.is_of_request();
        if is_replaced && is_whole && !status.is_server_error() {
            self.pages.unstorable.insert(&self.key);
        }
        if let Some(stored) = ask.stored.filter(|_| is_replaced && !reuse::is_failure(status)) {
            self.pages.store.remove_found(&stored.key, &stored.found);
        }
        if let Some(leader) = ask.leader {
            leader.alone();
        }
    }

    /// Whether what is stored keeps its place against an answer: it is an error, and something that it would take the place of may
    /// still be sent to others, or was stored meanwhile.
    async fn keeps_stored(&mut self, answer: &Answer) -> bool {
        if !answer.status.is_client_error() && !answer.status.is_server_error() {
            return false;
        }
        let replaced = self.pages.replaced_by(&self.key, answer.variant.as_ref(), self.now()).await;
        replaced.iter().any(|stored| self.withstands(stored, answer.status))
    }

    /// What a soft purge has made stale has no place to keep.
    fn withstands(&self, stored: &Stored, answer: StatusCode) -> bool {
        stored.withstands(answer, &self.settings.policy, self.now())
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
            content: Arc::new(BodyStream::new(length)),
        }
    }

    /// How long the body of an answer may be that is stored. None: its fields are longer than an entry can tell.
    pub(super) fn bytes_max(&self, answer: &Answer) -> Option<u64> {
        let head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
        let selecting = answer.variant.as_ref().map_or(0, |variant| variant.selecting_key.len());
        let most = self.pages.store.value_bytes_max(&self.key, &head, &answer.tags)?;
        Some(most.checked_sub(selecting as u64)?.min(self.settings.body_bytes_max))
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
        let reader = answer.content.reader().filter(|_| unread.is_none());
        if let Some(leader) = &ask.leader {
            leader.answered(&answer);
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
            leader: ask.leader,
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
        AgeAndTtl::of(terms, self.now()).ttl
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
