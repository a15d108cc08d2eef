//! Contenders by their names in records.

use crate::error::Result;

/// A contender that takes turns under a name.
pub trait Named {
    /// The store's name in records.
    fn name(&self) -> &str;

    /// Waits until the store has finished its background work, if this process has it open.
    fn settle(&self) -> Result<()> {
        Ok(())
    }
}
