//! The certificates of a site, for operators.

use std::time::SystemTime;

use eyewall_tls::IdentityFiles;
use eyewall_tls::acme::{Acme, SetState};
use serde::Serialize;

use super::{Threads, Tls};
use crate::serve::date::rfc3339;

/// A certificate of a site.
#[derive(Serialize)]
pub(crate) struct CertificateStatus {
    names: Vec<String>,
    /// Where it comes from: `acme` or `files`.
    source: &'static str,
    file: String,
    /// Until when it is valid; `None` if there is none yet.
    not_after: Option<String>,
    #[serde(skip)]
    expires: Option<SystemTime>,
    /// The state of its renewal by ACME.
    state: Option<&'static str>,
    /// When it is to be renewed, or when the next attempt begins.
    next: Option<String>,
    /// The attempts that failed since the last success.
    failures: u32,
    /// Why there is no newer one.
    error: Option<String>,
}

impl CertificateStatus {
    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    /// Until when it is valid; `None` if there is none yet.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    /// The attempts to renew it that failed since the last success.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }
}

impl Tls {
    /// The certificates of the site of this number.
    pub(crate) fn status(&self, site: usize) -> Vec<CertificateStatus> {
        let threads = self.threads();
        let Some(Threads { upkeep, acme }) = &*threads else { return Vec::new() };
        let sets = acme.as_ref().map(Acme::status).unwrap_or_default();
        let set_of = |files: &IdentityFiles| {
            let acme = acme.as_ref()?;
            sets.iter().find(|set| acme.files(&set.names) == *files)
        };
        let kept = upkeep.kept();
        let status = |files: &IdentityFiles| {
            let identity = kept.watched.identities().find(|(found, _)| *found == files).map(|(_, identity)| identity);
            let set = set_of(files);
            let names = identity.map(|identity| identity.names().to_vec());
            CertificateStatus {
                names: names.or_else(|| set.map(|set| set.names.clone())).unwrap_or_default(),
                source: if set.is_some() { "acme" } else { "files" },
                file: super::shown(&files.certificate),
                not_after: identity.map(|identity| rfc3339(identity.not_after())),
                expires: identity.map(|identity| identity.not_after()),
                state: set.map(|set| in_words(set.state)),
                next: set.and_then(|set| set.next).map(rfc3339),
                failures: set.map_or(0, |set| set.failures),
                error: set.and_then(|set| set.error.clone()).or_else(|| kept.errors.get(files).cloned()),
            }
        };
        self.files.get(site).map(|all| all.iter().map(status).collect()).unwrap_or_default()
    }
}

fn in_words(state: SetState) -> &'static str {
    match state {
        SetState::Ordering => "ordering",
        SetState::Valid => "valid",
        SetState::Failing => "failing",
        _ => "waiting",
    }
}
