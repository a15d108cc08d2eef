//! Stores by name: the author of each store, its availability, and how to open it.

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::store::Place;

/// What a store is in a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The engine under test, used in one way.
    Ours,
    /// A store that a user could choose instead.
    Other,
    /// A limit to compare with, not a choice.
    Reference,
}

/// Why a store isn't available on this machine, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Absent(pub String);

/// Result of looking for a store: the version in the words of its library or program; `None` if it has no version.
pub type Found = std::result::Result<Option<String>, Absent>;

/// A kind of store that a workload can open.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The name in records.
    pub name: &'static str,
    /// What it is in a comparison.
    pub kind: Kind,
    /// Says whether the store is available here. May start its program to get the version.
    pub look: fn() -> Found,
    /// Opens an empty store.
    pub open: Open,
    /// Opens a store that another process has created. `None` if only the process that created it can use it.
    pub attach: Option<Attach>,
}

impl Peer {
    /// Opens the store that another process has created at a place and keeps open.
    ///
    /// # Errors
    /// Fails if processes can't share the store, or if it is somewhere else.
    pub fn attach(&self, place: &Place<'_>) -> Result<Box<dyn Contender>> {
        match self.attach {
            Some(Attach::Lasting(open) | Attach::WhileOpen(open)) => open(place),
            None => {
                let what = "processes can't share it: it is in the memory of the one that opened it".to_owned();
                Err(Error::Store { store: self.name, what })
            }
        }
    }

    /// Opens the store again after all processes have closed it. `None` if nothing is left then.
    pub fn reopen(&self) -> Option<Open> {
        match self.attach {
            Some(Attach::Lasting(open)) => Some(open),
            Some(Attach::WhileOpen(_)) | None => None,
        }
    }
}

/// A way to open a store.
pub type Open = fn(&Place<'_>) -> Result<Box<dyn Contender>>;

/// A way to open a store that already exists. Closing a store that was opened in this way doesn't remove it.
#[derive(Debug, Clone, Copy)]
pub enum Attach {
    /// This process or another one has created it. It may be in use or closed.
    Lasting(Open),
    /// Only while its creator has it open.
    WhileOpen(Open),
}
