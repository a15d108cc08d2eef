//! The verbs that inspect or change a volume, one file each, and the verbs about the command itself.

mod administration;
mod bars;
pub(crate) mod check;
mod check_limits;
pub(crate) mod completions;
pub(crate) mod create;
mod entry;
pub(crate) mod export;
pub(crate) mod get;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod map;
mod parts;
mod pattern;
pub(crate) mod purge;
pub(crate) mod purge_server;
pub(crate) mod put;
pub(crate) mod reload;
pub(crate) mod remove;
pub(crate) mod resize;
pub(crate) mod scrub;
pub(crate) mod stat;
pub(crate) mod top;
pub(crate) mod upgrade;
pub(crate) mod upkeep;
pub(crate) mod verify;
