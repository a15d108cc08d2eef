//! The configuration of a connection: the present one, kept between requests so that a hit pays one comparison for it.
//!
//! A connection that stays open for long, of HTTP/2 or a tunnel, gives it up while the fast path has no part in it. Otherwise the
//! configuration of its time, with its sites and origins, would stay in memory as long as the connection.

use std::sync::Arc;

use arc_swap::{ArcSwap, Cache};

use super::common::Common;

pub(super) struct Current {
    present: Arc<ArcSwap<Common>>,
    kept: Option<Cache<Arc<ArcSwap<Common>>, Arc<Common>>>,
}

impl Current {
    pub(super) fn new(present: Arc<ArcSwap<Common>>) -> Self {
        Self { present, kept: None }
    }

    /// The present configuration, which is kept until the next call.
    pub(super) fn load(&mut self) -> &Arc<Common> {
        self.kept.get_or_insert_with(|| Cache::new(Arc::clone(&self.present))).load()
    }

    /// Keeps none until the next call of [`Current::load`].
    pub(super) fn release(&mut self) {
        self.kept = None;
    }
}
