//! The last purges, for the dashboard and for explanations.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use eyewall_fleet::Covers;
use serde::Serialize;
use tokio::sync::Notify;

use super::{Purged, Report};
use crate::serve::date::rfc3339;

/// How many purges are kept.
const PURGES_MAX: usize = 50;
/// How many of the targets of a purge are remembered.
const TARGETS_MAX: usize = 256;

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
    #[serde(skip)]
    covered: Vec<Covered>,
}

/// What a purge covers, as entries have it.
#[derive(Debug, Clone)]
pub(super) enum Covered {
    Address(Box<str>),
    Tag(Box<str>),
    Prefix(Box<[u8]>),
    Everything,
}

impl Covered {
    /// The first of many.
    pub(super) fn all<'a>(covers: impl Iterator<Item = Covers<'a>>) -> Vec<Self> {
        covers.take(TARGETS_MAX).map(Self::of).collect()
    }

    fn of(covers: Covers<'_>) -> Self {
        match covers {
            Covers::Address(address) => Self::Address(address.into()),
            Covers::Tag(tag) => Self::Tag(tag.into()),
            Covers::Prefix(prefix) => Self::Prefix(prefix.into()),
            Covers::Everything => Self::Everything,
        }
    }

    fn has(&self, address: &str, key: &str, tags: &[String]) -> bool {
        match self {
            Self::Address(purged) => **purged == *address,
            Self::Tag(purged) => tags.iter().any(|tag| **tag == **purged),
            Self::Prefix(prefix) => key.as_bytes().starts_with(prefix),
            Self::Everything => true,
        }
    }
}

impl Noted {
    /// When it was, of which kind, and what for.
    pub(crate) fn told(&self) -> (String, &'static str, String) {
        let Purged { what, name, host, .. } = &self.first;
        let name = name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let host = host.as_deref().filter(|_| *what == "tag").map(|host| format!(" of {host}")).unwrap_or_default();
        let more = match self.subjects {
            0 | 1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        (self.time.clone(), self.kind, format!("{what}{name}{host}{more}"))
    }
}

impl Feed {
    pub(super) fn note(&self, report: &Report, covered: Vec<Covered>) {
        let Some(first) = report.purged.first().cloned() else { return };
        let mut last = self.lock();
        let number = last.back().map_or(1, |noted| noted.number + 1);
        let (time, subjects) = (rfc3339(SystemTime::now()), report.purged.len());
        last.push_back(Noted { number, time, kind: report.kind, first, subjects, covered });
        if last.len() > PURGES_MAX {
            last.pop_front();
        }
        drop(last);
        self.news.notify_one();
    }

    /// The last one that covers the entry of a key, with the key of its address and its tags.
    pub(crate) fn last_of(&self, address: &str, key: &str, tags: &[String]) -> Option<Noted> {
        let last = self.lock();
        last.iter().rev().find(|noted| noted.covered.iter().any(|covered| covered.has(address, key, tags))).cloned()
    }

    /// Those behind the one with this number.
    pub(crate) fn since(&self, number: u64) -> Vec<Noted> {
        self.lock().iter().filter(|noted| noted.number > number).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Noted>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
