//! A body with a strong validator on its way in: its head is stored before it, so that others may use what has come.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use eyewall_page_cache::recent_purges::Mark;
use hyper::body::Incoming;

use super::Object;
use super::gather::Inflow;
use super::run::{Joined, Lead};
use crate::serve::proxy::answer::Answer;
use crate::serve::proxy::answer::Leader;
use crate::serve::proxy::fill::Pieces;
use crate::serve::proxy::pages::Pages;
use eyewall_page_cache::head::Kind;

/// A body that comes in and has a strong validator: its head is stored first.
pub(in crate::serve::proxy) struct Opening {
    pub(in crate::serve::proxy) answer: Arc<Answer>,
    pub(in crate::serve::proxy) object: Arc<Object>,
    pub(in crate::serve::proxy) lead: Lead,
    /// How many bytes come before its reach.
    pub(in crate::serve::proxy) skipped: u64,
    pub(in crate::serve::proxy) mark: Mark,
    pub(in crate::serve::proxy) leader: Option<Leader>,
}

impl Opening {
    /// The lead for a new body, none if its generation is not new.
    pub(in crate::serve::proxy) fn lead(pages: &Pages, object: &Object, reach: Range<u64>) -> Option<Lead> {
        match pages.runs.join(&object.prefix, reach.start, reach) {
            Joined::Lead(lead) => Some(lead),
            Joined::Follow(_) => None,
        }
    }

    /// Stores the head, then what comes.
    pub(in crate::serve::proxy) fn start(self, pages: Arc<Pages>, incoming: Incoming, timeout: Duration) {
        tokio::spawn(async move {
            let Self { answer, object, lead, skipped, mark, leader } = self;
            let (head_pages, head_object) = (Arc::clone(&pages), Arc::clone(&object));
            let kept = tokio::task::spawn_blocking(move || head_pages.open(&head_object, &answer, mark));
            let is_kept = kept.await.unwrap_or(false);
            // Who asks from now on finds the head.
            drop(leader);
            Inflow { pages, object, lead, mark, is_kept }.run(Pieces::new(incoming, timeout), skipped).await;
        });
    }
}

impl Pages {
    /// Stores the head of a body, unless a hard purge has come since it was asked for.
    fn open(&self, object: &Object, answer: &Answer, mark: Mark) -> bool {
        let kind = Kind::Fragmented(answer.terms, object.layout);
        let kept = self.keep_as(&object.address, answer, kind, &[Bytes::new()], mark);
        let is_kept = kept.is_some();
        if let Some(key) = kept {
            // It is stored once.
            let _ = object.head_key.set(key);
        }
        is_kept
    }
}
