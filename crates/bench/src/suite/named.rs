//! Contenders by their names in records.

use crate::error::Result;

/// Something that takes its turns under a name.
pub trait Named {
    /// The store's name in records.
    fn name(&self) -> &str;

    /// Waits until the store has done what it does in the background, if it is open in this process.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}
