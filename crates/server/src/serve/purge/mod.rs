//! Purging on an operator's request: what a purge request means for the volume, however it came.
//!
//! ```text
//! method   PURGE /path, from `purge_from` or with a token ─┐
//! admin/   POST /purge, by socket or with a token        ─┴─> PurgeRequest ──plan──> targets ──> Pages, in a thread that may wait
//! ```
//! A purge request is understood as a whole before anything is purged: where one of its subjects can't be, nothing is.
//!
//! # What is meant
//! Addresses are put through the rules of their site's keys, as those of requests are. A prefix names a whole host, so that it
//! never means another one's entries. Tags are those of one site, or of each.
//!
//! Files of a root are never out of date, so that a purge of addresses leaves them; one of everything takes them, too.

mod count;
pub(super) mod method;
mod targets;

use std::sync::Arc;

use eyewall::Purge as Kind;
use http::StatusCode;
use serde::Serialize;

use super::shared::Shared;
use crate::key::KeyError;
use targets::{Scope, Target};

/// What is to be purged, and how hard.
#[derive(Debug)]
pub(crate) struct PurgeRequest {
    pub(crate) subjects: Vec<Subject>,
    pub(crate) kind: Kind,
    /// Whether to tell how many entries each subject meant, which takes a look at all of them.
    pub(crate) counts: bool,
}

/// What is to be purged, in the operator's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// An address, with all of its variants and further key parts.
    Url(String),
    /// A tag of the site that has this host, and the cache group of this name of this host; or a tag of all sites.
    Tag { tag: String, host: Option<String> },
    /// Addresses that begin so.
    Prefix(String),
    /// A host, without a port those of all ports.
    Host(String),
    /// All that is in the volume.
    Everything,
}

/// What was done.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    kind: &'static str,
    purged: Vec<Purged>,
    /// How often the volume's tables were too small meanwhile: more was purged than asked for then.
    purge_overflows: u64,
}

/// One subject, and what came of it.
#[derive(Debug, Serialize)]
struct Purged {
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    result: Effect,
    /// How many entries it meant. Missing: nobody asked for it, or there are too many to count.
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<u64>,
}

/// What came of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Effect {
    /// Something was there.
    Found,
    /// Nothing was there.
    Absent,
    /// It holds for what there is, which nobody has counted.
    Accepted,
}

/// Why nothing was purged, or not all.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PurgeError {
    #[error(
        "`{0}` is no address; give it whole, such as http://example.org/page, with what isn't ASCII percent-encoded"
    )]
    Url(String),
    #[error("`{text}` has no entry: {source}")]
    Key { text: String, source: KeyError },
    #[error(
        "`{0}` names no whole host; give a prefix such as http://example.org/shop/, with the slash behind the host"
    )]
    Prefix(String),
    #[error("`{0}` is no host; give one alone, such as example.org or example.org:8080")]
    Host(String),
    #[error("no site of this server has the host {0}")]
    NoSite(String),
    #[error("a tag can't be empty")]
    EmptyTag,
    #[error("the volume could not be purged: {0}")]
    Volume(#[from] eyewall::Error),
    #[error("the purge broke off; the server's log says why")]
    BrokeOff,
}

impl PurgeError {
    /// The status to answer with.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Url(_) | Self::Key { .. } | Self::Prefix(_) | Self::Host(_) | Self::EmptyTag => {
                StatusCode::BAD_REQUEST
            }
            Self::NoSite(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Volume(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::BrokeOff => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// Carries out a purge request, in a thread that may wait for locks.
///
/// # Errors
/// [`PurgeError`]. But for [`PurgeError::Volume`] and [`PurgeError::BrokeOff`] nothing was purged then.
pub(crate) async fn purge(shared: &Arc<Shared>, purge_request: PurgeRequest) -> Result<Report, PurgeError> {
    let shared = Arc::clone(shared);
    let purging = tokio::task::spawn_blocking(move || shared.purge(&purge_request));
    // A panic was told by its thread.
    purging.await.unwrap_or(Err(PurgeError::BrokeOff))
}

impl Shared {
    fn purge(&self, purge_request: &PurgeRequest) -> Result<Report, PurgeError> {
        let scope = Scope::of(&self.config);
        let targets: Vec<Target> =
            purge_request.subjects.iter().map(|subject| Target::of(&scope, subject)).collect::<Result<_, _>>()?;
        // Of a single key nothing is noted that could overflow, and the count has its price.
        let is_noted = targets.iter().any(Target::is_noted);
        let overflows = || if is_noted { self.pages.store.purge_overflows() } else { Ok(0) };
        let before = overflows()?;
        let counts = purge_request.counts.then(|| count::count(&self.pages.store, &targets)).flatten();
        let mut counts = counts.into_iter().flatten();
        let mut purged = Vec::with_capacity(targets.len());
        for (subject, target) in purge_request.subjects.iter().zip(targets) {
            let result = target.run(&self.pages, purge_request.kind)?;
            purged.push(Purged::of(subject, target, result, counts.next()));
        }
        let kind = match purge_request.kind {
            Kind::Hard => "hard",
            Kind::Soft => "soft",
        };
        tracing::info!(kind, subjects = ?purge_request.subjects, "purged");
        Ok(Report { kind, purged, purge_overflows: overflows()?.saturating_sub(before) })
    }
}

impl Purged {
    /// Names are told as they were understood, which for addresses is as they stand in keys.
    fn of(subject: &Subject, target: Target, result: Effect, entries: Option<u64>) -> Self {
        let (what, name, host) = match subject {
            Subject::Url(_) => ("url", target.into_name(), None),
            Subject::Tag { tag, host } => ("tag", Some(tag.clone()), host.clone()),
            Subject::Prefix(_) => ("prefix", target.into_name(), None),
            Subject::Host(host) => ("host", Some(host.clone()), None),
            Subject::Everything => ("everything", None, None),
        };
        Self { what, name, host, result, entries }
    }
}
