//! A body with a strong validator that arrives. Its head is stored first, so that other requests can use the fragments so far.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::run::{Joined, Lead};
use super::{Inflow, Object};
use crate::answer::{Answer, Leader};
use crate::head::{Head, Kind};
use crate::pages::{Lasting, Pages};
use crate::recent_purges::Mark;
use crate::settings::Settings;
use crate::upstream::UpstreamBody;

/// A body with a strong validator that arrives. Its head is stored first.
pub(crate) struct Opening {
    /// The answer that every waiting request gets.
    pub(crate) answer: Arc<Answer>,
    /// The body.
    pub(crate) object: Arc<Object>,
    /// The right to get the body.
    pub(crate) lead: Lead,
    /// The number of bytes before its reach.
    pub(crate) skipped: u64,
    /// The mark of purges when the upstream was asked.
    pub(crate) mark: Mark,
    /// Held until requests can find the head.
    pub(crate) leader: Option<Leader>,
}

impl Opening {
    /// The lead for a new body. None if its generation is not new.
    pub(crate) fn lead(pages: &Pages, object: &Object, reach: Range<u64>) -> Option<Lead> {
        match pages.runs.join(&object.prefix, reach.start, reach) {
            Joined::Lead(lead) => Some(lead),
            Joined::Follow(_) => None,
        }
    }

    /// Stores the head, then the bytes that arrive.
    pub(crate) fn start<B: UpstreamBody>(self, pages: Arc<Pages>, settings: Arc<Settings>, body: B) {
        tokio::spawn(async move {
            let Self { answer, object, lead, skipped, mark, leader } = self;
            let (head_pages, head_object) = (Arc::clone(&pages), Arc::clone(&object));
            let lasting = settings.lasting();
            let kept = tokio::task::spawn_blocking(move || head_pages.open(&head_object, &answer, mark, lasting));
            let is_kept = kept.await.unwrap_or(false);
            // New requests find the head from now on.
            drop(leader);
            Inflow { pages, object, lead, mark, is_kept }.run(body, settings.piece_timeout, skipped).await;
        });
    }
}

impl Pages {
    /// Stores the head of a body, unless a hard purge has come since the request for it.
    fn open(&self, object: &Object, answer: &Answer, mark: Mark, lasting: Lasting) -> bool {
        let kind = Kind::Fragmented(answer.terms, object.layout);
        let head = Head::new(kind, answer.status, answer.fields.clone());
        let kept = self.keep(&object.address, answer, &head, &[Bytes::new()], mark, lasting);
        let is_kept = kept.is_some();
        if let Some(key) = kept {
            // The head is stored only once.
            let _ = object.head_key.set(key);
        }
        is_kept
    }
}
