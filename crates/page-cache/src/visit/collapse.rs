//! Request collapsing: one request asks, and the others for the same key wait for it.

use std::sync::Arc;

use eyewall_http::field::cache_status::{CacheStatus, Forward};
use eyewall_http::reuse::{self, Reuse};

use super::{Answered, Ask, Plan, Visit};
use crate::answer::{Joined, Leader};
use crate::collapsing::Outcome;
use crate::reply::Reply;
use crate::selection::Selection;
use crate::upstream::Upstream;

/// How often a request waits for another one: for any response of the address, for one of its variant, and once more.
const TURNS: usize = 3;

impl<U: Upstream> Visit<U> {
    /// Asks the upstream, or waits for a request that already does.
    pub(super) async fn collapse(self: &Arc<Self>, ask: Ask) -> Answered<U> {
        let directives = self.directives;
        // A client that demands a response of its own doesn't share another one.
        if directives.no_cache || directives.no_store || self.is_unstorable() {
            return self.fetch(ask).await;
        }
        let mut collapse_key = ask.collapse_key.clone();
        for _ in 0..TURNS {
            let waiting = match self.pages.join(&collapse_key) {
                Joined::Lead(leader) => return self.lead(ask, &collapse_key, leader).await,
                Joined::Follow(waiting) => waiting,
            };
            let is_late = waiting.is_late;
            match waiting.answer(self.settings.collapse_timeout).await {
                Outcome::Answered(answer) if !answer.suits(&self.parts.headers) => {
                    let names = answer.variant.as_ref().map_or(&[][..], |variant| &variant.names);
                    collapse_key = self.collapse_key_of(names);
                }
                // A request that joins after the head judges the response as it would a stored one.
                Outcome::Answered(answer)
                    if !is_late
                        || reuse::decide(&answer.terms, &directives, self.now(), &self.settings.policy)
                            == Reuse::Fresh =>
                {
                    match self.follow(&answer, ask.why).await {
                        Some(response) => return Ok(response),
                        None => break,
                    }
                }
                Outcome::Over => {
                    if let Some(response) = self.stored_by_now().await {
                        return Ok(response);
                    }
                    if self.is_unstorable() {
                        break;
                    }
                }
                Outcome::Answered(_) | Outcome::Alone | Outcome::Late => break,
            }
        }
        self.fetch(ask).await
    }

    /// Asks for all requests that wait in this process. If another process already asks, waits for it first.
    async fn lead(self: &Arc<Self>, ask: Ask, collapse_key: &[u8], mut leader: Leader) -> Answered<U> {
        if self.settings.is_across_processes
            && let Some(claim) = self.pages.claim(collapse_key, self.settings.collapse_timeout).await
        {
            leader.hold(claim);
        }
        // Another request may have stored the answer since the look-up, or before this one got the claim.
        if let Some(response) = self.stored_by_now().await {
            return Ok(response);
        }
        self.fetch(Ask { leader: Some(leader), ..ask }).await
    }

    /// The response that another request has stored meanwhile.
    async fn stored_by_now(self: &Arc<Self>) -> Option<Reply<U::Body>> {
        if !self.pages.has_fresh(&self.key, &self.parts.headers, self.now()).await {
            return None;
        }
        match self.plan().await {
            Plan::Answer(response) => Some(*response),
            Plan::Hit(stored) => self.hit(stored, CacheStatus::hit()).await.ok(),
            Plan::Ask(_) => None,
        }
    }

    /// Validates in the background, unless another request already does.
    pub(super) async fn refresh(self: &Arc<Self>, collapse_key: Vec<u8>) {
        let Joined::Lead(leader) = self.pages.join(&collapse_key) else { return };
        let selection = self.pages.select(&self.key, &self.parts.headers, self.now()).await;
        let Selection::Stored(stored) = selection else { return };
        let (stored, leader) = (Some(stored), Some(leader));
        let ask = Ask { collapse_key, stored, leader, is_in_background: true, ..Ask::whole(&[], Forward::Stale) };
        let visit = Arc::clone(self);
        // The result is in the volume. No client gets an error.
        tokio::spawn(async move { drop(visit.fetch(ask).await) });
    }
}
