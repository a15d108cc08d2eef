//! A pin that may change threads, as a hit's does: any thread may change it while it holds something, and nobody else takes
//! it for free as long as it does.

use std::ptr;
use std::sync::atomic::AtomicU64;

use crate::error::{Error, Result};
use crate::thread::Thread;
use crate::volume::Volume;

/// Where a pin of this process lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinAt(usize);

impl PinAt {
    /// A free pin of the calling thread, which has to make it hold something before it looks for another; `None`: there is
    /// none to be had.
    pub(crate) fn free(volume: &Volume) -> Option<Self> {
        let pin: *const AtomicU64 = Thread::current(volume)?.free_pin()?;
        Some(Self(pin.addr() - ptr::from_ref(volume.region.word(0)).addr()))
    }

    /// As [`PinAt::free`], for who can't do without: room of `bytes` bytes is to be pinned.
    pub(crate) fn for_room(volume: &Volume, bytes: u64) -> Result<Self> {
        Self::free(volume).ok_or(Error::Pinned { bytes })
    }

    pub(crate) fn word(self, volume: &Volume) -> &AtomicU64 {
        volume.region.word(self.0)
    }
}
