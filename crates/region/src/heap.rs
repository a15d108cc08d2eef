//! The memory of the process itself.

/// Gives the pages of the heap that hold nothing back to the system. The C library of GNU keeps most of them for later, however many
/// there are. It takes milliseconds where there are many, and other threads may wait for it when they allocate. With another C
/// library this does nothing.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it takes no pointers, and may be called by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
