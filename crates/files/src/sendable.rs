//! Files whose bytes a caller sends from the file itself: the kernel passes its own pages to the socket (`sendfile`), and nothing is
//! copied, read or stored by this process.
//!
//! The kernel reads the pages when they are sent, so two things are asked for each call. Are the pages in memory? Otherwise
//! the call would wait for storage, so another thread reads them in first ([`FilePiece::poll_resident`]). And is the file still that of the
//! answer's head? The caller asks that after the call, and ends the response if it is not ([`FilePiece::check`]). The client must not have
//! the whole body by then. So the caller keeps back the last bytes, and sends them from memory after a check ([`FilePiece::read_end`]).

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::fs::Advice;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::recent_probes::RecentProbes;
use crate::representation::Representation;
use crate::store;
use crate::watches;

/// The bytes that another thread reads in before a response goes on.
const READ_IN_BYTES: u64 = 256 << 10;
/// From the beginning of a missing piece on, the kernel reads so many bytes ahead.
const AHEAD_BYTES: u64 = 2 << 20;
/// The distance of the pages that are asked whether they are in memory. The kernel reads and evicts longer stretches, and to ask
/// for each page would take as long as sending it.
const STEP_BYTES: u64 = 64 << 10;
/// The most questions before one call that sends. A socket may take less than what was asked about.
const PROBES_MAX: u32 = 4;
/// The room of a thread that reads pages in.
const READ_BYTES: usize = 64 << 10;

/// An open file that can be sent.
#[derive(Debug)]
pub(crate) struct Sendable {
    file: Arc<File>,
    /// Whether all of its pages are in memory, as those of a heap are.
    is_in_memory: bool,
    probes: RecentProbes,
}

impl Sendable {
    /// `None` for files that other machines may change, and for file systems that don't tell which pages are in memory. It may wait for storage.
    pub(crate) fn of(file: &Arc<File>) -> Option<Self> {
        let is_in_memory = watches::is_in_memory(&**file);
        let is_told = || !matches!(probe(file, 0), Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL));
        let is_sendable = watches::is_local(&**file) && (is_in_memory || is_told());
        is_sendable.then(|| Self { file: Arc::clone(file), is_in_memory, probes: RecentProbes::default() })
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// How many of these bytes, from the first one on, can be sent and would hardly wait for storage.
    fn likely_resident_bytes(&self, range: &Range<u64>) -> u64 {
        if self.is_in_memory {
            return range.end - range.start;
        }
        let (now, mut probes_left) = (self.probes.now(), PROBES_MAX);
        let mut at = range.start;
        while at < range.end {
            let step = at / STEP_BYTES;
            if !self.probes.is_recent(step, now) {
                if probes_left == 0 || probe(&self.file, at).is_err() {
                    break;
                }
                probes_left -= 1;
                self.probes.note(step, now);
            }
            at = (step + 1) * STEP_BYTES;
        }
        at.min(range.end) - range.start
    }
}

/// Reads a byte if its page is in memory.
fn probe(file: &File, at: u64) -> rustix::io::Result<usize> {
    preadv2(file, &mut [IoSliceMut::new(&mut [0])], at, ReadWriteFlags::NOWAIT)
}

/// Reads bytes in, and has the kernel begin with those behind them.
fn read_in(file: &File, range: Range<u64>) -> io::Result<()> {
    let ahead = NonZeroU64::new(AHEAD_BYTES);
    // Only advice.
    let _ = rustix::fs::fadvise(file, range.start, ahead, Advice::WillNeed);
    let mut bytes = vec![0; READ_BYTES];
    let mut at = range.start;
    while at < range.end {
        match file.read_at(&mut bytes, at) {
            // It became shorter, which the check after the send notices.
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A stretch of a file, to be sent from the file itself. Before each call that sends, the caller asks [`FilePiece::poll_resident`] how much it may send. It
/// sends [`FilePiece::bytes_before_end`] of that by `sendfile` and calls [`FilePiece::check`], and sends the end from [`FilePiece::read_end`].
#[derive(Debug)]
pub struct FilePiece {
    sendable: Arc<Sendable>,
    representation: Arc<Representation>,
    range: Range<u64>,
    /// Whether its last byte is that of the body.
    is_last: bool,
    reading: Option<JoinHandle<io::Result<()>>>,
}

impl FilePiece {
    /// The maximum length of a piece. Other connections of the event loop wait while a socket takes one.
    pub const BYTES_MAX: usize = 1 << 20;
    /// The room for the last bytes of a body.
    pub const END_BYTES: usize = 4096;

    pub(crate) fn new(
        sendable: Arc<Sendable>,
        representation: Arc<Representation>,
        range: Range<u64>,
        is_last: bool,
    ) -> Self {
        Self { sendable, representation, range, is_last, reading: None }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.sendable.file
    }

    /// Where its bytes are.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Waits until its first bytes are in memory, or were there just now. Returns their number. It needs a Tokio runtime.
    ///
    /// # Errors
    /// The file can't be read.
    pub fn poll_resident(&mut self, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if self.reading.is_none() {
            let resident = self.sendable.likely_resident_bytes(&self.range);
            if resident > 0 || self.range.is_empty() {
                return Poll::Ready(Ok(resident));
            }
        }
        let first = self.range.start..self.range.end.min(self.range.start + READ_IN_BYTES);
        let count = first.end - first.start;
        let reading = self.reading.get_or_insert_with(|| {
            let sendable = Arc::clone(&self.sendable);
            spawn_blocking(move || read_in(&sendable.file, first))
        });
        let read = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        Poll::Ready(read.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())).map(|()| count))
    }

    /// How many of its first bytes may be sent before a check: all but the last ones of the body.
    pub fn bytes_before_end(&self) -> u64 {
        let held_back = if self.is_last { Self::END_BYTES as u64 } else { 0 };
        (self.range.end - self.range.start).saturating_sub(held_back)
    }

    /// Reads the bytes behind [`FilePiece::bytes_before_end`], and [checks](FilePiece::check) the file after that. So it also checks what was
    /// sent before. It doesn't wait if they are in memory.
    ///
    /// # Errors
    /// As for the check.
    pub fn read_end<'a>(&self, room: &'a mut [u8; Self::END_BYTES]) -> io::Result<&'a [u8]> {
        let at = self.range.start + self.bytes_before_end();
        let bytes = room.get_mut(..(self.range.end - at) as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let read = self.file().read_exact_at(bytes, at);
        // If the file became shorter, this says so.
        self.check()?;
        read.map(|()| &*bytes)
    }

    /// Checks, after some of it was sent, that the file is still the one for which the head was made. It doesn't wait.
    ///
    /// # Errors
    /// The system's error; otherwise [`crate::is_changed`] is true for it.
    pub fn check(&self) -> io::Result<()> {
        store::check(&self.representation, self.file())
    }

    /// Its first bytes have been sent.
    pub fn advance(&mut self, bytes: u64) {
        self.range.start += bytes.min(self.range.end - self.range.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: u64) -> Arc<File> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&vec![1; bytes as usize], 0).unwrap();
        Arc::new(file)
    }

    #[test]
    fn bytes_that_were_read_in_are_in_memory() {
        let file = file(3 * STEP_BYTES + 5);
        // The folder for temporary files may be of another kind, and then nothing is sent so.
        let Some(sendable) = Sendable::of(&file) else { return };
        for range in [0..1, 0..3 * STEP_BYTES + 5, STEP_BYTES + 1..2 * STEP_BYTES] {
            read_in(&file, range.clone()).unwrap();
            assert_eq!(sendable.likely_resident_bytes(&range), range.end - range.start, "{range:?}");
        }
    }

    #[test]
    fn a_call_asks_about_few_steps_and_the_next_one_about_others() {
        let file = file(10 * STEP_BYTES);
        let Some(sendable) = Sendable::of(&file).filter(|sendable| !sendable.is_in_memory) else { return };
        read_in(&file, 0..10 * STEP_BYTES).unwrap();
        let resident = || sendable.likely_resident_bytes(&(5..10 * STEP_BYTES)) + 5;
        assert_eq!([resident(), resident(), resident()], [4, 8, 10].map(|steps| steps * STEP_BYTES));
    }

    #[test]
    fn a_file_that_became_shorter_is_read_as_far_as_it_goes() {
        let file = file(10);
        read_in(&file, 5..READ_IN_BYTES).unwrap();
    }

    #[test]
    fn what_other_programs_make_up_is_not_sent() {
        let file = Arc::new(File::open("/proc/self/status").unwrap());
        assert!(Sendable::of(&file).is_none());
    }
}
