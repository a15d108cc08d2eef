//! What a store must do to be measured.

use std::path::Path;

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
