//! How often a thread had to wait.

/// How often this thread has given up its processor to wait since it began: for storage, for a lock, or in a sleep. Times when the kernel
/// let another thread run in its place don't count. Zero if the kernel doesn't tell.
pub fn of_this_thread() -> u64 {
    // SAFETY: all bits zero are a valid `rusage`.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is a valid rusage to write to.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    if result == 0 { usage.ru_nvcsw.max(0) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    #[test]
    fn a_sleep_is_a_wait() {
        let before = super::of_this_thread();
        std::thread::sleep(Duration::from_millis(1));
        assert!(super::of_this_thread() > before);
    }
}
