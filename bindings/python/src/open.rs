//! Opening a volume.

use std::path::PathBuf;

use eyewall::{Options, Unclean};
use pyo3::prelude::*;

use crate::arguments::Seconds;

/// All options from `eyewall/_cache.py`; `None` for those that the user left out.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(crate) struct OpenOptions {
    size: Option<u64>,
    entry_size_hint: Option<u32>,
    entry_bytes_max: Option<u64>,
    mode: Option<u32>,
    group: Option<u32>,
    lock_deadline: Option<Seconds>,
    tier: Option<u64>,
    tier_folder: Option<PathBuf>,
    must_exist: bool,
    read_only: bool,
    secure_erase: bool,
    survive_sigbus: bool,
    put_aside_broken: bool,
    verify_hits: bool,
    fleet: bool,
    clear_unclean: bool,
}

/// Sets the options that aren't `None`.
macro_rules! said {
    ($options:ident, $given:ident, $($name:ident),*) => {
        $(if let Some(value) = $given.$name { $options = $options.$name(value); })*
    };
}

impl OpenOptions {
    /// Opens the volume at a path, or creates an anonymous one.
    pub(crate) fn open(self, path: Option<PathBuf>) -> eyewall::Result<eyewall::Cache> {
        let mut options = Options::new()
            .create(!self.must_exist)
            .read_only(self.read_only)
            .secure_erase(self.secure_erase)
            .survive_sigbus(self.survive_sigbus)
            .put_aside_broken(self.put_aside_broken)
            .verify_hits(self.verify_hits)
            .fleet(self.fleet);
        said!(options, self, size, entry_size_hint, entry_bytes_max, mode, group, tier, tier_folder);
        if let Some(wait) = self.lock_deadline {
            options = options.lock_deadline(wait.0);
        }
        if self.clear_unclean {
            options = options.unclean(Unclean::Clear);
        }
        match path {
            Some(path) if self.fleet => options.open(path).map(|cache| eyewall_fleet_client::join(&cache)),
            Some(path) => options.open(path),
            None => options.anonymous(),
        }
    }
}
