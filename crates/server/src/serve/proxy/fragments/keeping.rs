//! A body that is stored in fragments on its way to its clients, without a way to ask for more of it: its head comes last.

use std::sync::Arc;

use bytes::Bytes;
use eyewall::Purge;
use eyewall_page_cache::recent_purges::Mark;

use crate::serve::proxy::answer::Answer;
use crate::serve::proxy::pages::Pages;
use eyewall_page_cache::head::Kind;
use eyewall_page_cache::layout::{Layout, key_of};

/// What has come and isn't stored yet: less than a fragment, and a piece.
pub(in crate::serve::proxy) struct Keeping {
    pages: Arc<Pages>,
    address: Vec<u8>,
    answer: Arc<Answer>,
    mark: Mark,
    /// How long the body may be.
    bytes_max: u64,
    layout: Layout,
    prefix: Vec<u8>,
    pending: Vec<Bytes>,
    pending_bytes: u64,
    number: u64,
    is_kept: bool,
}

impl Keeping {
    pub(in crate::serve::proxy) fn new(
        pages: Arc<Pages>,
        address: Vec<u8>,
        answer: Arc<Answer>,
        mark: Mark,
        bytes_max: u64,
    ) -> Self {
        let layout = pages.new_layout(0);
        let prefix = layout.prefix(&address);
        let (pending, is_kept) = (Vec::new(), true);
        Self { pages, address, answer, mark, bytes_max, layout, prefix, pending, pending_bytes: 0, number: 0, is_kept }
    }

    /// Takes the next bytes. They are not kept any more once the body is longer than may be, or something can't be stored.
    pub(in crate::serve::proxy) async fn take(mut self, mut piece: Bytes) -> Self {
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

    /// None if not all so far is kept.
    pub(in crate::serve::proxy) fn still_kept(self) -> Option<Self> {
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

    /// The body is complete: its last fragment, and its head.
    pub(in crate::serve::proxy) async fn finish(mut self) {
        if self.is_kept && self.pending_bytes > 0 {
            self = self.store().await;
        }
        if !self.is_kept {
            return;
        }
        // Its thread has logged a panic already.
        let _ = tokio::task::spawn_blocking(move || {
            let Self { pages, address, answer, mark, layout, .. } = self;
            pages.keep_as(&address, &answer, Kind::Fragmented(answer.terms, layout), &[Bytes::new()], mark)
        })
        .await;
    }
}
