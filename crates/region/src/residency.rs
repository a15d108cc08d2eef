//! Whether bytes are in memory, so that reading them doesn't wait for storage; and reading them in.

use std::io;
use std::ptr;

use rustix::mm::Advice;

use crate::page::page_bytes;
use crate::region::Region;

/// How many pages one system call asks about.
const PAGES: usize = 256;
/// How much is asked for by one call. For one, the kernel reads at most as much as it reads ahead of a file: 128 KiB unless an
/// administrator has changed that.
const PIECE_BYTES: usize = 128 << 10;

impl Region {
    /// Whether all pages of `offset..offset + bytes` are in memory. Makes one system call for each 256 pages, and
    /// touches nothing.
    ///
    /// The answer holds for a moment, since the kernel may take a page away at any time. It is always true for the
    /// heap. It is also true for a caller that neither owns the file nor may write it: since Linux 5.2, the kernel
    /// hides from it what others have read.
    ///
    /// # Errors
    /// What `mincore` reports.
    ///
    /// # Panics
    /// If the bytes lie outside the region, which is a bug of the caller.
    pub fn is_resident(&self, offset: usize, bytes: usize) -> io::Result<bool> {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return Ok(true) };
        let (mut pages, page) = ([0_u8; PAGES], page_bytes());
        let mut at = 0;
        while at < bytes {
            let some = (bytes - at).min(PAGES * page);
            // SAFETY: the span is our own mapping, and nothing of it is read. A byte for each page is written.
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

    /// Reads all pages of `offset..offset + bytes` from storage, as far as they aren't in memory. Maps them, tells
    /// the kernel that they are in use, and waits for all this.
    ///
    /// # Errors
    /// What `madvise(MADV_POPULATE_READ)` reports: "bad address" if the file was truncated or its storage failed.
    ///
    /// # Panics
    /// If the bytes lie outside the region, which is a bug of the caller.
    pub fn prefault(&self, offset: usize, bytes: usize) -> io::Result<()> {
        // Reads in large pieces, not page by page.
        self.will_need(offset, bytes);
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return Ok(()) };
        // SAFETY: as above; populating changes no byte.
        match unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::LinuxPopulateRead) } {
            // Linux before 5.14.
            Err(rustix::io::Errno::INVAL) => {}
            other => return Ok(other?),
        }
        for at in (0..bytes).step_by(page_bytes()) {
            // SAFETY: inside our own mapping; the value isn't used.
            unsafe { ptr::read_volatile(start.wrapping_add(at)) };
        }
        Ok(())
    }

    /// Starts to read the pages of `offset..offset + bytes` in one go, as far as they aren't in memory. Waits for
    /// nothing. An error shows when the bytes are used.
    ///
    /// # Panics
    /// If the bytes lie outside the region, which is a bug of the caller.
    pub fn will_need(&self, offset: usize, bytes: usize) {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return };
        for at in (0..bytes).step_by(PIECE_BYTES) {
            // SAFETY: the span is our own mapping, and the request changes no byte.
            let _ = unsafe {
                rustix::mm::madvise(start.wrapping_add(at).cast(), (bytes - at).min(PIECE_BYTES), Advice::WillNeed)
            };
        }
    }

    /// Tells the kernel that the pages of `offset..offset + bytes` are used again and again. It then keeps those that
    /// are used, and also reads what lies around them. It doesn't keep the others: since Linux 6.3, it ignores uses
    /// in maps that are accessed at random.
    ///
    /// # Panics
    /// If the bytes lie outside the region, which is a bug of the caller.
    pub fn will_reuse(&self, offset: usize, bytes: usize) {
        let Some((start, bytes)) = self.pages_of(offset, bytes) else { return };
        // SAFETY: as in `will_need`.
        let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::Normal) };
    }

    /// The whole pages around some bytes; `None` if there is nothing to ask the kernel about.
    fn pages_of(&self, offset: usize, bytes: usize) -> Option<(*mut u8, usize)> {
        let pointer = self.pointer(offset, bytes);
        if bytes == 0 || self.is_heap() {
            return None;
        }
        let before = pointer.addr() % page_bytes();
        Some((pointer.wrapping_sub(before), before + bytes))
    }
}

/// How often the calling thread has waited for a page to be read from storage.
pub fn waits_of_thread() -> u64 {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills a struct of ours.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_majflt as u64
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
    fn prefaulted_bytes_are_resident_and_the_others_are_not() {
        const BYTES: usize = 600 << 12;
        // The kernel reads nothing ahead in shared memory.
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
    fn bytes_missing_from_the_file_give_an_error_and_no_signal() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let region = Region::map(&file, 8192, true).unwrap();
        file.set_len(4096).unwrap();
        assert!(!region.is_resident(0, 8192).unwrap());
        region.prefault(0, 8192).unwrap_err();
    }
}
