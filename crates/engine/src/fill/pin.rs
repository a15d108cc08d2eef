//! A pin that may move to another thread, as the pin of a hit may. Any thread may change it while it holds something.
//! Nobody else takes it for free during that time.

use std::ptr;
use std::sync::atomic::AtomicU64;

use crate::error::{Error, Result};
use crate::thread::Thread;
use crate::volume::Volume;

/// Where a pin of this process lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinAt(usize);

impl PinAt {
    /// A free pin of the calling thread, or `None` if there is none. The thread must make it hold something before it
    /// looks for another.
    pub(crate) fn free(volume: &Volume) -> Option<Self> {
        let pin: *const AtomicU64 = Thread::current(volume)?.free_pin()?;
        Some(Self(pin.addr() - ptr::from_ref(volume.region.word(0)).addr()))
    }

    /// Like [`PinAt::free`], but an error if there is none. `bytes` is the size of the room that is to be pinned.
    pub(crate) fn for_room(volume: &Volume, bytes: u64) -> Result<Self> {
        Self::free(volume).ok_or(Error::Pinned { bytes })
    }

    pub(crate) fn word(self, volume: &Volume) -> &AtomicU64 {
        volume.region.word(self.0)
    }
}
