//! The pages that a site shows in place of errors in words: `error_page`.

use http::StatusCode;

use crate::config::site::Site;
use crate::config::value::StatusKey;
use crate::key::normal_path;

/// The pages of a site, ready to use.
#[derive(Debug)]
pub(crate) struct ErrorPages {
    pages: Vec<(StatusKey, String)>,
    /// The paths of their keys.
    key_paths: Vec<String>,
    /// Whether the errors of origins get them too.
    intercepts: bool,
}

impl ErrorPages {
    pub(crate) fn of(site: &Site) -> Self {
        let pages: Vec<_> = site.error_page.iter().map(|(status, path)| (*status, path.get_ref().0.clone())).collect();
        let paths = pages.iter().filter_map(|(_, page): &(_, String)| page.split('?').next());
        // A path that can't be in a key has no entry.
        let key_paths = paths.filter_map(|path| normal_path(path).ok()).collect();
        Self { pages, key_paths, intercepts: site.intercept_errors.as_ref().is_some_and(|yes| *yes.get_ref()) }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The path of the page for this status. A page for the status takes precedence over one for its class.
    pub(crate) fn of_status(&self, status: StatusCode) -> Option<&str> {
        let find =
            |single: bool| self.pages.iter().find(|(key, _)| key.0.is_single() == single && key.0.contains(status));
        find(true).or_else(|| find(false)).map(|(_, path)| path.as_str())
    }

    /// Whether one of them is at this path of a key.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.key_paths.iter().any(|page| page == path)
    }

    /// Whether a response of an origin with this status is replaced.
    pub(crate) fn replaces(&self, status: StatusCode) -> bool {
        self.intercepts && self.of_status(status).is_some()
    }

    /// Their paths, each once.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = self.pages.iter().map(|(_, path)| path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}
