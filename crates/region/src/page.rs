//! The size of a page.

/// The alignment of every region's first byte: one page.
pub const PAGE_BYTES: usize = 4096;

/// The kernel's page size. A signal handler may call this.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: no pointers are involved.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(PAGE_BYTES)
}
