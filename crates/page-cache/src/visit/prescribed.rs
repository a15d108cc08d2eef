//! Responses that are stored because the front door says so, and for the time that it says. HTTP's own rules don't cover them.
//! Calls of gRPC are such requests: each is a POST, and its trailers report its outcome.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyewall_http::coding::Codings;
use eyewall_http::terms::{Marks, Terms};
use http::{HeaderMap, Response, response};
use http_body::Body as _;

use super::Visit;
use crate::answer::{Answer, Content, Joined, Leader};
use crate::body::BodyStream;
use crate::cached_body::CachedBody;
use crate::collapsing::Outcome;
use crate::fill::Fill;
use crate::head::{Head, Kind};
use crate::pages;
use crate::reply::{self, Reply};
use crate::selection::Stored;
use crate::store::Store;
use crate::upstream::Upstream;

/// How the responses to a request are stored.
#[derive(Debug, Clone, Copy)]
pub struct Prescribed {
    /// How long they are fresh.
    pub ttl: Duration,
    /// Whether a response with this head may be stored.
    pub takes_head: fn(&response::Parts) -> bool,
    /// Whether a response with these trailers may be stored.
    pub takes_trailers: fn(&HeaderMap) -> bool,
}

impl<U: Upstream> Visit<U> {
    /// The response that is stored under the key of this request, or arrives for another request; otherwise that of the upstream.
    ///
    /// # Errors
    /// Errors of the upstream.
    pub async fn answer_prescribed(&self, how: Prescribed) -> Result<Reply<U::Body>, U::Error> {
        match self.found_or_coming().await {
            Ok(response) => Ok(response),
            Err(leader) => self.ask_prescribed(leader, how).await,
        }
    }

    /// The response that is stored or arrives. Otherwise the right to ask for it; or None, if this request asks for itself alone.
    async fn found_or_coming(&self) -> Result<Reply<U::Body>, Option<Leader>> {
        // A second round, for a request that waited and takes the place of one that gave up.
        for _ in 0..2 {
            if let Some(stored) = self.fresh_by_key().await {
                let (trailers, head) = (stored.trailers(), stored.found.head.clone());
                let body = CachedBody::pieces([stored.found.value()].into(), trailers);
                return Ok(reply::response(head.status, head.fields, body));
            }
            if self.is_unstorable() {
                return Err(None);
            }
            let waiting = match self.pages.join(&self.key) {
                Joined::Lead(leader) => return Err(Some(leader)),
                Joined::Follow(waiting) => waiting,
            };
            match waiting.answer(self.settings.collapse_timeout).await {
                Outcome::Answered(answer) => {
                    let Content::Whole(stream) = &answer.content else { return Err(None) };
                    let body = CachedBody::shared(stream.reader().ok_or(None)?);
                    return Ok(reply::response(answer.status, answer.fields.clone(), body));
                }
                Outcome::Over => {}
                Outcome::Alone | Outcome::Late => return Err(None),
            }
        }
        Err(None)
    }

    async fn fresh_by_key(&self) -> Option<Stored> {
        let found = self.pages.look(Store::look, &self.key).await.found()?;
        let now = self.now();
        let stored = Stored::new(&self.key, self.key.clone(), found, now)?;
        (!stored.terms.fresh_for(now).is_zero()).then_some(stored)
    }

    async fn ask_prescribed(&self, leader: Option<Leader>, how: Prescribed) -> Result<Reply<U::Body>, U::Error> {
        let mark = self.pages.mark(&self.address);
        let response = self.ask(self.parts.method.clone(), self.upstream.fields(&self.parts)).await?;
        let (mut head, body) = response.into_parts();
        let stream = Arc::new(BodyStream::new(None));
        let answer = self.prescribed_answer(&mut head, &stream, how.ttl);
        let entry_head = Head::new(Kind::Response(answer.terms), answer.status, answer.fields.clone());
        let most = self.pages.store.value_bytes_max(&self.key, &entry_head, &answer.tags);
        let most = most.map(|most| most.min(self.settings.body_bytes_max));
        let length = body.size_hint().exact();
        let fits = |most: &u64| length.is_none_or(|length| length <= *most);
        let Some(whole_bytes_max) = most.filter(fits).filter(|_| (how.takes_head)(&head)) else {
            if let Some(leader) = leader {
                leader.alone();
            }
            return Ok(Response::from_parts(head, CachedBody::passed(body, self.settings.piece_timeout)));
        };
        let (answer, reader) = (Arc::new(answer), stream.reader());
        if let Some(leader) = &leader {
            leader.answered(&answer);
        }
        let fill = Fill {
            pages: Arc::clone(&self.pages),
            settings: Arc::clone(&self.settings),
            key: self.key.clone(),
            answer,
            stream,
            length,
            whole_bytes_max,
            object_bytes_max: None,
            is_patient: false,
            takes: how.takes_trailers,
            is_new: true,
            mark,
            leader,
        };
        fill.start(body).await;
        Ok(Response::from_parts(head, reader.map_or_else(CachedBody::empty, CachedBody::shared)))
    }

    fn prescribed_answer(&self, head: &mut response::Parts, stream: &Arc<BodyStream>, ttl: Duration) -> Answer {
        let tags = self.rules(head.status, &mut head.headers, &mut head.extensions).tags;
        let received = self.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let terms = Terms {
            received_ms: received.as_millis() as u64,
            initial_age_ms: 0,
            lifetime_seconds: ttl.as_secs().min(u32::MAX.into()) as u32,
            overdue_seconds: 0,
            stale_while_revalidate_seconds: 0,
            stale_if_error_seconds: 0,
            marks: Marks::NONE,
        };
        let (fields, content) = (pages::without(head.headers.clone(), &[]), Content::Whole(Arc::clone(stream)));
        Answer {
            status: head.status,
            fields,
            terms,
            variant: None,
            codings: Codings::NONE,
            tags,
            as_of: self.as_of.clone(),
            address_tag: None,
            is_kept: true,
            content,
        }
    }
}
