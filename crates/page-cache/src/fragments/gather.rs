//! Asking the origin for missing fragments of a stored body.

use std::sync::Arc;
use std::time::SystemTime;

use eyewall_http::field::range::{self, ContentRange};
use eyewall_http::message::Exchange;
use eyewall_http::partial::PartialContent;
use eyewall_http::{reuse, validation};
use http::header::{IF_RANGE, RANGE};
use http::{HeaderMap, StatusCode};

use super::run::Lead;
use super::{Inflow, Lack, Object};
use crate::recent_purges::Mark;
use crate::store::Store;
use crate::upstream::{Failure, Upstream};
use crate::visit::{Asked, Visit, date};

/// Asks the origin for a run of a stored body, and receives it.
pub(super) async fn fetch<U: Upstream>(visit: Arc<Visit<U>>, object: Arc<Object>, lead: Lead) {
    let mark = visit.pages.mark(&visit.address);
    match visit.more(&object, &lead, mark).await {
        Ok((body, skipped)) => {
            let inflow = Inflow { pages: Arc::clone(&visit.pages), object, lead, mark, is_kept: true };
            inflow.run(body, visit.settings.piece_timeout, skipped).await;
        }
        Err(lack) => {
            if matches!(lack, Lack::Changed) {
                let pages = Arc::clone(&visit.pages);
                // The thread has already logged its panic.
                let _ = tokio::task::spawn_blocking(move || pages.forget(&object)).await;
            }
            lead.finish(Some(lack));
        }
    }
}

impl<U: Upstream> Visit<U> {
    /// The body of the upstream's answer, and the number of its bytes before the run. The fields of its head count for the whole
    /// stored response (RFC 9111, section 3.4).
    async fn more(&self, object: &Object, lead: &Lead, mark: Mark) -> Result<(U::Body, u64), Lack> {
        let reach = lead.reach();
        let mut asked = self.upstream.fields(&self.parts);
        validation::make_conditional(&mut asked, &[]);
        let (Some(wanted), Some(validator)) = (range::request(&[reach]), object.if_range.clone()) else {
            return Err(Lack::Unaskable);
        };
        asked.insert(RANGE, wanted);
        asked.insert(IF_RANGE, validator);
        let requested = self.settings.now();
        let response = self.ask_for(self.method(), asked, true).await;
        let response = response.map_err(|error| Lack::Failed(self.upstream.failure(&error)))?;
        let (mut head, body) = response.into_parts();
        let exchange = Exchange { requested, received: self.settings.now() };
        date(&mut head.headers, exchange);
        let rules = self.rules(head.status, &mut head.headers, &mut head.extensions);
        if rules.is_opaque {
            // The bytes are in a transfer coding that only the upstream knows.
            return Err(Lack::Failed(Failure::broken()));
        }
        let (part, skipped) = fitting(object, lead, (head.status, &head.headers), exchange.received)?;
        // Another cache gives parts for a short time. The head may have been stored for longer.
        if rules.carried.is_none() {
            self.renew_head(object, &part, Asked { exchange, mark }).await;
        }
        Ok((body, skipped))
    }

    /// Gives the stored head of a body the fields of a response with a part of it, unless another head has taken its place.
    async fn renew_head(&self, object: &Object, part: &PartialContent, asked: Asked) {
        let Some(key) = object.head_key.get() else { return };
        let stored = self.pages.stored(Store::look, &object.address, key.clone(), self.settings.now()).await;
        let Some(stored) = stored else { return };
        // The same body may have been stored with other fields since.
        let present = Object::of_stored(&stored).filter(|present| present.layout == object.layout);
        if let Some(combined) = present.and_then(|present| present.partial.combined(part)) {
            self.renew(Box::new(stored), combined.fields().clone(), asked, None).await;
        }
    }
}

/// The part of the object that an answer brings, if it is of the same object, and the number of its bytes before the run.
fn fitting(
    object: &Object,
    lead: &Lead,
    (status, fields): (StatusCode, &HeaderMap),
    received: SystemTime,
) -> Result<(PartialContent, u64), Lack> {
    let reach = lead.reach();
    if reuse::is_failure(status) {
        return Err(Lack::Failed(Failure::broken()));
    }
    let (bytes, skipped) = match status {
        StatusCode::PARTIAL_CONTENT => match ContentRange::of(fields) {
            // The origin may send more than it was asked for (RFC 9110, section 15.3.7).
            Some(ContentRange::Satisfied { range, .. }) if range.start <= reach.start && reach.end <= range.end => {
                (range.end - range.start, reach.start - range.start)
            }
            _ => return Err(Lack::Changed),
        },
        // The origin doesn't send parts, but the body may be the same.
        StatusCode::OK => (object.length(), reach.start),
        StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::RANGE_NOT_SATISFIABLE => return Err(Lack::Changed),
        // The answer concerns this request, or a problem of the origin. The object may be unchanged.
        _ => return Err(Lack::Failed(Failure::broken())),
    };
    let part = PartialContent::of(status, fields, bytes, true, received);
    let part = part.filter(|part| object.partial.combined(part).is_some()).ok_or(Lack::Changed)?;
    Ok((part, skipped))
}
