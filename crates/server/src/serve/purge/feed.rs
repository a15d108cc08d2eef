//! The last purges, for the dashboard.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::Notify;

use super::{Purged, Report};
use crate::serve::date::rfc3339;

/// How many purges are kept.
const PURGES_MAX: usize = 50;

/// The last purges of this node, from wherever they came. Threads that purge write, the dashboard reads.
#[derive(Default)]
pub(crate) struct Feed {
    last: Mutex<VecDeque<Noted>>,
    /// Wakes the dashboard.
    pub(crate) news: Notify,
}

/// A purge that was carried out.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Noted {
    /// Its number, from 1 on.
    pub(crate) number: u64,
    time: String,
    kind: &'static str,
    /// Its first subject.
    #[serde(flatten)]
    first: Purged,
    /// How many subjects it has.
    subjects: usize,
}

impl Feed {
    pub(super) fn note(&self, report: &Report) {
        let Some(first) = report.purged.first().cloned() else { return };
        let mut last = self.lock();
        let number = last.back().map_or(1, |noted| noted.number + 1);
        let (time, subjects) = (rfc3339(SystemTime::now()), report.purged.len());
        last.push_back(Noted { number, time, kind: report.kind, first, subjects });
        if last.len() > PURGES_MAX {
            last.pop_front();
        }
        drop(last);
        self.news.notify_one();
    }

    /// Those behind the one with this number.
    pub(crate) fn since(&self, number: u64) -> Vec<Noted> {
        self.lock().iter().filter(|noted| noted.number > number).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Noted>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
