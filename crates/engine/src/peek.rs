//! Look-ups that leave no trace, in no entry's frequency and in no counter. [`Cache::peek`] is beside [`Cache::get`], whose fast path it takes.

use crate::cache::Cache;
use crate::error::Result;
use crate::hit::Lookup;
use crate::read::{self, Use, Wanted};

impl Cache {
    /// Like [`Cache::lookup`], but leaves no trace, as [`Cache::peek`].
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn peek_any(&self, key: impl AsRef<[u8]>) -> Result<Lookup<'_>> {
        let key = key.as_ref();
        self.looked_for(|volume| read::get_checked(volume, key, Use::Peeks, Wanted::Any)).map(Lookup::of)
    }

    /// How often the valid entry of `key` was asked for, up to 7; the volume forgets some of that with time. `None`: there is no
    /// such entry. Leaves no trace, as [`Cache::peek`].
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn uses(&self, key: impl AsRef<[u8]>) -> Result<Option<u8>> {
        let key = key.as_ref();
        self.looked_for(|volume| read::uses(volume, key))
    }

    /// How often the key was asked for and then put, up to 7, as far as the volume's sketch remembers that. `None`: it doesn't know the key. The
    /// answer may be wrong for one key in thousands, and leaves no trace.
    ///
    /// # Errors
    /// Those of [`Cache::get`].
    pub fn remembered_requests(&self, key: impl AsRef<[u8]>) -> Result<Option<u64>> {
        let key = key.as_ref();
        self.looked_for(|volume| read::remembered_requests(volume, key))
    }

    /// Whether `key` has a valid entry. Doesn't count as a use.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        Ok(self.peek(key)?.is_some())
    }
}
