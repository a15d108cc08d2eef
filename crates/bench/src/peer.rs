//! Stores by name: whose each is, whether it is available, and how it is opened.

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::store::Place;

/// Whose a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The engine under test, in one way of using it.
    Ours,
    /// What somebody could choose instead.
    Other,
    /// Nothing that could be chosen: a ceiling.
    Reference,
}

/// Why a store isn't available on this machine, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Absent(pub String);

/// What a look for a store finds: the version in its library's or program's own words, `None` where it has none.
pub type Found = std::result::Result<Option<String>, Absent>;

/// A kind of store that a workload can open.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    /// The name in records.
    pub name: &'static str,
    /// Whose it is.
    pub kind: Kind,
    /// Looks whether it is available here. May start its program to ask for a version.
    pub look: fn() -> Found,
    /// Opens an empty store.
    pub open: Open,
    /// How another process comes to a store that lies at a place already. `None`: only the process that opened it has it.
    pub attach: Option<Attach>,
}

impl Peer {
    /// Opens the store that another process has made at a place, and keeps open there.
    ///
    /// # Errors
    /// Where the store can't be shared by processes, or lies somewhere else.
    pub fn attach(&self, place: &Place<'_>) -> Result<Box<dyn Contender>> {
        match self.attach {
            Some(Attach::Lasting(open) | Attach::WhileOpen(open)) => open(place),
            None => {
                let what = "processes can't share it: it is in the memory of the one that opened it".to_owned();
                Err(Error::Store { store: self.name, what })
            }
        }
    }

    /// How the store is opened again when everybody has closed it, if there is anything left then.
    pub fn reopen(&self) -> Option<Open> {
        match self.attach {
            Some(Attach::Lasting(open)) => Some(open),
            Some(Attach::WhileOpen(_)) | None => None,
        }
    }
}

/// A way to open a store.
pub type Open = fn(&Place<'_>) -> Result<Box<dyn Contender>>;

/// A way to open a store that lies at a place already. A process that came by it leaves the store there when it closes it.
#[derive(Debug, Clone, Copy)]
pub enum Attach {
    /// Made by this process or by another, and in use there or closed.
    Lasting(Open),
    /// As long as its maker has it open.
    WhileOpen(Open),
}
