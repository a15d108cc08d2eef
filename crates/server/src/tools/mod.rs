//! The verbs that look at or change a volume, one file each.

pub(crate) mod create;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod remove;
pub(crate) mod stat;
