//! The witness of a request: its line in the access log, and its span, which are ready once the last byte of the response has left.

use crate::serve::log::Entry;
use crate::serve::spans::ServerSpan;

/// Passes both on when it is dropped, however the request ended.
pub(super) struct Witness {
    entry: Option<Entry>,
    _span: Option<ServerSpan>,
}

impl Witness {
    /// `None`: nothing is told.
    pub(super) fn of(entry: Option<Entry>, span: Option<ServerSpan>) -> Option<Self> {
        (entry.is_some() || span.is_some()).then_some(Self { entry, _span: span })
    }

    /// Counts bytes of the body that the system has taken.
    pub(super) fn sent(&self, bytes: usize) {
        if let Some(entry) = &self.entry {
            entry.sent(bytes);
        }
    }
}
