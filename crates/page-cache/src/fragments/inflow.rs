//! Bytes from the upstream on their way into fragments.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use eyewall::Purge;

use super::run::Lead;
use super::{Lack, Object};
use crate::layout::key_of;
use crate::pages::Pages;
use crate::recent_purges::Mark;
use crate::upstream::{Timed, UpstreamBody};

/// When no reader is left, the rest of a body is still received if it is no longer than this.
const NEARLY_ALL_BYTES: u64 = 8 << 20;

/// Bytes that arrive for a run.
pub(crate) struct Inflow {
    /// The stored responses that the fragments join.
    pub(crate) pages: Arc<Pages>,
    /// The body that the bytes belong to.
    pub(crate) object: Arc<Object>,
    /// The right to get the bytes.
    pub(crate) lead: Lead,
    /// The mark of purges when the origin was asked.
    pub(crate) mark: Mark,
    /// Whether the bytes are stored as they arrive.
    pub(crate) is_kept: bool,
}

impl Inflow {
    /// Receives a body. `skipped` bytes of it come before the run.
    pub(crate) async fn run<B: UpstreamBody>(mut self, body: B, timeout: Option<Duration>, skipped: u64) {
        let mut pieces = Timed::new(body, timeout);
        let lack = self.take_in(&mut pieces, skipped).await.err();
        self.lead.finish(lack);
    }

    async fn take_in<B: UpstreamBody>(&mut self, pieces: &mut Timed<B>, mut skipped: u64) -> Result<(), Lack> {
        let (layout, reach) = (self.object.layout, self.lead.reach());
        let mut at = reach.start;
        while at < reach.end {
            let mut piece = match pieces.piece().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(Lack::of_error(&error)),
                None => return Err(Lack::Broken(io::ErrorKind::UnexpectedEof, "the answer is too short".to_owned())),
            };
            let before = piece.len().min(usize::try_from(skipped).unwrap_or(usize::MAX));
            piece.advance(before);
            skipped -= before as u64;
            while !piece.is_empty() && at < reach.end {
                let number = layout.fragment_of(at);
                let end = layout.bytes_of(number).end.min(reach.end);
                let taken = piece.split_to(piece.len().min((end - at) as usize));
                at += taken.len() as u64;
                self.lead.push(taken);
                if at == end && !self.fragment_is_here(number, reach.end - at).await {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// False if the rest isn't worth receiving: no reader is left, and a later request can ask for it.
    async fn fragment_is_here(&mut self, number: u64, left: u64) -> bool {
        self.is_kept = self.is_kept && self.pages.recent_purges.since(self.mark) != Some(Purge::Hard);
        let pieces = self.lead.pieces();
        if self.is_kept && self.keep(number, pieces).await {
            self.lead.let_go();
        } else if left > 0 {
            self.lead.taken().await;
        }
        self.lead.is_read() || self.is_kept && left <= NEARLY_ALL_BYTES
    }

    async fn keep(&self, number: u64, pieces: Vec<Bytes>) -> bool {
        let (pages, object, begun) = (Arc::clone(&self.pages), Arc::clone(&self.object), self.mark.epoch);
        let kept = tokio::task::spawn_blocking(move || {
            pages.has_fragment(&object, number)
                || pages.keep_fragment(&key_of(&object.prefix, number), &pieces, &object.tags, begun)
        });
        kept.await.unwrap_or(false)
    }
}
