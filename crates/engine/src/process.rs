//! Processes: who is attached, who is alive, and cleaning up after the dead.
//!
//! A process is in the volume by a **process slot**: it holds the slot's byte lock ([`eyewall_region::liveness`]) and
//! a fresh incarnation. Everything that it owns (locks, pending records, claims, thread slots) names both. A process
//! that claims a slot first voids what the former owner left, and only then raises the incarnation. It does both
//! under the byte lock.
//!
//! ```text
//!   free --lock byte--> claimed --void old pins, raise incarnation--> alive --exit, SIGKILL--> dead
//!    ^                                                                                           |
//!    +-------------------------- void pins and thread slots, under the byte lock ----------------+
//! ```

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, Instant};
use std::{io, process};

use eyewall_region::file::{Identity, Kept};
use eyewall_region::fork::Private;
use eyewall_region::liveness::{self, Alive};
use eyewall_region::{Region, clock, file, fork};

use crate::format::layout::Layout;
use crate::format::owner::{INCARNATION_MASK, Owner, PROCESSES_MAX};
use crate::seam;

/// The byte to lock while a process attaches or leaves. The bytes after it belong to process slots.
const ATTACH_BYTE: u32 = 0;
const FIRST_PROCESS_BYTE: u32 = 1;
/// The byte after those of all possible process slots, locked by the process that scrubs in the background.
const SCRUB_BYTE: u32 = FIRST_PROCESS_BYTE + PROCESSES_MAX as u32;
/// How long a process waits for others that attach or leave, which takes milliseconds.
const ATTACH_DEADLINE: Duration = Duration::from_secs(10);

const INCARNATION: usize = 0;
const PID: usize = 8;
const STARTED_MS: usize = 16;

/// With this, a process proves that it is alive, and asks about others.
#[derive(Debug)]
pub(crate) struct Membership {
    /// `None` for a heap volume, which no other process can use.
    door: Option<Door>,
    /// This process's owner word; 0 while it has none, because it is a read-only opener or a forked child that could
    /// not register.
    owner: AtomicU32,
    /// The fork generation in which `owner` was claimed.
    fork: AtomicU32,
    /// Accessed only while the fork gate is held.
    alive: Mutex<Option<Alive>>,
    /// Thread slots of this process that no thread uses, but that may hold pins of hits that were sent elsewhere.
    /// Accessed only while the fork gate is held.
    pub(crate) spare_threads: Mutex<Vec<u32>>,
    /// The number of thread slots that this process holds.
    pub(crate) threads_held: AtomicU64,
    /// When this process last looked for dead ones.
    buried_ms: AtomicU64,
}

/// The file itself, apart from its map.
#[derive(Debug)]
pub(crate) struct Door {
    file: Kept,
    path: Option<PathBuf>,
}

impl Door {
    pub(crate) fn new(file: File, path: Option<PathBuf>) -> io::Result<Self> {
        Ok(Self { file: Kept::new(file)?, path })
    }

    pub(crate) fn identity(&self) -> Identity {
        self.file.identity()
    }

    /// Mode and group of the file.
    pub(crate) fn access(&self) -> io::Result<file::Access> {
        file::access(&*self.open()?)
    }

    /// Why allocated blocks are no guarantee on this file system, if they aren't.
    pub(crate) fn allocation_warning(&self) -> Option<&'static str> {
        file::allocation_warning(&self.file)
    }

    /// A duplicate of the descriptor.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        let duplicate = self.file.try_clone()?;
        if file::identity(&duplicate)? == self.identity() {
            Ok(duplicate.into())
        } else {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    /// Opens the file again, with locks of its own that no forked child shares.
    fn open(&self) -> io::Result<Private> {
        Private::open(|| file::reopen(&self.file, self.path.as_deref(), self.identity()))
    }

    /// Writes zeros to the file from `from` up to `to`, not through the map. May fail in the middle.
    pub(crate) fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
        // Writing beyond the limit would end the process; stores through the map don't.
        if to > file::size_limit() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        for at in (from..to).step_by(ZEROS.len()) {
            // Daemons close unknown descriptors when they start. A truncated file must not become longer again: the
            // lost bytes would read as zeros, and nobody would be told.
            if !self.file.is_still_ours() || self.file.metadata()?.len() < to {
                return Err(io::ErrorKind::NotFound.into());
            }
            let bytes = ZEROS.len().min((to - at) as usize);
            self.file.write_all_at(&ZEROS[..bytes], at)?;
        }
        Ok(())
    }

    /// Asks with a descriptor that surely belongs to our file.
    fn is_locked(&self, byte: u32, count: u32) -> io::Result<bool> {
        if self.file.is_still_ours() {
            let answer = liveness::is_locked(&self.file, byte, count)?;
            if self.file.is_still_ours() {
                return Ok(answer);
            }
        }
        let again = self.open()?;
        liveness::is_locked(&again, byte, count)
    }

    /// Holds the attach lock until the returned file is dropped.
    ///
    /// # Errors
    /// `TimedOut` if a process has held it for [`ATTACH_DEADLINE`]; that process must have been stopped.
    pub(crate) fn lock_attach(&self) -> io::Result<Private> {
        let file = self.open()?;
        let start = Instant::now();
        while !liveness::try_lock(&file, ATTACH_BYTE)? {
            if start.elapsed() >= ATTACH_DEADLINE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(file)
    }

    /// The lock of the process that scrubs in the background; `None` if another process has it.
    pub(crate) fn lock_scrub(&self) -> io::Result<Option<Alive>> {
        let file = self.open()?;
        if liveness::try_lock(&file, SCRUB_BYTE)? { Alive::keep(file).map(Some) } else { Ok(None) }
    }

    /// The file system's metadata of the file.
    pub(crate) fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.open()?.metadata()
    }

    /// Whether its path still names this file, and not a link.
    pub(crate) fn has_its_name(&self) -> bool {
        let path = self.path.as_deref();
        path.is_some_and(|path| file::identity_at(path).is_ok_and(|found| found == self.identity()))
    }

    /// Allocates blocks for a part of the file without any.
    pub(crate) fn give_blocks(&self, offset: u64, bytes: u64) -> io::Result<()> {
        file::give_blocks(&*self.open()?, offset, bytes)
    }

    /// Whether nobody is attached, for a file whose shape can't be trusted.
    pub(crate) fn is_deserted(&self) -> io::Result<bool> {
        Ok(!self.is_locked(FIRST_PROCESS_BYTE, PROCESSES_MAX as u32)?)
    }

    /// Whether any process is attached for writing.
    pub(crate) fn anybody(&self, layout: &Layout) -> io::Result<bool> {
        self.is_locked(FIRST_PROCESS_BYTE, layout.processes as u32)
    }
}

impl Membership {
    pub(crate) fn new(door: Option<Door>) -> Self {
        Self {
            door,
            owner: AtomicU32::new(0),
            fork: AtomicU32::new(fork::generation()),
            alive: Mutex::new(None),
            spare_threads: Mutex::new(Vec::new()),
            threads_held: AtomicU64::new(0),
            buried_ms: AtomicU64::new(0),
        }
    }

    pub(crate) fn door(&self) -> Option<&Door> {
        self.door.as_ref()
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.door.as_ref()?.path.as_deref()
    }

    /// This process's owner word, or 0.
    #[inline]
    pub(crate) fn owner_word(&self) -> u32 {
        self.owner.load(Relaxed)
    }

    /// Whether this process made the present claim, and not one that it was forked from.
    pub(crate) fn is_own(&self) -> bool {
        self.owner_word() != 0 && self.fork.load(Relaxed) == fork::generation()
    }

    /// Claims a process slot. Returns false if living processes have them all.
    pub(crate) fn claim(&self, region: &Region, layout: &Layout) -> io::Result<bool> {
        for process in 0..layout.processes as u32 {
            let Some(alive) = self.lock_process(process)? else { continue };
            let owner = renew(region, layout, process);
            self.owner.store(owner.word(), Relaxed);
            self.fork.store(fork::generation(), Relaxed);
            if let Ok(mut held) = self.alive.lock() {
                *held = alive;
            }
            return Ok(true);
        }
        Ok(false)
    }

    /// `Some(None)`: locked, since there can be no other process.
    #[expect(clippy::option_option, reason = "the outer one says whether it is locked, the inner one holds the lock")]
    fn lock_process(&self, process: u32) -> io::Result<Option<Option<Alive>>> {
        let Some(door) = &self.door else { return Ok(Some(None)) };
        let file = door.open()?;
        if !liveness::try_lock(&file, FIRST_PROCESS_BYTE + process)? {
            return Ok(None);
        }
        Ok(Some(Some(Alive::keep(file)?)))
    }

    /// Forgets what was inherited from the parent. Called in a forked child, while the fork gate is held.
    pub(crate) fn forget_inherited(&self) {
        self.owner.store(0, Relaxed);
        self.threads_held.store(0, Relaxed);
        if let Ok(mut held) = self.alive.lock()
            && let Some(alive) = held.take()
        {
            alive.forget_inherited();
        }
        if let Ok(mut spare) = self.spare_threads.lock() {
            spare.clear();
        }
    }

    /// Gives the process slot back. The thread slots must be free already.
    pub(crate) fn leave(&self, region: &Region, layout: &Layout) {
        let owner = self.owner.swap(0, Relaxed);
        if let Some(owner) = Owner::from_word(owner) {
            region.word(layout.process_at(owner.process) + PID).store(0, Relaxed);
        }
        if let Ok(mut held) = self.alive.lock() {
            held.take();
        }
    }

    /// Whether the process that an owner word names is alive. If that can't be found out, it counts as alive: a
    /// living holder never loses its lock.
    pub(crate) fn is_alive(&self, region: &Region, layout: &Layout, owner: Owner) -> bool {
        if u64::from(owner.process) >= layout.processes {
            return false;
        }
        if owner.word() == self.owner_word() {
            return true;
        }
        let now = region.word(layout.process_at(owner.process) + INCARNATION).load(Acquire);
        if now as u32 & INCARNATION_MASK != owner.incarnation {
            return false;
        }
        let Some(door) = &self.door else { return false };
        door.is_locked(FIRST_PROCESS_BYTE + owner.process, 1).unwrap_or(true)
    }

    /// Voids the pins and thread slots of a process that was found dead. Returns false if its slot has a new owner,
    /// who does this, or if another process is at it.
    pub(crate) fn bury(&self, region: &Region, layout: &Layout, owner: Owner) -> bool {
        if u64::from(owner.process) >= layout.processes {
            return false;
        }
        let Some(door) = &self.door else { return false };
        let Ok(file) = door.open() else { return false };
        if !matches!(liveness::try_lock(&file, FIRST_PROCESS_BYTE + owner.process), Ok(true)) {
            return false;
        }
        let word = region.word(layout.process_at(owner.process) + INCARNATION);
        if word.load(Acquire) as u32 & INCARNATION_MASK == owner.incarnation {
            renew(region, layout, owner.process);
            region.word(layout.process_at(owner.process) + PID).store(0, Relaxed);
        }
        true
    }

    /// Buries every dead process. Returns how many process slots are alive.
    pub(crate) fn bury_all(&self, region: &Region, layout: &Layout) -> u64 {
        let mut alive = 0;
        for owner in attached(region, layout) {
            if self.is_alive(region, layout, owner) {
                alive += 1;
            } else {
                self.bury(region, layout, owner);
            }
        }
        alive
    }

    /// Buries every dead process, at most ten times a second. Returns true if it did.
    pub(crate) fn bury_now_and_then(&self, region: &Region, layout: &Layout) -> bool {
        let now = clock::wall_ms();
        let due = now.abs_diff(self.buried_ms.load(Relaxed)) >= 100;
        if due {
            self.buried_ms.store(now, Relaxed);
            self.bury_all(region, layout);
        }
        due
    }

    /// The living processes: owner, process ID, and the wall clock in milliseconds when they joined.
    pub(crate) fn alive<'a>(
        &'a self,
        region: &'a Region,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (Owner, u32, u64)> + 'a {
        attached(region, layout).filter(|owner| self.is_alive(region, layout, *owner)).map(|owner| {
            let at = layout.process_at(owner.process);
            (owner, region.word(at + PID).load(Relaxed) as u32, region.word(at + STARTED_MS).load(Relaxed))
        })
    }

    /// How many process slots are alive.
    pub(crate) fn count_alive(&self, region: &Region, layout: &Layout) -> u64 {
        attached(region, layout).filter(|owner| self.is_alive(region, layout, *owner)).count() as u64
    }
}

/// The owners that the process table names, dead or alive.
fn attached<'a>(region: &'a Region, layout: &'a Layout) -> impl Iterator<Item = Owner> + 'a {
    (0..layout.processes as u32).filter_map(|process| {
        let at = layout.process_at(process);
        let incarnation = region.word(at + INCARNATION).load(Acquire) as u32 & INCARNATION_MASK;
        (region.word(at + PID).load(Relaxed) != 0).then_some(Owner { process, incarnation })
    })
}

/// Voids all that the former owner of a process slot left, then starts a new incarnation. Called under the slot's
/// byte lock.
fn renew(region: &Region, layout: &Layout, process: u32) -> Owner {
    for thread in 0..layout.threads as u32 {
        let at = layout.thread_at(thread);
        let left = Owner::from_word(region.half(at).load(Acquire));
        if left.is_some_and(|owner| owner.process == process) {
            for pin in region.line(at + 64) {
                pin.store(0, Release);
            }
            region.half(at).store(0, Release);
        }
    }
    let at = layout.process_at(process);
    let mut incarnation = (region.word(at + INCARNATION).load(Relaxed) as u32).wrapping_add(1) & INCARNATION_MASK;
    if incarnation == 0 {
        incarnation = 1;
    }
    seam::kill_point();
    region.word(at + PID).store(u64::from(process::id()), Relaxed);
    region.word(at + STARTED_MS).store(clock::wall_ms(), Relaxed);
    seam::kill_point();
    region.word(at + INCARNATION).store(u64::from(incarnation), Release);
    seam::kill_point();
    Owner { process, incarnation }
}
