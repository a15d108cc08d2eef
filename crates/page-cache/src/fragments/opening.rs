//! A body with a strong validator on its way in: its head is stored before it, so that others may use what has come.

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

/// A body that comes in and has a strong validator: its head is stored first.
pub(crate) struct Opening {
    /// What all get who wait for it.
    pub(crate) answer: Arc<Answer>,
    /// Its body.
    pub(crate) object: Arc<Object>,
    /// The right to get it.
    pub(crate) lead: Lead,
    /// How many bytes come before its reach.
    pub(crate) skipped: u64,
    /// What was purged when the upstream was asked.
    pub(crate) mark: Mark,
    /// Held until the head can be found.
    pub(crate) leader: Option<Leader>,
}

impl Opening {
    /// The lead for a new body, none if its generation is not new.
    pub(crate) fn lead(pages: &Pages, object: &Object, reach: Range<u64>) -> Option<Lead> {
        match pages.runs.join(&object.prefix, reach.start, reach) {
            Joined::Lead(lead) => Some(lead),
            Joined::Follow(_) => None,
        }
    }

    /// Stores the head, then what comes.
    pub(crate) fn start<B: UpstreamBody>(self, pages: Arc<Pages>, settings: Arc<Settings>, body: B) {
        tokio::spawn(async move {
            let Self { answer, object, lead, skipped, mark, leader } = self;
            let (head_pages, head_object) = (Arc::clone(&pages), Arc::clone(&object));
            let lasting = settings.lasting();
            let kept = tokio::task::spawn_blocking(move || head_pages.open(&head_object, &answer, mark, lasting));
            let is_kept = kept.await.unwrap_or(false);
            // Who asks from now on finds the head.
            drop(leader);
            Inflow { pages, object, lead, mark, is_kept }.run(body, settings.piece_timeout, skipped).await;
        });
    }
}

impl Pages {
    /// Stores the head of a body, unless a hard purge has come since it was asked for.
    fn open(&self, object: &Object, answer: &Answer, mark: Mark, lasting: Lasting) -> bool {
        let kind = Kind::Fragmented(answer.terms, object.layout);
        let head = Head::new(kind, answer.status, answer.fields.clone());
        let kept = self.keep(&object.address, answer, &head, &[Bytes::new()], mark, lasting);
        let is_kept = kept.is_some();
        if let Some(key) = kept {
            // It is stored once.
            let _ = object.head_key.set(key);
        }
        is_kept
    }
}
