//! What a store must do to be measured, and those that cost nothing to build.

mod copy;
mod files;
pub mod footprint;
mod plain;
mod servers;
mod tagged;
mod touched;
mod volume;

pub use copy::BareCopy;
pub use files::Files;
pub use plain::{Plain, PlainHandle};
pub use servers::{MEMCACHED, REDIS};
pub use tagged::Tagged;
pub use volume::{Copied, Volume};

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::error::{Error, Result};

/// A cache or store under measurement, shared by all threads of this process.
pub trait Store: Send + Sync {
    /// What one thread works with: buffers, connections, or nothing but a reference.
    type Handle<'a>: Handle
    where
        Self: 'a;

    /// The name in records.
    fn name(&self) -> &'static str;

    /// A handle for one thread.
    fn handle(&self) -> Self::Handle<'_>;

    /// Maps all of it into this process, where the store offers that.
    fn populate(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until what was put is where it is going to be, where a store puts it there in the background.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Makes room by itself. Others are given the same live set by overwriting entries they hold.
    fn evicts(&self) -> bool {
        true
    }

    /// Bytes that it takes now: blocks of its files, or what its server says of its memory. `None`: nobody can tell, as of
    /// what lies on this process's heap. May take as long as a walk over all files.
    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Bytes of the entries that can be got, headers included. `None`: the store doesn't tell.
    fn live_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// One thread's way to a store.
pub trait Handle {
    /// Shows the value's bytes to `consumer`, in place where the store can; false for a miss.
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool>;

    /// Stores a value.
    ///
    /// # Errors
    /// [`Error::Refused`] for a value that the store refuses by its size, or for want of room: nothing was changed, and others may be put.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes an entry; false where there was none. A store that can't tell without looking says true.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// An empty directory of its own; stores in main memory ignore it.
    pub directory: &'a Path,
    /// Bytes that it may hold.
    pub cap_bytes: u64,
    /// Bytes of a typical value. Where stores limit what they take by default, they are told to take twice as much. 0: nobody knows, and
    /// nothing is told to the store but its cap.
    pub value_bytes: usize,
    /// Bytes of the largest value, where that is more than twice a typical one and has to be taken; else 0.
    pub value_bytes_max: usize,
    /// Bytes of memory before the files, for stores that have such: a tier of Eyewall, foyer's memory. 0: none was decided on;
    /// stores that can't do without take an eighth of the cap.
    pub tier_bytes: u64,
}

impl<'a> Place<'a> {
    /// For values that are all near the typical one, without a decision on memory.
    pub fn new(directory: &'a Path, cap_bytes: u64, value_bytes: usize) -> Self {
        Self { directory, cap_bytes, value_bytes, value_bytes_max: 0, tier_bytes: 0 }
    }
}

/// Refuses a value that is larger than the whole cap, which a store without a limit of its own would take or lose.
///
/// # Errors
/// [`Error::Refused`].
#[inline]
pub fn check_size(store: &'static str, value: &[u8], cap_bytes: u64) -> Result<()> {
    if value.len() as u64 > cap_bytes {
        return Err(Error::Refused { store, value_bytes: value.len() });
    }
    Ok(())
}

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
    /// How another process comes to a store that lies at a place already. `None`: only who opened it has it.
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

const fn ours(name: &'static str, open: Open, attach: Option<Attach>) -> Peer {
    Peer { name, kind: Kind::Ours, look: || Ok(Some(env!("CARGO_PKG_VERSION").to_owned())), open, attach }
}

/// The engine under test: a get shows the bytes of the volume.
pub const EYEWALL: Peer = ours(
    Volume::NAME,
    |place| Ok(Box::new(Volume::create(place)?)),
    Some(Attach::Lasting(|place| Ok(Box::new(Volume::attach(place)?)))),
);

/// The engine, each value copied into a buffer of the thread.
pub const EYEWALL_COPIED: Peer = ours(
    Copied::NAME,
    |place| Ok(Box::new(Copied::from(Volume::create(place)?))),
    Some(Attach::Lasting(|place| Ok(Box::new(Copied::from(Volume::attach(place)?))))),
);

/// The engine with a tier in shared memory.
pub const EYEWALL_TIER: Peer = ours(Volume::NAME_TIER, |place| Ok(Box::new(Volume::create_with_tier(place)?)), None);

/// The engine with a tier, each value copied.
pub const EYEWALL_TIER_COPIED: Peer =
    ours(Copied::NAME_TIER, |place| Ok(Box::new(Copied::from(Volume::create_with_tier(place)?))), None);

/// The engine, each entry with tags and a time to live.
pub const EYEWALL_TAGGED: Peer = ours(
    Tagged::NAME,
    |place| Ok(Box::new(Tagged::create(place)?)),
    Some(Attach::Lasting(|place| Ok(Box::new(Tagged::attach(place)?)))),
);

/// One file for each entry.
pub const FILES: Peer = Peer {
    name: Files::NAME,
    kind: Kind::Other,
    look: || Ok(None),
    open: |place| Ok(Box::new(Files::create(place.directory, place.cap_bytes)?)),
    attach: Some(Attach::Lasting(|place| Ok(Box::new(Files::attach(place.directory, place.cap_bytes)?)))),
};

/// The files themselves, without a cache.
pub const PLAIN: Peer = Peer {
    name: Plain::NAME,
    kind: Kind::Reference,
    look: || Ok(None),
    open: |place| Ok(Box::new(Plain::new(place.directory)?)),
    attach: Some(Attach::Lasting(|place| Ok(Box::new(Plain::new(place.directory)?)))),
};

/// A copy of each value, and nothing else.
pub const BARE_COPY: Peer = Peer {
    name: BareCopy::NAME,
    kind: Kind::Reference,
    look: || Ok(None),
    open: |place| Ok(Box::new(BareCopy::new(place))),
    attach: None,
};

/// All of these.
pub const PEERS: [Peer; 10] = [
    EYEWALL,
    EYEWALL_COPIED,
    EYEWALL_TIER,
    EYEWALL_TIER_COPIED,
    EYEWALL_TAGGED,
    FILES,
    MEMCACHED,
    REDIS,
    BARE_COPY,
    PLAIN,
];
