//! Surviving SIGBUS. The kernel sends it to a thread that reads a mapped page which the file no longer has, because
//! somebody truncated the file, or its storage or its memory failed.
//!
//! A **watched** region is in a table that the signal handler reads. On a fault inside of it, the handler marks the
//! region as failed and maps a page of zeros there. The interrupted code continues and finds zeros. Faults anywhere
//! else go to the previous SIGBUS handler.
//!
//! ```text
//!   fault --> in a watched region? --yes--> mark it failed --> map a page of zeros there --> return: the access is repeated
//!                     | no                                              | the kernel refuses
//!                     v                                                 v
//!          the handler before ours; where there was none, the process dies of the signal, as it would have
//! ```
//!
//! The handler takes no lock, allocates nothing, and only makes system calls. A thread that blocks SIGBUS still dies
//! of it; the kernel does that. A handler that is installed later and doesn't call ours replaces it.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, fence};
use std::sync::{Arc, OnceLock};

use libc::{c_int, c_void, siginfo_t};
use rustix::mm::{MapFlags, ProtFlags};

use crate::fork;
use crate::page::page_bytes;

/// A watched region's place in the table. Places are never freed, but used again.
#[derive(Debug)]
struct Place {
    /// Odd while somebody changes the four words below; an exchange gave that thread the right to. The handler skips
    /// a place that is changing. It can't be the region that faults, since a thread that reads a region keeps it
    /// watched. So nobody waits for anybody. A child that was forked in the middle of a change loses that place, and
    /// nothing else.
    version: AtomicUsize,
    /// The region's addresses; both 0 if the place is free.
    start: AtomicUsize,
    end: AtomicUsize,
    writable: AtomicBool,
    /// The region's mark, which lives as long as the region is watched. The handler sets it before it maps the zeros,
    /// so a thread that has read one of the zeros finds it set.
    failed: AtomicPtr<AtomicBool>,
    /// Written before the place is published.
    next: *const Self,
}

// SAFETY: everything except `next` is atomic, `next` never changes, and places live forever.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

static PLACES: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());
static PREVIOUS: OnceLock<Previous> = OnceLock::new();

/// The previous handler of SIGBUS.
#[derive(Debug, Clone, Copy)]
struct Previous {
    handler: usize,
    flags: c_int,
}

/// A region in the table, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    place: &'static Place,
    /// The target of the place's pointer.
    _failed: Arc<AtomicBool>,
}

impl Watch {
    /// Watches mapped addresses, and sets `failed` when bytes of them are lost. Nobody reads the addresses yet.
    pub(crate) fn over(addresses: Range<usize>, writable: bool, failed: Arc<AtomicBool>) -> Self {
        let place = places().find(|place| place.try_take(&addresses, writable, &failed));
        let place = place.unwrap_or_else(|| Place::publish_new(addresses, writable, &failed));
        Self { place, _failed: failed }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let version = self.place.version.load(Relaxed);
        self.place.version.store(version + 1, Relaxed);
        self.place.change(0..0, false, ptr::null_mut(), version + 2);
    }
}

impl Place {
    fn try_take(&self, addresses: &Range<usize>, writable: bool, failed: &Arc<AtomicBool>) -> bool {
        let version = self.version.load(Acquire);
        let free = version.is_multiple_of(2) && self.end.load(Relaxed) == 0;
        if !free || self.version.compare_exchange(version, version + 1, Acquire, Relaxed).is_err() {
            return false;
        }
        self.change(addresses.clone(), writable, Arc::as_ptr(failed).cast_mut(), version + 2);
        true
    }

    /// Called by the thread that made the version odd.
    fn change(&self, addresses: Range<usize>, writable: bool, failed: *mut AtomicBool, version: usize) {
        fence(Release);
        self.start.store(addresses.start, Relaxed);
        self.end.store(addresses.end, Relaxed);
        self.writable.store(writable, Relaxed);
        self.failed.store(failed, Relaxed);
        self.version.store(version, Release);
    }

    fn publish_new(addresses: Range<usize>, writable: bool, failed: &Arc<AtomicBool>) -> &'static Self {
        let place = Box::leak(Box::new(Self {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(addresses.start),
            end: AtomicUsize::new(addresses.end),
            writable: AtomicBool::new(writable),
            failed: AtomicPtr::new(Arc::as_ptr(failed).cast_mut()),
            next: PLACES.load(Acquire),
        }));
        let new: *mut Self = place;
        while let Err(first) = PLACES.compare_exchange(place.next.cast_mut(), new, Release, Acquire) {
            place.next = first;
        }
        place
    }

    /// The protection of the map at `address` and the region's mark, if the address lies in this region.
    fn region_at(&self, address: usize) -> Option<(ProtFlags, *mut AtomicBool)> {
        let version = self.version.load(Acquire);
        let inside = (self.start.load(Relaxed)..self.end.load(Relaxed)).contains(&address);
        let (writable, failed) = (self.writable.load(Relaxed), self.failed.load(Relaxed));
        fence(Acquire);
        let stood_still = version.is_multiple_of(2) && self.version.load(Relaxed) == version;
        let protection = if writable { ProtFlags::READ | ProtFlags::WRITE } else { ProtFlags::READ };
        (inside && stood_still).then_some((protection, failed))
    }
}

fn places() -> impl Iterator<Item = &'static Place> {
    // SAFETY: places are published complete, and live forever.
    let first = unsafe { PLACES.load(Acquire).cast_const().as_ref() };
    // SAFETY: as above.
    std::iter::successors(first, |place| unsafe { place.next.as_ref() })
}

/// Installs the handler, once in a process. Forked children have it, too.
///
/// # Errors
/// What `sigaction` reports; no error is known.
pub fn install() -> io::Result<()> {
    // A child that is forked meanwhile has all of it or nothing.
    let _gate = fork::gate();
    if PREVIOUS.get().is_some() {
        return Ok(());
    }
    let before = sigaction(None)?;
    // Before the handler can run, since it reads this.
    let previous = PREVIOUS.get_or_init(|| Previous { handler: before.sa_sigaction, flags: before.sa_flags });
    let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = on_sigbus;
    // Keeps the flags that the previous handler asked for.
    let kept = previous.flags & (libc::SA_NODEFER | libc::SA_RESTART);
    let ours = libc::sigaction {
        sa_sigaction: handler as usize,
        sa_flags: libc::SA_SIGINFO | libc::SA_ONSTACK | kept,
        ..before
    };
    sigaction(Some(&ours)).map(drop)
}

/// Sets the action for SIGBUS, if one is given. Returns the previous action.
fn sigaction(new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: all zeros are a valid sigaction.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    let new = new.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `new` is null, or a valid action whose handler lives as long as the program; `old` is written to.
    match unsafe { libc::sigaction(libc::SIGBUS, new, &raw mut old) } {
        0 => Ok(old),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_sigbus(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: this is the address of the thread's own errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // SAFETY: the kernel gives the handler of a SA_SIGINFO action a valid siginfo.
    let code = unsafe { (*info).si_code };
    // SAFETY: as above; these two codes come with an address.
    let survived =
        matches!(code, libc::BUS_ADRERR | libc::BUS_MCEERR_AR) && survive(unsafe { (*info).si_addr() } as usize);
    if !survived {
        pass_on(signal, info, context, code);
    }
    // SAFETY: as above.
    unsafe { *errno = saved }
}

/// Makes the page at `address` readable as zeros, if it belongs to a watched region.
fn survive(address: usize) -> bool {
    let Some((protection, failed)) = places().find_map(|place| place.region_at(address)) else { return false };
    // SAFETY: the place didn't change and holds the address, so it belongs to the region that the interrupted thread
    // reads. The region stays watched meanwhile, and its mark lives as long.
    unsafe { &*failed }.store(true, Relaxed);
    fence(Release);
    let page_bytes = page_bytes();
    let page = address - address % page_bytes;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the page lies in the region's own mapping, which stays as long as somebody reads it, as the interrupted
    // thread does. Nobody else can read the page that is replaced, since it no longer exists.
    unsafe { rustix::mm::mmap_anonymous(ptr::with_exposed_provenance_mut(page), page_bytes, protection, flags) }.is_ok()
}

/// Passes on a signal that isn't ours: to the previous handler, or to the kernel, as if our handler didn't exist.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void, code: c_int) {
    let Some(&Previous { handler, flags }) = PREVIOUS.get() else { return };
    // Sent by somebody, not caused by a fault of this thread.
    let sent = code <= 0 || code == libc::BUS_MCEERR_AO;
    match handler {
        libc::SIG_IGN if sent => return,
        // A fault can't be ignored: the kernel ends the process.
        libc::SIG_DFL | libc::SIG_IGN => {
            handle_by_default();
            if sent {
                // SAFETY: no pointers are involved. The signal arrives after this handler has returned.
                unsafe { libc::raise(signal) };
            }
            return;
        }
        _ => {}
    }
    if flags & libc::SA_RESETHAND != 0 {
        handle_by_default();
    }
    if flags & libc::SA_SIGINFO != 0 {
        // SAFETY: with this flag, the handler is a function of this type.
        let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: without it, the handler is a function of this type.
        let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

fn handle_by_default() {
    // SAFETY: all zeros are a valid sigaction: SIG_DFL without flags.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    const { assert!(libc::SIG_DFL == 0) };
    // It can't fail, since the signal exists.
    let _ = sigaction(Some(&default));
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use crate::Region;

    const BYTES: usize = 16 << 12;

    fn truncated(writable: bool) -> Region {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES as u64).unwrap();
        let mut region = Region::map(&file, BYTES, writable).unwrap();
        region.survive_sigbus().unwrap();
        assert!(!region.has_failed());
        file.set_len(8 << 12).unwrap();
        region
    }

    #[test]
    fn truncated_bytes_read_as_zeros_and_mark_the_region() {
        let region = truncated(true);
        assert_eq!(region.word(0).load(Relaxed), 0);
        assert!(!region.has_failed());
        region.word(9 << 12).store(7, Relaxed);
        assert!(region.has_failed());
        assert_eq!(region.word(9 << 12).load(Relaxed), 7);
        assert_eq!(region.word(BYTES - 8).load(Relaxed), 0);
    }

    #[test]
    fn a_map_for_reading_only_stays_one() {
        let region = truncated(false);
        assert_eq!(region.word(9 << 12).load(Relaxed), 0);
        assert!(region.has_failed());
    }

    #[test]
    fn the_next_region_at_the_same_place_is_intact() {
        for round in 0..100 {
            let (one, other) = (truncated(true), truncated(true));
            assert_eq!(one.word(8 << 12).load(Relaxed), 0);
            assert_eq!((one.has_failed(), other.has_failed()), (true, false), "round {round}");
        }
    }

    #[test]
    fn regions_come_and_go_in_many_threads_while_others_fault() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let region = truncated(true);
                        for page in 0..16 {
                            assert_eq!(region.word(page << 12).load(Relaxed), 0);
                        }
                        assert!(region.has_failed());
                    }
                });
            }
        });
    }
}
