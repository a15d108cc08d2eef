//! The heap of the process.

/// Gives free pages of the heap back to the system. The GNU C library keeps most of them for later, however many
/// there are. Takes milliseconds if there are many, and other threads may wait when they allocate meanwhile. Does
/// nothing with another C library.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers, and any thread may call it.
    unsafe {
        libc::malloc_trim(0);
    }
}
