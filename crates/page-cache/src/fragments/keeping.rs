//! A body that is stored in fragments while clients read it. The cache can't ask for more of it, so the head is stored last.

use std::sync::Arc;

use bytes::Bytes;
use eyewall::Purge;

use crate::answer::Answer;
use crate::head::{Head, Kind};
use crate::layout::{Layout, key_of};
use crate::pages::Pages;
use crate::recent_purges::Mark;
use crate::settings::Settings;

/// The bytes that have arrived and aren't stored yet: less than a fragment and a piece.
pub(crate) struct Keeping {
    pages: Arc<Pages>,
    settings: Arc<Settings>,
    address: Vec<u8>,
    answer: Arc<Answer>,
    mark: Mark,
    /// The greatest length of the body.
    bytes_max: u64,
    layout: Layout,
    prefix: Vec<u8>,
    pending: Vec<Bytes>,
    pending_bytes: u64,
    number: u64,
    is_kept: bool,
}

impl Keeping {
    pub(crate) fn new(
        (pages, settings): (Arc<Pages>, Arc<Settings>),
        address: Vec<u8>,
        answer: Arc<Answer>,
        mark: Mark,
        bytes_max: u64,
    ) -> Self {
        let layout = pages.new_layout(0);
        let prefix = layout.prefix(&address);
        let (pending, is_kept) = (Vec::new(), true);
        Self {
            pages,
            settings,
            address,
            answer,
            mark,
            bytes_max,
            layout,
            prefix,
            pending,
            pending_bytes: 0,
            number: 0,
            is_kept,
        }
    }

    /// Takes the next bytes. Keeps nothing more once the body is too long, or a fragment can't be stored.
    pub(crate) async fn take(mut self, mut piece: Bytes) -> Self {
        let fragment_bytes = u64::from(self.layout.fragment_bytes);
        self.layout.length += piece.len() as u64;
        let is_purged = || self.pages.recent_purges.since(self.mark) == Some(Purge::Hard);
        self.is_kept = self.is_kept && self.layout.length <= self.bytes_max && !is_purged();
        while self.is_kept && !piece.is_empty() {
            let taken = piece.split_to(piece.len().min((fragment_bytes - self.pending_bytes) as usize));
            self.pending_bytes += taken.len() as u64;
            self.pending.push(taken);
            if self.pending_bytes == fragment_bytes {
                self = self.store().await;
            }
        }
        self
    }

    /// None if some of the bytes so far were not kept.
    pub(crate) fn still_kept(self) -> Option<Self> {
        self.is_kept.then_some(self)
    }

    async fn store(mut self) -> Self {
        let (pages, answer, begun) = (Arc::clone(&self.pages), Arc::clone(&self.answer), self.mark.epoch);
        let (key, pieces) = (key_of(&self.prefix, self.number), std::mem::take(&mut self.pending));
        self.pending_bytes = 0;
        self.number += 1;
        let kept = tokio::task::spawn_blocking(move || pages.keep_fragment(&key, &pieces, &answer.tags, begun));
        self.is_kept = kept.await.unwrap_or(false);
        self
    }

    /// Stores the last fragment of a complete body, and then its head.
    pub(crate) async fn finish(mut self) {
        if self.is_kept && self.pending_bytes > 0 {
            self = self.store().await;
        }
        if !self.is_kept {
            return;
        }
        // The thread has already logged its panic.
        let _ = tokio::task::spawn_blocking(move || {
            let Self { pages, settings, address, answer, mark, layout, .. } = self;
            let kind = Kind::Fragmented(answer.terms, layout);
            let head = Head::new(kind, answer.status, answer.fields.clone());
            pages.keep(&address, &answer, &head, &[Bytes::new()], mark, settings.lasting())
        })
        .await;
    }
}
