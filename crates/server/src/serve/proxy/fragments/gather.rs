//! Bytes from the origin on their way into fragments.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Buf as _, Bytes};
use eyewall::Purge;
use eyewall_http::field::range::{self, ContentRange};
use eyewall_http::message::Exchange;
use eyewall_http::partial::PartialContent;
use eyewall_http::{reuse, validation};
use eyewall_page_cache::recent_purges::Mark;
use http::header::{IF_RANGE, RANGE};
use http::{Response, StatusCode};
use hyper::body::Incoming;

use super::run::Lead;
use super::{Lack, Object};
use crate::serve::origin::ProxyError;
use crate::serve::proxy::fetch::Asked;
use crate::serve::proxy::fill::Pieces;
use crate::serve::proxy::inbound::{Inbound, Kept};
use crate::serve::proxy::pages::Pages;
use crate::serve::proxy::{Proxy, prepare};
use eyewall_page_cache::layout::key_of;
use eyewall_page_cache::store::Store;

/// When nobody reads any more, what is left of a body is still taken if it is no more than this.
const NEARLY_ALL_BYTES: u64 = 8 << 20;

/// Asks the origin for a run of what is stored, and takes it in.
pub(super) async fn fetch(proxy: Arc<Proxy>, request: Arc<Kept>, object: Arc<Object>, lead: Lead) {
    let inbound = request.inbound(&proxy.site);
    let mark = proxy.pages.mark(inbound.key.address());
    match proxy.more(inbound, &object, &lead, mark).await {
        Ok((incoming, skipped)) => {
            let pieces = Pieces::new(incoming, proxy.origins.timeouts().piece);
            let inflow = Inflow { pages: Arc::clone(&proxy.pages), object, lead, mark, is_kept: true };
            inflow.run(pieces, skipped).await;
        }
        Err(lack) => {
            if matches!(lack, Lack::Changed) {
                let pages = Arc::clone(&proxy.pages);
                // Its thread has logged a panic already.
                let _ = tokio::task::spawn_blocking(move || pages.forget(&object)).await;
            }
            lead.finish(Some(lack));
        }
    }
}

impl Proxy {
    /// The body of the origin's answer, and how many of its bytes come before the run. What its head says is of all that is
    /// stored (RFC 9111, section 3.4).
    async fn more(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: &Object,
        lead: &Lead,
        mark: Mark,
    ) -> Result<(Incoming, u64), Lack> {
        let reach = lead.reach();
        let mut asked = inbound.forwarded_fields();
        validation::make_conditional(&mut asked, &[]);
        let (Some(wanted), Some(validator)) = (range::request(&[reach]), object.if_range.clone()) else {
            return Err(Lack::Unaskable);
        };
        asked.insert(RANGE, wanted);
        asked.insert(IF_RANGE, validator);
        let (target, client_info) = (inbound.target(), inbound.client_info());
        let requested = SystemTime::now();
        let mut response =
            self.origins.send(inbound.origin_request(&target, asked, &client_info)).await.map_err(Lack::ProxyError)?;
        let applied = prepare(inbound.decision, &mut response);
        let exchange = Exchange { requested, received: SystemTime::now() };
        let (part, skipped) = fitting(object, lead, &response, exchange.received)?;
        self.renew_head(inbound, object, &part, Asked { applied, exchange, mark }).await;
        Ok((response.into_body(), skipped))
    }

    /// Gives the stored head of a body the fields of a part of it, unless another has taken its place.
    async fn renew_head(
        self: &Arc<Self>,
        inbound: Inbound<'_>,
        object: &Object,
        part: &PartialContent,
        asked: Asked<'_>,
    ) {
        let Some(key) = object.head_key.get() else { return };
        let Some(mut stored) = self.pages.stored(Store::look, &object.address, key.clone(), SystemTime::now()).await
        else {
            return;
        };
        // What was stored since of the same body may have other fields by now.
        let present = Object::of_stored(&stored).filter(|present| present.layout == object.layout);
        if let Some(combined) = present.and_then(|present| present.partial.combined(part)) {
            self.renew(inbound, &mut stored, combined.fields().clone(), asked);
        }
    }
}

/// What part of the object an answer brings, if it is of the object, and how many of its bytes come before the run.
fn fitting(
    object: &Object,
    lead: &Lead,
    response: &Response<Incoming>,
    received: SystemTime,
) -> Result<(PartialContent, u64), Lack> {
    let (status, fields, reach) = (response.status(), response.headers(), lead.reach());
    if reuse::is_failure(status) {
        return Err(Lack::ProxyError(ProxyError::Broken));
    }
    let (bytes, skipped) = match status {
        StatusCode::PARTIAL_CONTENT => match ContentRange::of(fields) {
            // It may send more than was asked for (RFC 9110, section 15.3.7).
            Some(ContentRange::Satisfied { range, .. }) if range.start <= reach.start && reach.end <= range.end => {
                (range.end - range.start, reach.start - range.start)
            }
            _ => return Err(Lack::Changed),
        },
        // It gives no parts, but it may be the same.
        StatusCode::OK => (object.length(), reach.start),
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::RANGE_NOT_SATISFIABLE => return Err(Lack::Changed),
        // It tells of this request, or of the origin's trouble: the object may be as it was.
        _ => return Err(Lack::ProxyError(ProxyError::Broken)),
    };
    let part = PartialContent::of(status, fields, bytes, true, received);
    let part = part.filter(|part| object.partial.combined(part).is_some()).ok_or(Lack::Changed)?;
    Ok((part, skipped))
}

/// Bytes that come in for a run.
pub(super) struct Inflow {
    pub(super) pages: Arc<Pages>,
    pub(super) object: Arc<Object>,
    pub(super) lead: Lead,
    /// What was purged when the origin was asked.
    pub(super) mark: Mark,
    /// Whether it is stored as it comes.
    pub(super) is_kept: bool,
}

impl Inflow {
    /// Takes a body in whose first bytes come before the run.
    pub(super) async fn run(mut self, mut pieces: Pieces, skipped: u64) {
        let lack = self.take_in(&mut pieces, skipped).await.err();
        self.lead.finish(lack);
    }

    async fn take_in(&mut self, pieces: &mut Pieces, mut skipped: u64) -> Result<(), Lack> {
        let (layout, reach) = (self.object.layout, self.lead.reach());
        let mut at = reach.start;
        while at < reach.end {
            let mut piece = match pieces.next().await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Err(Lack::Broken(error.kind(), error.to_string())),
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

    /// False if it isn't worth to go on: nobody reads any more, and what is left can be asked for when it is wanted.
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
