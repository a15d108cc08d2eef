//! What a store must do to be measured.

use std::path::Path;

use crate::error::{Error, Result};

/// A cache or store under measurement, shared by all threads of this process.
pub trait Store: Send + Sync {
    /// The handle of one thread: buffers, connections, or only a reference.
    type Handle<'a>: Handle
    where
        Self: 'a;

    /// The name in records.
    fn name(&self) -> &'static str;

    /// A handle for one thread.
    fn handle(&self) -> Self::Handle<'_>;

    /// Maps the whole store into this process, if it offers that.
    fn populate(&self) -> Result<()> {
        Ok(())
    }

    /// Waits until entries are in their final place, if the store moves them there in the background.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Whether the store makes room by itself. For other stores, puts overwrite entries, so that the live set stays the
    /// same.
    fn evicts(&self) -> bool {
        true
    }

    /// Bytes that the store takes now: blocks of its files, or the memory that its server reports. `None` if nothing
    /// can tell, as for a store on this process's heap. May take as long as a walk over all files.
    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Bytes of the entries that a get can find, headers included. `None` if the store doesn't tell.
    fn live_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }
}

/// One thread's access to a store.
pub trait Handle {
    /// Passes the value's bytes to `consumer`, in place if the store can do that. False for a miss.
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool>;

    /// Stores a value.
    ///
    /// # Errors
    /// [`Error::Refused`] if the store refuses the value because of its size, or because it has no room. Then nothing
    /// has changed, and other values may be put.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Removes an entry. False if there was none. A store that can't tell without a look-up says true.
    fn delete(&mut self, key: &[u8]) -> Result<bool>;
}

/// The directory and the room of a store.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// An empty directory for this store alone. Stores in main memory ignore it.
    pub directory: &'a Path,
    /// The store's cap in bytes.
    pub cap_bytes: u64,
    /// Bytes of a typical value. If a store limits the size of values by default, its limit is set to twice this. 0:
    /// unknown; the store gets only its cap.
    pub value_bytes: usize,
    /// Bytes of the largest value, if it is more than twice a typical one and the store has to accept it; else 0.
    pub value_bytes_max: usize,
    /// Bytes of memory in front of the files, for stores that have such: a tier of Eyewall, foyer's memory. 0: not
    /// given; stores that need such memory take an eighth of the cap.
    pub tier_bytes: u64,
}

impl<'a> Place<'a> {
    /// A place for values that are all near the typical one. The memory in front of the files isn't given.
    pub fn new(directory: &'a Path, cap_bytes: u64, value_bytes: usize) -> Self {
        Self { directory, cap_bytes, value_bytes, value_bytes_max: 0, tier_bytes: 0 }
    }
}

/// Refuses a value that is larger than the whole cap. A store without a limit of its own would accept or lose it.
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
