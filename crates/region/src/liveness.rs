//! Locks that live exactly as long as their process.
//!
//! A process is alive while it holds an open-file-description lock (fcntl(2), `F_OFD_SETLK`) on a byte that
//! represents it. The description is private, and only one mapped page keeps it open:
//!
//! - Its descriptor is closed at once, so `close_range` over all descriptors takes nothing away.
//! - The page is `MADV_DONTFORK`, so a forked child doesn't keep a dead parent's lock.
//! - SIGKILL, a crash and `exec` all unmap the page, and the kernel drops the lock.
//!
//! Unlike `kill(pid, 0)`, this works across PID namespaces and isn't confused by reused process IDs. The locked bytes
//! lie far beyond the end of any file, so locking them touches no data.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::fork::{self, Private};
use crate::page::PAGE_BYTES;

/// The first byte that locks use, beyond the size of any file.
const LOCKS_START: i64 = 1 << 61;

/// This process's lock on one byte. Dropping it releases the byte.
#[derive(Debug)]
pub struct Alive {
    page: NonNull<u8>,
}

// SAFETY: the page is never read or written; it only keeps the file description open.
unsafe impl Send for Alive {}
// SAFETY: as above.
unsafe impl Sync for Alive {}

impl Alive {
    /// Turns a lock that `file` holds into one that lasts until this value is dropped or the process ends.
    ///
    /// # Errors
    /// What `mmap` and `madvise` report.
    pub fn keep(file: Private) -> io::Result<Self> {
        // No child may be forked while the page is mapped and not marked yet.
        let gate = fork::gate();
        // SAFETY: a fresh mapping at an address that the kernel chooses, and it is never accessed.
        let page =
            unsafe { rustix::mm::mmap(ptr::null_mut(), PAGE_BYTES, ProtFlags::READ, MapFlags::SHARED, &*file, 0)? };
        let page = NonNull::new(page.cast()).ok_or_else(|| io::Error::other("mmap gave address 0"))?;
        let alive = Self { page };
        // SAFETY: the page is our own mapping.
        unsafe { rustix::mm::madvise(page.as_ptr().cast(), PAGE_BYTES, Advice::LinuxDontFork)? };
        drop(gate);
        drop(file);
        Ok(alive)
    }

    /// Forgets a lock that was inherited across `fork`. The page isn't mapped in this process, and its address may
    /// belong to something else by now.
    pub fn forget_inherited(self) {
        std::mem::forget(self);
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // SAFETY: mapped in `keep`, unmapped nowhere else.
        let _ = unsafe { rustix::mm::munmap(self.page.as_ptr().cast(), PAGE_BYTES) };
    }
}

/// Tries to lock `byte` for writing through `file`'s description. Returns false if another description holds it.
///
/// # Errors
/// `ENOLCK`, or `EBADF` if `file` isn't open for writing.
pub fn try_lock(file: &File, byte: u32) -> io::Result<bool> {
    let mut lock = flock(libc::F_WRLCK, byte, 1);
    match fcntl(file, libc::F_OFD_SETLK, &mut lock) {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Locks `byte` for writing, and waits for a holder.
///
/// # Errors
/// Those of [`try_lock`].
pub fn lock(file: &File, byte: u32) -> io::Result<()> {
    loop {
        let mut lock = flock(libc::F_WRLCK, byte, 1);
        match fcntl(file, libc::F_OFD_SETLKW, &mut lock) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Whether a description other than `file`'s holds any of the `count` bytes from `byte` on.
///
/// # Errors
/// What `fcntl` reports.
pub fn is_locked(file: &File, byte: u32, count: u32) -> io::Result<bool> {
    let mut lock = flock(libc::F_WRLCK, byte, count);
    fcntl(file, libc::F_OFD_GETLK, &mut lock)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn flock(kind: i32, byte: u32, count: u32) -> libc::flock {
    libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: LOCKS_START + i64::from(byte),
        l_len: i64::from(count),
        l_pid: 0,
    }
}

fn fcntl(file: &File, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: the descriptor is open during the call, and `lock` is a valid flock to read and write.
    if unsafe { libc::fcntl(file.as_raw_fd(), command, ptr::from_mut(lock)) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Ends this process as `kill -9` would: nothing runs any more, not even destructors.
pub fn kill_this_process() -> ! {
    // SAFETY: no pointers are involved, and SIGKILL can't be caught. `raise` hits this thread first; after `kill` it
    // might run on for a moment.
    unsafe { libc::raise(libc::SIGKILL) };
    std::process::abort()
}

/// Stops this process, with all its threads, until somebody sends it SIGCONT.
pub fn stop_this_process() {
    // SAFETY: no pointers are involved. As above, this thread doesn't run on.
    unsafe { libc::raise(libc::SIGSTOP) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
    }

    #[test]
    fn a_kept_lock_outlives_its_descriptor_and_ends_with_its_guard() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let holder = Private::open(|| Ok(open(&path))).unwrap();
        assert!(try_lock(&holder, 3).unwrap());
        let alive = Alive::keep(holder).unwrap();
        let other = open(&path);
        assert!(is_locked(&other, 3, 1).unwrap());
        assert!(is_locked(&other, 0, 8).unwrap());
        assert!(!is_locked(&other, 4, 8).unwrap());
        assert!(!try_lock(&other, 3).unwrap());
        drop(alive);
        assert!(!is_locked(&other, 3, 1).unwrap());
        lock(&other, 3).unwrap();
    }
}
