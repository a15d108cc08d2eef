//! The names of a request that is recorded.

use std::sync::Arc;

use http::HeaderValue;

use super::Exporter;
use super::span::{Span, SpanIds};

/// A request that is recorded: the names of its span, and where that goes.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub(super) exporter: Arc<Exporter>,
    pub(super) ids: SpanIds,
}

impl Recording {
    /// `parent` is the span of the one that sent the request.
    pub(crate) fn new(
        exporter: &Arc<Exporter>,
        trace: [u8; 16],
        span: [u8; 8],
        (parent, state): (Option<[u8; 8]>, Option<&HeaderValue>),
    ) -> Self {
        let ids = SpanIds { trace, span, parent, state: state.cloned() };
        Self { exporter: Arc::clone(exporter), ids }
    }
}

/// A span that goes to its collector when this is dropped.
pub(super) struct Begun {
    exporter: Arc<Exporter>,
    /// `None` once it has ended.
    span: Option<Span>,
}

impl Begun {
    pub(super) fn new(recording: &Recording, span: Span) -> Self {
        Self { exporter: Arc::clone(&recording.exporter), span: Some(span) }
    }

    /// The span, which has not ended.
    pub(super) fn span(&mut self) -> Option<&mut Span> {
        self.span.as_mut()
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            span.end();
            self.exporter.queue.push(|spans| spans.push(span));
        }
    }
}
