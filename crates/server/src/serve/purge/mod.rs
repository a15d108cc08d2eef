//! Purges on an operator's request, from `PURGE` and from the administration.
//!
//! ```text
//! method   PURGE /path, from `purge_from` or with a token ─┐
//! admin/   POST /purge, by socket or with a token        ─┴─> PurgeRequest ──plan──> targets ──> Pages, in a thread that may wait
//! ```
//! Eyewall plans the whole request first. If one of its subjects is wrong, it purges nothing.
//!
//! # Subjects and targets
//! Addresses get the key of a request for them. A prefix has a whole host, so it never covers entries of another host. Tags
//! belong to one site, or to each.
//!
//! Files of a root are never out of date, so a purge of addresses leaves them. A purge of everything removes them, too.

mod count;
mod feed;
mod line;
pub(super) mod method;
mod targets;

use std::sync::Arc;

use eyewall::Purge as Kind;
use eyewall_fleet::{Line, Notes};
pub(crate) use eyewall_fleet_agent::words::Subject;
use eyewall_fleet_redis::{Appended, FleetError};
use http::StatusCode;
use serde::Serialize;

use super::shared::Shared;
use crate::key::KeyError;
use feed::Covered;
pub(crate) use feed::Feed;
use targets::{Scope, Target};

/// A purge request: its subjects, and whether it is hard or soft.
#[derive(Debug)]
pub(crate) struct PurgeRequest {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) kind: Kind,
    /// Whether to count the entries of each subject, which reads all entries.
    pub(crate) counts: bool,
    /// Whether to wait until all nodes of the fleet have applied it.
    pub(crate) waits: bool,
    /// Whether nothing is purged: the report says what would be.
    pub(crate) previews: bool,
}

/// The result of a purge request.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    kind: &'static str,
    purged: Vec<Purged>,
    /// How often the volume's tables were too small, so that more was purged than requested.
    purge_overflows: u64,
    /// What the fleet's log says of it, if there is a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<Appended>,
}

/// One subject, and its result.
#[derive(Debug, Clone, Serialize)]
struct Purged {
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    result: Effect,
    /// The number of its entries; missing if the request doesn't want it, or if the volume has too many to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
}

/// The result of one subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    /// An entry was there.
    Found,
    /// No entry was there.
    Absent,
    /// All its entries are purged; their number is unknown.
    Accepted,
    /// Nothing was purged, as the request wanted.
    Previewed,
}

/// The reason for which nothing was purged, or not all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgeError {
    #[error(
        "`{0}` is not an address; give a whole one, such as http://example.org/page, with percent-encoding for non-ASCII characters"
    )]
    Url(String),
    #[error("`{text}` can't have an entry: {source}")]
    Key { text: String, source: KeyError },
    #[error("`{0}` has no whole host; give a prefix such as http://example.org/shop/, with the slash after the host")]
    Prefix(String),
    #[error("`{0}` is not a host; give a host alone, such as example.org or example.org:8080")]
    Host(String),
    #[error("no site of this server has the host {0}")]
    NoSite(String),
    #[error("a tag can't be empty")]
    EmptyTag,
    #[error("the volume could not be purged: {0}")]
    Volume(#[from] eyewall::Error),
    #[error("the purge failed; the server's log says why")]
    BrokeOff,
    #[error(transparent)]
    Fleet(#[from] FleetError),
}

impl PurgeError {
    /// The status to answer with.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Url(_) | Self::Key { .. } | Self::Prefix(_) | Self::Host(_) | Self::EmptyTag => {
                StatusCode::BAD_REQUEST
            }
            Self::NoSite(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Volume(_) | Self::Fleet(FleetError::NotWritten(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fleet(FleetError::NotApplied(_)) => StatusCode::GATEWAY_TIMEOUT,
            Self::BrokeOff => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Carries out a purge request, in a thread that may wait for locks, and then sends it to the fleet. In this order, the fleet gets no wrong
/// request, and the client sees no earlier response at this node.
///
/// # Errors
/// [`PurgeError`]. Nothing was purged, except with [`PurgeError::Volume`], [`PurgeError::BrokeOff`] and [`PurgeError::Fleet`].
pub(crate) async fn purge(shared: &Arc<Shared>, purge_request: PurgeRequest) -> Result<Report, PurgeError> {
    let fleet = shared
        .fleet
        .clone()
        .filter(|_| !purge_request.previews)
        .map(|fleet| (fleet, purge_request.encode(), purge_request.waits));
    let shared = Arc::clone(shared);
    let purging = tokio::task::spawn_blocking(move || shared.purge(&purge_request));
    // The thread has logged its panic.
    let report = purging.await.unwrap_or(Err(PurgeError::BrokeOff))?;
    match fleet {
        Some((fleet, purge, waits)) => Ok(Report { fleet: Some(fleet.append(purge, waits).await?), ..report }),
        None => Ok(report),
    }
}

impl Shared {
    /// Notes what a line of the fleet's log covers at this node.
    pub(super) fn note(&self, purge_request: &PurgeRequest, line: &Line, notes: &mut Notes) {
        notes.add(line, self.targets_here(purge_request).iter().flat_map(Target::covers));
    }

    /// The same for a line of before the notes began. False: no earlier line is of use.
    pub(super) fn note_earlier(&self, purge_request: &PurgeRequest, line: &Line, notes: &mut Notes) -> bool {
        notes.add_earlier(line, self.targets_here(purge_request).iter().flat_map(Target::covers))
    }

    /// Whether each purge request has the same targets by another configuration.
    pub(super) fn purges_as(&self, other: &Self) -> bool {
        let schemes = |shared: &Self| Scope::of(&shared.config, &shared.by_host).schemes;
        self.by_host.settings_hash() == other.by_host.settings_hash() && schemes(self) == schemes(other)
    }

    /// The targets at this node. A subject of another node's site covers nothing here.
    fn targets_here(&self, purge_request: &PurgeRequest) -> Vec<Target> {
        let scope = Scope::of(&self.config, &self.by_host);
        purge_request.subjects.iter().filter_map(|subject| Target::of(&scope, subject).ok()).collect()
    }

    /// Carries out a purge request at this node. It may wait for locks.
    ///
    /// # Errors
    /// As [`purge`].
    pub(super) fn purge(&self, purge_request: &PurgeRequest) -> Result<Report, PurgeError> {
        let scope = Scope::of(&self.config, &self.by_host);
        let targets: Vec<Target> =
            purge_request.subjects.iter().map(|subject| Target::of(&scope, subject)).collect::<Result<_, _>>()?;
        // The purge of a single key can't overflow a table, and reading the counter costs time.
        let is_noted = targets.iter().any(Target::is_noted);
        let overflows = || if is_noted { self.pages.store.purge_overflows() } else { Ok(0) };
        let before = overflows()?;
        let counts = purge_request.counts.then(|| count::count(&self.pages.store, &targets)).flatten();
        let mut counts = counts.into_iter().flatten();
        let covered = Covered::all(targets.iter().flat_map(Target::covers));
        let mut purged = Vec::with_capacity(targets.len());
        for (subject, target) in purge_request.subjects.iter().zip(targets) {
            let result =
                if purge_request.previews { Effect::Previewed } else { target.run(&self.pages, purge_request.kind)? };
            purged.push(Purged::of(subject, target, result, counts.next()));
        }
        let kind = match purge_request.kind {
            Kind::Hard => "hard",
            Kind::Soft => "soft",
        };
        let report = Report { kind, purged, purge_overflows: overflows()?.saturating_sub(before), fleet: None };
        if !purge_request.previews {
            // Not what was purged: an address may have a query.
            tracing::info!(kind, subjects = purge_request.subjects.len(), "purged");
            self.metrics.purges.note(&report, covered);
        }
        Ok(report)
    }
}

impl Purged {
    /// The result has the names as Eyewall understood them: addresses as they are in keys.
    fn of(subject: &Subject, target: Target, result: Effect, entries: Option<u64>) -> Self {
        let (what, name, host) = match subject {
            Subject::Url(_) => ("url", target.into_name(), None),
            Subject::Tag { tag, host } => ("tag", Some(tag.clone()), host.clone()),
            Subject::Prefix(_) => ("prefix", target.into_name(), None),
            Subject::Host(host) => ("host", Some(host.clone()), None),
            Subject::Everything => ("everything", None, None),
            // Requests have none; lines of the fleet do, and nobody reads their report.
            Subject::EntryTag(tag) => ("entry_tag", Some(tag.clone()), None),
            Subject::EntryPrefix(prefix) => ("entry_prefix", Some(String::from_utf8_lossy(prefix).into_owned()), None),
        };
        Self { what, name, host, result, entries }
    }
}
