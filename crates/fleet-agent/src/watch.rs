//! Wakes the reader of an outbox when a process appends to it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Size of the buffer for events. They have no names.
const EVENTS_BYTES: usize = 4096;

/// A watch of the kernel.
pub(crate) struct Watch {
    events: AsyncFd<OwnedFd>,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        #[expect(
            deprecated,
            reason = "its unsafe successor wants a descriptor that stays the same, as an `OwnedFd` does"
        )]
        let events = AsyncFd::with_interest(inotify, Interest::READABLE)?;
        Ok(Self { events })
    }

    /// Watches the file that has this path now. The caller looks at the file after that: later changes wake it.
    pub(crate) fn begin(&self, path: &Path) {
        let changes = WatchFlags::MODIFY | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        // Without the watch, the reader looks from time to time.
        let _ = inotify::add_watch(self.events.get_ref(), path, changes);
    }

    /// Waits for a change.
    pub(crate) async fn changed(&self) {
        let Ok(mut ready) = self.events.readable().await else { return std::future::pending().await };
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut reader = Reader::new(self.events.get_ref(), &mut buffer);
        while reader.next().is_ok() {}
        ready.clear_ready();
    }
}
