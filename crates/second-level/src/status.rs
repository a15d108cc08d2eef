//! The status of a second level, for operators.

use serde::Serialize;

use crate::gate::Why;

/// A second level, as its caches see it.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// `redis` or `s3`.
    pub kind: &'static str,
    /// Whether misses wait for it.
    pub state: GateState,
    /// How often it has stopped to be asked.
    pub opened: u64,
    /// Objects that it had.
    pub hits: u64,
    /// Objects that it didn't have.
    pub misses: u64,
    /// Questions that it didn't answer in time, or that failed.
    pub failures: u64,
    /// Misses that didn't ask, because it is slow or down, or has too many questions.
    pub skipped: u64,
    /// Objects that it had, and that were no longer right.
    pub outdated: u64,
    /// Offers on their way.
    pub waiting: u64,
    /// Offers that it has stored.
    pub stored: u64,
    /// Offers that it had no room for.
    pub refused: u64,
    /// Offers that were dropped: too many waited, or it takes none at present.
    pub dropped: u64,
    /// Offers that failed.
    pub offers_failed: u64,
    /// The bytes of all its objects, if it has told.
    pub bytes: Option<u64>,
    /// The last failure.
    pub trouble: Option<String>,
}

/// Whether a client waits for a second level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GateState {
    /// It does.
    Closed,
    /// It doesn't: the second level has failed.
    Failing,
    /// It doesn't: it takes more time than it saves.
    Slow,
}

impl GateState {
    pub(crate) fn of(why_open: Option<Why>) -> Self {
        match why_open {
            None => Self::Closed,
            Some(Why::Failures) => Self::Failing,
            Some(Why::Slow) => Self::Slow,
        }
    }
}
