//! The sandbox of this process: which files it may open (Landlock, [`files`]), and which system calls it may make (seccomp, [`calls`]).
//!
//! The kernel narrows a thread and all that it starts, and nothing widens it again. So the sandbox is closed once, by the only thread of
//! the process, before the server starts others. The successor of an upgrade is inside from the beginning: the process before tells it
//! what is in the sandbox ([`inherit`]), and it doesn't close a second one. The kernel allows sixteen, and each makes calls slower.
//!
//! # What is absent
//! The configuration: `serve/sandbox.rs` says which places it needs. The network, which a server and its commands need everywhere.

mod calls;
mod files;
mod place;

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

pub(crate) use place::{Access, Place};

/// Written once, while the process has one thread.
static CLOSED: OnceLock<Closed> = OnceLock::new();

/// The sandbox that this process is in.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Closed {
    /// The restriction of files.
    pub(crate) landlock: Extent,
    /// The restriction of system calls.
    pub(crate) seccomp: Extent,
    /// The files that it may open, in the order of paths; the restriction is void without Landlock.
    pub(crate) places: Vec<Place>,
}

/// How much of a restriction is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Extent {
    /// All that Eyewall asks for.
    Whole,
    /// What this kernel has of it.
    Partial,
    /// Nothing.
    None,
}

/// Why the process has no sandbox.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The process is more than a server.
    #[error(
        "`sandbox` would restrict the whole program, which is more than a server; remove the setting, or call \
         `Builder::service` first"
    )]
    NotAService,
    /// Other threads would stay outside.
    #[error("the program has {0} threads already; a sandbox can be closed only before the second one starts")]
    Threads(usize),
    /// The setting is `strict`, and the kernel lacks a part.
    #[error("the sandbox is not whole, as `sandbox = \"strict\"` demands: {0}; `sandbox = \"on\"` starts without that")]
    Incomplete(String),
}

impl Closed {
    /// Whether the process may do all of this.
    pub(crate) fn has(&self, wanted: &Place) -> bool {
        self.landlock == Extent::None || wanted.path.ancestors().any(|path| has_at(&self.places, path, wanted))
    }

    fn is_whole(&self) -> bool {
        self.landlock == Extent::Whole && self.seccomp == Extent::Whole
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = |name: &str, extent| match extent {
            Extent::Whole => name.to_owned(),
            Extent::Partial => format!("{name} in part"),
            Extent::None => format!("no {name}"),
        };
        write!(formatter, "{}, {}", part("Landlock", self.landlock), part("seccomp", self.seccomp))
    }
}

/// The sandbox that this process is in; `None` if it is in none.
pub(crate) fn closed() -> Option<&'static Closed> {
    CLOSED.get()
}

/// Notes the sandbox that the process before has closed around this one.
pub(crate) fn inherit(closed: Closed) {
    // A process has one parent, which says it once.
    let _ = CLOSED.set(closed);
}

/// Closes the sandbox around this process: it can open only files in these places from now on. What the kernel lacks is logged, or an
/// error if `is_strict`; the process must end then.
///
/// # Errors
/// [`SandboxError::Threads`], [`SandboxError::Incomplete`].
pub(crate) fn close(places: Vec<Place>, is_strict: bool) -> Result<(), SandboxError> {
    // Without /proc, nothing tells the number; the command has one thread at this point.
    let threads = std::fs::read_dir("/proc/self/task").map_or(1, Iterator::count);
    if threads > 1 {
        return Err(SandboxError::Threads(threads));
    }
    let places = distinct(places);
    let (landlock, files_lack) = files::restrict(&places);
    let (seccomp, calls_lack) = calls::restrict();
    let lacks: Vec<String> = files_lack.into_iter().chain(calls_lack).collect();
    if is_strict && !lacks.is_empty() {
        return Err(SandboxError::Incomplete(lacks.join("; ")));
    }
    for lack in lacks {
        tracing::warn!("the sandbox is not whole: {lack}");
    }
    let _ = CLOSED.set(Closed { landlock, seccomp, places });
    Ok(())
}

/// In the order of paths, without those that another one includes. A server may have thousands of sites, so no place is compared with all.
fn distinct(mut places: Vec<Place>) -> Vec<Place> {
    places.sort_by(|one, other| (&one.path, one.access).cmp(&(&other.path, other.access)));
    places.dedup();
    let is_inner = |place: &Place| place.path.ancestors().skip(1).any(|path| has_at(&places, path, place));
    let inner: Vec<bool> = places.iter().map(is_inner).collect();
    places.into_iter().zip(inner).filter(|(_, is_inner)| !is_inner).map(|(place, _)| place).collect()
}

/// Whether one of the places at this path covers what is wanted.
fn has_at(places: &[Place], path: &Path, wanted: &Place) -> bool {
    let first = places.partition_point(|place| place.path.as_path() < path);
    places[first..].iter().take_while(|place| place.path == path).any(|place| place.covers(wanted))
}

/// Whether a sandbox closed before is enough for `strict`.
///
/// # Errors
/// [`SandboxError::Incomplete`].
pub(crate) fn demand_whole(closed: &Closed) -> Result<(), SandboxError> {
    if closed.is_whole() {
        return Ok(());
    }
    let lack = "the process before this one had no whole one; restart the server".to_owned();
    Err(SandboxError::Incomplete(lack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_would_stay_outside() {
        // The test itself is the second thread.
        let error = close(Vec::new(), false).unwrap_err();
        assert!(matches!(error, SandboxError::Threads(2..)), "{error}");
        assert!(closed().is_none());
    }

    #[test]
    fn an_older_sandbox_is_not_enough_for_strict() {
        let whole = Closed { landlock: Extent::Whole, seccomp: Extent::Whole, places: Vec::new() };
        assert!(demand_whole(&whole).is_ok());
        let error = demand_whole(&Closed { landlock: Extent::Partial, ..whole }).unwrap_err();
        assert!(error.to_string().contains("restart"), "{error}");
    }

    #[test]
    fn a_place_inside_of_another_is_no_place_of_its_own() {
        let place = |path: &str, access| Place { path: path.into(), access };
        let (srv, log) = (place("/srv", Access::Read), place("/srv/log", Access::Log));
        let all = vec![
            log.clone(),
            place("/srv/www/a", Access::Read),
            srv.clone(),
            place("/srv-b", Access::Read),
            srv.clone(),
        ];
        let places = distinct(all);
        assert_eq!(places, [srv, log, place("/srv-b", Access::Read)]);
        let closed = Closed { landlock: Extent::Whole, seccomp: Extent::Whole, places };
        assert!(closed.has(&place("/srv/log/x", Access::Read)) && closed.has(&place("/srv/log/x", Access::Log)));
        assert!(!closed.has(&place("/srv/www", Access::Log)) && !closed.has(&place("/srv-c", Access::Read)));
    }

    #[test]
    fn without_landlock_every_place_is_inside() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = Place::new(folder.path(), Access::Read);
        let mut closed = Closed { landlock: Extent::None, seccomp: Extent::Whole, places: Vec::new() };
        assert!(closed.has(&wanted));
        closed.landlock = Extent::Whole;
        assert!(!closed.has(&wanted));
    }
}
