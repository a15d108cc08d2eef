//! Whether bytes lie in memory, so that reading them doesn't wait for storage; and bringing them there.

use std::io;
use std::ptr;

use rustix::mm::Advice;

use crate::region::{PAGE_BYTES, Region};

/// Pages that are asked about at once.
const PAGES: usize = 256;

impl Region {
    /// Whether all pages that hold `offset..offset + bytes` are in memory. Makes system calls, one for each 256 pages, and
    /// touches nothing.
    ///
    /// The answer is about a moment: the kernel may take a page away at any time. It is always yes for the heap; and for a
    /// caller that neither owns the file nor may write it, since Linux 5.2 keeps from it what others have read.
    ///
    /// # Errors
    /// What `mincore` reports.
    ///
    /// # Panics
    /// If the bytes lie outside the region: a bug of the caller.
    pub fn is_resident(&self, offset: usize, bytes: usize) -> io::Result<bool> {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return Ok(true) };
        let (mut pages, page) = ([0_u8; PAGES], page_bytes());
        let mut at = 0;
        while at < bytes {
            let some = (bytes - at).min(PAGES * page);
            // SAFETY: the span is our own mapping, of which nothing is read; a byte for each page is written.
            if unsafe { libc::mincore(start.wrapping_add(at).cast(), some, pages.as_mut_ptr()) } != 0 {
                return Err(io::Error::last_os_error());
            }
            if pages[..some.div_ceil(page)].iter().any(|byte| byte & 1 == 0) {
                return Ok(false);
            }
            at += some;
        }
        Ok(true)
    }

    /// Reads all pages that hold `offset..offset + bytes` from storage, as far as they aren't in memory, maps them, and lets the
    /// kernel know that they are in use. Waits for it.
    ///
    /// # Errors
    /// What `madvise(MADV_POPULATE_READ)` reports; "bad address" where the file was truncated or its storage failed.
    ///
    /// # Panics
    /// If the bytes lie outside the region: a bug of the caller.
    pub fn prefault(&self, offset: usize, bytes: usize) -> io::Result<()> {
        // In large pieces, not page by page.
        self.will_need(offset, bytes);
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return Ok(()) };
        // SAFETY: as above; populating it changes no byte.
        match unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::LinuxPopulateRead) } {
            // Before Linux 5.14.
            Err(rustix::io::Errno::INVAL) => {}
            other => return Ok(other?),
        }
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: inside our own mapping; what is read is of no interest.
            unsafe { ptr::read_volatile(start.wrapping_add(at)) };
        }
        Ok(())
    }

    /// Begins to read the pages that hold `offset..offset + bytes`, in one go, as far as they aren't in memory. Waits for
    /// nothing; what can't be read shows when it is used.
    ///
    /// # Panics
    /// If the bytes lie outside the region: a bug of the caller.
    pub fn will_need(&self, offset: usize, bytes: usize) {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return };
        // SAFETY: the span is our own mapping; asking for it changes no byte.
        let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::WillNeed) };
    }

    /// Says that the pages that hold `offset..offset + bytes` are used again and again: the kernel keeps those that are, which
    /// it doesn't of the others (since Linux 6.3 it looks for no use in maps that are accessed at random), and reads what
    /// lies around them, too.
    ///
    /// # Panics
    /// If the bytes lie outside the region: a bug of the caller.
    pub fn will_reuse(&self, offset: usize, bytes: usize) {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return };
        // SAFETY: as in `will_need`.
        let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::Normal) };
    }

    /// The whole pages around some bytes; `None` where there is nothing to be asked of the kernel.
    fn pages_of(&self, offset: usize, bytes: usize) -> Option<(*mut u8, usize)> {
        let pointer = self.pointer(offset, bytes);
        if bytes == 0 || self.is_heap() {
            return None;
        }
        let before = pointer.addr() % page_bytes();
        Some((pointer.wrapping_sub(before), before + bytes))
    }
}

/// How often the calling thread had to wait for a page to be read from storage.
pub fn waits_of_thread() -> u64 {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills what is ours.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_majflt as u64
}

/// What the kernel calls a page. May be called by a signal's handler.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers are involved.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_is_in_memory() {
        let region = Region::heap(8192);
        assert!(region.is_resident(100, 8000).unwrap());
        region.prefault(100, 8000).unwrap();
    }

    #[test]
    fn what_was_prefaulted_is_resident_and_the_rest_is_not_said_to_be() {
        const BYTES: usize = 600 << 12;
        // Shared memory reads nothing ahead.
        let Ok(file) = tempfile::tempfile_in("/dev/shm") else { return println!("skipped: no shared memory here") };
        file.set_len(BYTES as u64).unwrap();
        let region = Region::map(&file, BYTES, true).unwrap();
        assert!(!region.is_resident(0, BYTES).unwrap());
        region.prefault(4095, 2).unwrap();
        assert!(region.is_resident(0, 8192).unwrap() && region.is_resident(5, 0).unwrap());
        assert!(!region.is_resident(8191, 2).unwrap());
        region.prefault(0, 599 << 12).unwrap();
        assert!(region.is_resident(0, 599 << 12).unwrap() && !region.is_resident(0, BYTES).unwrap());
    }

    #[test]
    fn what_is_not_in_the_file_is_an_error_and_no_signal() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let region = Region::map(&file, 8192, true).unwrap();
        file.set_len(4096).unwrap();
        assert!(!region.is_resident(0, 8192).unwrap());
        region.prefault(0, 8192).unwrap_err();
    }
}
