//! The verbs that look at or change a volume, one file each, and those that tell of the command itself.

pub(crate) mod completions;
pub(crate) mod create;
mod entry;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod man;
mod pattern;
pub(crate) mod purge;
pub(crate) mod put;
pub(crate) mod remove;
pub(crate) mod stat;
pub(crate) mod upkeep;
pub(crate) mod verify;
