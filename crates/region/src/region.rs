//! Regions: mapped bytes, addressed by offset.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags};

use crate::file;
use crate::page::PAGE_BYTES;
use crate::sigbus::{self, Watch};

/// What one entry in the middle level of a page table maps (x86-64, and aarch64 with 4 KiB pages).
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// How much of a region is populated by one call.
const WINDOW_BYTES: usize = 8 << 20;

/// A span of bytes that other processes may map too.
///
/// Words are returned as atomics, since any process may change them at any time. Plain bytes are reached through raw
/// pointers, or through [`Region::bytes`], whose caller guarantees that nobody writes them meanwhile. Every access is
/// checked against the region's length: an offset read from an untrusted file may cause a panic, but never an access
/// outside of the map.
#[derive(Debug)]
pub struct Region {
    base: NonNull<u8>,
    bytes: usize,
    backing: Backing,
    /// Whether bytes were lost, as found by the SIGBUS handler or the region's user. Never cleared.
    failed: Arc<AtomicBool>,
    /// `Some` if a lost page must not end the process.
    watch: Option<Watch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Backing {
    /// `stored`: the kernel may have to read its pages from storage.
    Mapped {
        writable: bool,
        stored: bool,
    },
    Heap,
}

// SAFETY: the region owns its mapping. Shared access goes through atomics, or through unsafe functions whose callers
// guarantee that plain bytes are not written while they are read.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `bytes` bytes of `file`, shared with every other process that maps it.
    ///
    /// **Hazard**: if somebody truncates the file, or its storage fails, the next access to a missing page raises
    /// SIGBUS, unless the region survives it ([`Region::survive_sigbus`]). Eyewall never truncates a file, and
    /// creates it with its blocks allocated.
    ///
    /// # Errors
    /// What `mmap` reports, for instance no memory, or a descriptor without the needed access.
    pub fn map(file: &File, bytes: usize, writable: bool) -> io::Result<Self> {
        let mut protection = ProtFlags::READ;
        if writable {
            protection |= ProtFlags::WRITE;
        }
        let base = Self::reserve(bytes)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the mapping replaces address space that was just reserved for it.
        let mapped = unsafe { rustix::mm::mmap(base.as_ptr().cast(), bytes, protection, flags, file, 0) };
        if let Err(error) = mapped {
            // SAFETY: the reservation is ours and unused.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
            return Err(error.into());
        }
        // Look-ups are random. What the kernel would read around a missing page (megabytes, on some disks) is
        // useless, and takes memory from what is used. Callers that need a range in memory ask for it
        // (`residency.rs`).
        // SAFETY: the mapping is ours, and advice changes none of its bytes. If the kernel ignores it, only speed is
        // lost.
        let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), bytes, Advice::Random) };
        let backing = Backing::Mapped { writable, stored: !file::is_in_memory(file) };
        Ok(Self { base, bytes, backing, failed: Arc::default(), watch: None })
    }

    /// From now on a missing page reads as zeros, and the first access to it marks this region as failed for good,
    /// instead of ending the process. Installs a SIGBUS handler in this process ([`sigbus::install`]).
    ///
    /// # Errors
    /// Those of [`sigbus::install`].
    pub fn survive_sigbus(&mut self) -> io::Result<()> {
        if let Backing::Mapped { writable, .. } = self.backing
            && self.watch.is_none()
        {
            sigbus::install()?;
            let start = self.base.as_ptr().expose_provenance();
            self.watch = Some(Watch::over(start..start + self.bytes, writable, Arc::clone(&self.failed)));
        }
        Ok(())
    }

    /// Whether bytes of the region were lost. If so, any byte read so far may have been a zero in place of a lost one
    /// ([`Region::survive_sigbus`]), or be wrong for a reason that the region's user has found
    /// ([`Region::mark_failed`]).
    #[inline]
    pub fn has_failed(&self) -> bool {
        // Ordered after the reads that the caller asks about.
        fence(Acquire);
        self.failed.load(Relaxed)
    }

    /// Marks the region as failed for good, because its user has found that somebody else overwrote it.
    pub fn mark_failed(&self) {
        self.failed.store(true, Release);
    }

    /// Reserves address space that starts at the boundary of a huge page. Only there can the kernel map a file with
    /// huge pages, which saves most of a random read's page walk.
    fn reserve(bytes: usize) -> io::Result<NonNull<u8>> {
        let whole = bytes.next_multiple_of(PAGE_BYTES);
        let slack = HUGE_PAGE_BYTES;
        // SAFETY: a fresh mapping at an address that the kernel chooses aliases nothing of ours.
        let start = unsafe {
            rustix::mm::mmap_anonymous(ptr::null_mut(), whole + slack, ProtFlags::empty(), MapFlags::PRIVATE)?
        };
        let start: *mut u8 = start.cast();
        let before = start.align_offset(HUGE_PAGE_BYTES).min(slack);
        let base = start.wrapping_add(before);
        // SAFETY: both spans lie in the reservation and outside of `base..base + whole`.
        unsafe {
            if before > 0 {
                rustix::mm::munmap(start.cast(), before)?;
            }
            if before < slack {
                rustix::mm::munmap(base.wrapping_add(whole).cast(), slack - before)?;
            }
        }
        NonNull::new(base).ok_or_else(|| io::Error::other("mmap gave address 0"))
    }

    /// Zeroed heap memory instead of a file, for models, tests and single processes.
    pub fn heap(bytes: usize) -> Self {
        let layout = Self::heap_layout(bytes);
        // SAFETY: the layout's size is above zero, since `heap_layout` makes it at least a page.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else { handle_alloc_error(layout) };
        Self { base, bytes, backing: Backing::Heap, failed: Arc::default(), watch: None }
    }

    #[expect(clippy::expect_used, reason = "no allocator accepts a length above isize::MAX")]
    fn heap_layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes.max(PAGE_BYTES), PAGE_BYTES).expect("a length below isize::MAX")
    }

    pub(crate) fn is_heap(&self) -> bool {
        self.backing == Backing::Heap
    }

    /// How many bytes the region spans.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the region spans no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The 64-bit word at `offset`.
    ///
    /// # Panics
    /// If the word isn't aligned or lies outside the region, which is a bug of the caller.
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        self.check(offset, 8, 8);
        // SAFETY: in bounds and aligned (checked above). The mapping lives as long as `self`, and all access to words
        // is atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// The 32-bit word at `offset`. Panics as [`Region::word`] does.
    #[inline]
    pub fn half(&self, offset: usize) -> &AtomicU32 {
        self.check(offset, 4, 4);
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// Eight 64-bit words that share one cache line.
    ///
    /// # Panics
    /// If `offset` isn't a multiple of 64 or the line lies outside the region, which is a bug of the caller.
    #[inline]
    pub fn line(&self, offset: usize) -> &[AtomicU64; 8] {
        self.check(offset, 64, 64);
        // SAFETY: as in `word`; an array of eight atomics has the same layout.
        unsafe { &*self.base.as_ptr().add(offset).cast::<[AtomicU64; 8]>() }
    }

    /// `N` consecutive 64-bit words.
    ///
    /// # Panics
    /// If they aren't aligned or lie outside the region, which is a bug of the caller.
    #[inline]
    pub fn words<const N: usize>(&self, offset: usize) -> &[AtomicU64; N] {
        self.check(offset, 8 * N, 8);
        // SAFETY: as in `word`; an array of atomics has the same layout.
        unsafe { &*self.base.as_ptr().add(offset).cast::<[AtomicU64; N]>() }
    }

    /// `count` consecutive 32-bit words.
    ///
    /// # Panics
    /// If they aren't aligned or lie outside the region, which is a bug of the caller.
    #[inline]
    pub fn halves(&self, offset: usize, count: usize) -> &[AtomicU32] {
        self.check(offset, 4 * count, 4);
        // SAFETY: as in `word`; a slice of atomics has the same layout.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast(), count) }
    }

    /// The address of the `bytes` bytes at `offset`.
    ///
    /// # Panics
    /// If they lie outside the region, which is a bug of the caller.
    #[inline]
    pub fn pointer(&self, offset: usize, bytes: usize) -> *mut u8 {
        self.check(offset, bytes, 1);
        // SAFETY: in bounds (checked above).
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// The address of `offset`, unchecked. For an offset that the caller has checked once and uses often.
    ///
    /// # Safety
    /// `offset` lies inside the region.
    #[inline]
    pub unsafe fn address(&self, offset: usize) -> *mut u8 {
        debug_assert!(offset < self.bytes);
        // SAFETY: the caller has checked the offset.
        unsafe { self.base.as_ptr().add(offset) }
    }

    /// Whether the kernel may have to read pages from storage. That isn't so for the heap and for shared memory.
    #[inline]
    pub fn is_stored(&self) -> bool {
        matches!(self.backing, Backing::Mapped { stored: true, .. })
    }

    /// The `bytes` bytes at `offset`, as a slice.
    ///
    /// # Safety
    /// Nobody, in any process, writes them while the slice lives.
    ///
    /// # Panics
    /// If they lie outside the region, which is a bug of the caller.
    #[inline]
    pub unsafe fn bytes(&self, offset: usize, bytes: usize) -> &[u8] {
        // SAFETY: in bounds; the caller guarantees that the bytes stay unchanged.
        unsafe { std::slice::from_raw_parts(self.pointer(offset, bytes), bytes) }
    }

    /// Stores `from` at `offset`.
    ///
    /// # Safety
    /// Nobody, in any process, reads or writes those bytes meanwhile, and the map is writable.
    ///
    /// # Panics
    /// If they lie outside the region, which is a bug of the caller.
    #[inline]
    pub unsafe fn store(&self, offset: usize, from: &[u8]) {
        let to = self.pointer(offset, from.len());
        // SAFETY: in bounds. The caller guarantees that nobody else touches the target, so it can't overlap `from`
        // either.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) }
    }

    /// Lets `fill` write the `bytes` bytes at `offset` in place. It sees what they were before.
    ///
    /// # Safety
    /// As for [`Region::store`].
    ///
    /// # Panics
    /// If they lie outside the region, which is a bug of the caller.
    #[inline]
    pub unsafe fn fill<R>(&self, offset: usize, bytes: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let to = self.pointer(offset, bytes);
        // SAFETY: in bounds; mapped bytes are always initialized; the caller guarantees that nobody else touches
        // them.
        fill(unsafe { std::slice::from_raw_parts_mut(to, bytes) })
    }

    /// Stores `bytes` zeros at `offset`.
    ///
    /// # Safety
    /// As for [`Region::store`].
    ///
    /// # Panics
    /// If they lie outside the region, which is a bug of the caller.
    pub unsafe fn zero(&self, offset: usize, bytes: usize) {
        let to = self.pointer(offset, bytes);
        // SAFETY: in bounds; the caller guarantees that nobody else touches the target.
        unsafe { ptr::write_bytes(to, 0, bytes) }
    }

    /// Prefetches the cache line at `offset`. Has no effect if it lies outside.
    #[inline]
    pub fn prefetch(&self, offset: usize) {
        let address = self.base.as_ptr().wrapping_add(offset);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a prefetch never faults and has no architectural effect, wherever it points.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast::<i8>());
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// Maps every page now, with huge pages if possible, so that later reads cause no page faults. Reads pages of a
    /// file from storage if they aren't cached.
    ///
    /// # Errors
    /// What `madvise(MADV_POPULATE_READ)` reports; before Linux 5.14 "invalid argument".
    pub fn populate(&self) -> io::Result<()> {
        if self.is_heap() {
            return Ok(());
        }
        // Collapses shared memory into huge pages (Linux 6.1). Where that isn't possible, the error costs nothing but
        // speed.
        // SAFETY: the span is our own mapping, and collapsing changes neither contents nor addresses.
        let _ = unsafe { libc::madvise(self.base.as_ptr().cast(), self.bytes, libc::MADV_COLLAPSE) };
        // Reads in large pieces, not page by page, and one window ahead: more could be gone again before it is mapped.
        for at in (0..self.bytes).step_by(WINDOW_BYTES) {
            let bytes = (self.bytes - at).min(WINDOW_BYTES);
            self.will_need(at, (self.bytes - at).min(2 * WINDOW_BYTES));
            // SAFETY: as above.
            unsafe { rustix::mm::madvise(self.pointer(at, bytes).cast(), bytes, Advice::LinuxPopulateRead)? };
        }
        Ok(())
    }

    /// Maps the pages of `offset..offset + bytes` for writing, so that writes don't fault page by page. If the kernel
    /// can't (before Linux 5.14), or the storage fails, does nothing; a writer then meets the fault.
    pub fn map_for_writing(&self, offset: usize, bytes: usize) {
        let start = offset - offset % PAGE_BYTES;
        let end = (offset + bytes).next_multiple_of(PAGE_BYTES).min(self.bytes);
        if self.is_heap() || end <= start {
            return;
        }
        let pointer = self.pointer(start, end - start);
        // SAFETY: the span is our own mapping, and its contents stay unchanged.
        let _ = unsafe { rustix::mm::madvise(pointer.cast(), end - start, Advice::LinuxPopulateWrite) };
    }

    /// Gives the blocks of whole pages within `offset..offset + bytes` back to storage. They then read as zeros.
    ///
    /// # Errors
    /// What `madvise(MADV_REMOVE)` reports. Some file systems can't do this, and no read-only map can.
    pub fn give_back(&self, offset: usize, bytes: usize) -> io::Result<()> {
        let start = offset.next_multiple_of(PAGE_BYTES);
        let end = (offset + bytes) - (offset + bytes) % PAGE_BYTES;
        if self.backing == Backing::Heap || end <= start {
            return Ok(());
        }
        let pointer = self.pointer(start, end - start);
        // SAFETY: the span is our own mapping, and by calling, the caller says that nobody relies on its content.
        unsafe { rustix::mm::madvise(pointer.cast(), end - start, Advice::LinuxRemove)? };
        Ok(())
    }

    /// Writes the pages of `offset..offset + bytes` to storage, and waits for it.
    ///
    /// # Errors
    /// The storage's I/O error.
    pub fn sync(&self, offset: usize, bytes: usize) -> io::Result<()> {
        if self.is_heap() || bytes == 0 {
            return Ok(());
        }
        let start = offset - offset % PAGE_BYTES;
        let pointer = self.pointer(start, offset - start + bytes);
        // SAFETY: the span is our own mapping, and syncing changes no byte of it.
        unsafe { rustix::mm::msync(pointer.cast(), offset - start + bytes, MsyncFlags::SYNC)? };
        Ok(())
    }

    #[inline]
    fn check(&self, offset: usize, bytes: usize, align: usize) {
        assert!(
            bytes <= self.bytes && offset <= self.bytes - bytes && offset.is_multiple_of(align),
            "offset {offset} + {bytes} of a region of {} bytes",
            self.bytes
        );
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Before another mapping can get the addresses.
        self.watch = None;
        match self.backing {
            Backing::Mapped { .. } => {
                // SAFETY: the mapping is ours, and nothing borrowed from `self` outlives it.
                let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
            }
            Backing::Heap => {
                // SAFETY: allocated in `heap` with this layout.
                unsafe { dealloc(self.base.as_ptr(), Self::heap_layout(self.bytes)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heap_region_is_zeroed_and_keeps_what_is_stored() {
        let region = Region::heap(PAGE_BYTES);
        assert_eq!(region.word(8).load(Relaxed), 0);
        // SAFETY: only this test uses the region.
        unsafe { region.store(16, b"eye") };
        // SAFETY: as above.
        assert_eq!(unsafe { region.bytes(16, 3) }, b"eye");
        assert!(!region.is_empty());
    }

    /// How many of a region's pages this process has mapped; `None` if the kernel doesn't tell.
    fn mapped_pages(region: &Region) -> Option<usize> {
        use std::os::unix::fs::FileExt;
        let mut entries = vec![0_u8; region.len() / PAGE_BYTES * 8];
        let at = region.base.as_ptr() as usize / PAGE_BYTES * 8;
        File::open("/proc/self/pagemap").ok()?.read_exact_at(&mut entries, at as u64).ok()?;
        Some(entries.chunks(8).filter(|entry| entry[7] & 0x80 != 0).count())
    }

    #[test]
    fn pages_are_mapped_for_writing_beforehand() {
        let file = File::from(rustix::fs::memfd_create("mapped", rustix::fs::MemfdFlags::empty()).unwrap());
        file.set_len(16 * PAGE_BYTES as u64).unwrap();
        let region = Region::map(&file, 16 * PAGE_BYTES, true).unwrap();
        let before = mapped_pages(&region);
        region.map_for_writing(PAGE_BYTES + 1, 3 * PAGE_BYTES);
        let after = mapped_pages(&region);
        // Kernels before 5.14 can't do this, and hardened ones don't tell.
        assert!(before == after || (before, after) == (Some(0), Some(4)), "{before:?}, {after:?}");
        region.map_for_writing(15 * PAGE_BYTES, 2 * PAGE_BYTES);
        Region::map(&file, PAGE_BYTES, false).unwrap().map_for_writing(0, 1);
        Region::heap(PAGE_BYTES).map_for_writing(0, 1);
        assert_eq!(region.word(0).load(Relaxed), 0);
    }

    #[test]
    fn two_maps_of_one_file_see_each_other() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let one = Region::map(&file, 8192, true).unwrap();
        let two = Region::map(&file, 8192, false).unwrap();
        one.half(4096).store(7, Relaxed);
        assert_eq!(two.half(4096).load(Relaxed), 7);
        one.sync(4096, 4).unwrap();
    }

    #[test]
    fn whole_pages_are_given_back_and_are_zero_when_they_have_blocks_again() {
        use std::os::unix::fs::MetadataExt;
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(4 * PAGE_BYTES as u64).unwrap();
        crate::file::give_blocks(&file, 0, 4 * PAGE_BYTES as u64).unwrap();
        let region = Region::map(&file, 4 * PAGE_BYTES, true).unwrap();
        for page in 0..4 {
            region.word(page * PAGE_BYTES).store(7, Relaxed);
        }
        let before = file.metadata().unwrap().blocks();
        region.give_back(8, 3 * PAGE_BYTES).unwrap();
        assert_eq!(before - file.metadata().unwrap().blocks(), 2 * PAGE_BYTES as u64 / 512);
        crate::file::give_blocks(&file, 0, 4 * PAGE_BYTES as u64).unwrap();
        assert_eq!([0, 1, 2, 3].map(|page| region.word(page * PAGE_BYTES).load(Relaxed)), [7, 0, 0, 7]);
        assert_eq!(before, file.metadata().unwrap().blocks());
    }

    #[test]
    #[should_panic(expected = "of a region of")]
    fn an_offset_outside_is_refused() {
        Region::heap(PAGE_BYTES).word(PAGE_BYTES);
    }

    #[test]
    #[should_panic(expected = "of a region of")]
    fn an_offset_that_would_overflow_is_refused() {
        Region::heap(PAGE_BYTES).pointer(usize::MAX - 3, 8);
    }
}
