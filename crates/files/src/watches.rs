//! The inotify watches of files and folders, and the dependencies that rest on them.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::fs::inotify::{self, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// Size of the buffer for events.
const EVENTS_BYTES: usize = 16 << 10;
/// Maximum number of events that are read in one go: four times the kernel's default queue. After more,
/// forgetting everything is cheaper.
const EVENTS_MAX: usize = 65_536;

/// The events of a folder: of its names, and of itself.
const FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// The events of a file. Its inode is watched, since a folder gets no events of writes through another name of
/// the file.
const FILE: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::DELETE_SELF);

/// File systems that only this kernel changes, by their numbers in `statfs`. All others, above all network file
/// systems, never count as watched.
const LOCAL: [u32; 14] = [
    0xEF53,      // ext2 to ext4
    0x5846_5342, // XFS
    0x9123_683E, // btrfs
    0xF2F5_2010, // F2FS
    0xCA45_1A4E, // bcachefs
    0x2FC1_2FC1, // ZFS
    0x3153_464A, // JFS
    0x3434,      // NILFS
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0x7371_7368, // SquashFS
    0xE0F5_E1E2, // EROFS
    0x9660,      // ISO 9660
];

/// Of these, the file systems without storage: tmpfs and ramfs.
const IN_MEMORY: [u32; 2] = [0x0102_1994, 0x8584_58F6];

/// A fact about the file system at the time of a look: what a name in a folder stands for, or the state of a file or folder. It becomes
/// void when the kernel reports a change, and stays void.
///
/// The code that reads the events writes it, and look-ups read it, both under the lock of [`crate::path_cache::PathCache`].
#[derive(Debug, Default)]
pub(crate) struct Dependency {
    is_invalid: AtomicBool,
}

impl Dependency {
    pub(crate) fn is_valid(&self) -> bool {
        !self.is_invalid.load(Ordering::Relaxed)
    }
}

/// The subject of a dependency.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    /// A name in the folder.
    Name(&'a [u8]),
    /// The file or folder by itself.
    Itself,
}

/// The dependencies of a watch. A dependency lives while something rests on it.
#[derive(Debug, Default)]
struct Watch {
    itself: Weak<Dependency>,
    names: HashMap<Vec<u8>, Weak<Dependency>>,
}

/// All watches by the kernel's numbers, which it doesn't reuse.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_number: HashMap<i32, Watch>,
    /// The number of names of all watches.
    names_count: usize,
}

impl Watches {
    /// Creates a dependency, which becomes void at the next change: what is looked up *after* this call holds
    /// as long as the dependency.
    ///
    /// # Errors
    /// `NOTDIR` for a name in something that is not a folder; `NOSPC` if the kernel gives no more watches;
    /// `ACCES` for a file that this process may not read.
    pub(crate) fn dependency(
        &mut self,
        inotify: &OwnedFd,
        place: BorrowedFd<'_>,
        about: About<'_>,
    ) -> io::Result<Arc<Dependency>> {
        // The open file itself, whatever its names are by now.
        let path = format!("/proc/self/fd/{}", place.as_raw_fd());
        let watch = match (inotify::add_watch(inotify, &path, FOLDER), about) {
            (Err(Errno::NOTDIR), About::Itself) => inotify::add_watch(inotify, &path, FILE)?,
            (watch, _) => watch?,
        };
        let watch = self.by_number.entry(watch).or_default();
        let dependency = match about {
            About::Name(name) => watch.names.entry(name.to_vec()).or_insert_with(|| {
                self.names_count += 1;
                Weak::new()
            }),
            About::Itself => &mut watch.itself,
        };
        // Remove a void one from its watch.
        Ok(dependency.upgrade().unwrap_or_else(|| {
            let made = Arc::default();
            *dependency = Arc::downgrade(&made);
            made
        }))
    }

    /// Reads the kernel's events. Returns false if events may be missing, so that no dependency is valid any
    /// more.
    #[must_use]
    pub(crate) fn read_events(&mut self, inotify: &OwnedFd) -> bool {
        let mut buffer = [MaybeUninit::uninit(); EVENTS_BYTES];
        let mut events = Reader::new(inotify, &mut buffer);
        for _ in 0..EVENTS_MAX {
            match events.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => return false,
                Ok(event) => match event.file_name() {
                    Some(name) => self.void_name(event.wd(), name.to_bytes()),
                    None => self.void_watch(inotify, event.wd()),
                },
                Err(Errno::AGAIN) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Removes unused watches and names.
    pub(crate) fn drop_unused(&mut self, inotify: &OwnedFd) {
        let names_count = &mut self.names_count;
        *names_count = 0;
        self.by_number.retain(|number, watch| {
            watch.names.retain(|_, dependency| dependency.strong_count() > 0);
            // Otherwise each folder would keep memory for the most names that it ever had.
            watch.names.shrink_to_fit();
            *names_count += watch.names.len();
            let is_used = watch.itself.strong_count() > 0 || !watch.names.is_empty();
            if !is_used {
                remove(inotify, *number);
            }
            is_used
        });
    }

    /// Makes every dependency void.
    pub(crate) fn invalidate_all(&mut self, inotify: &OwnedFd) {
        let numbers: Vec<i32> = self.by_number.keys().copied().collect();
        for number in numbers {
            self.void_watch(inotify, number);
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.by_number.len()
    }

    /// The number of names, including unused ones.
    pub(crate) fn names_count(&self) -> usize {
        self.names_count
    }

    fn void_name(&mut self, number: i32, name: &[u8]) {
        if let Some(dependency) = self.by_number.get_mut(&number).and_then(|watch| watch.names.remove(name)) {
            self.names_count -= 1;
            void(&dependency);
        }
    }

    /// Remove the watch with its dependencies: the next look creates a new one.
    fn void_watch(&mut self, inotify: &OwnedFd, number: i32) {
        let Some(watch) = self.by_number.remove(&number) else { return };
        self.names_count -= watch.names.len();
        remove(inotify, number);
        void(&watch.itself);
        watch.names.values().for_each(void);
    }
}

/// Whether the kernel sees all changes of an open file's file system.
pub(crate) fn is_local(place: impl AsFd) -> bool {
    // The field is wider on some machines, and signed.
    rustix::fs::fstatfs(place).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)))
}

/// Whether an open file's file system has no storage.
pub(crate) fn is_in_memory(place: impl AsFd) -> bool {
    rustix::fs::fstatfs(place).is_ok_and(|system| IN_MEMORY.contains(&(system.f_type as u32)))
}

fn void(dependency: &Weak<Dependency>) {
    if let Some(dependency) = dependency.upgrade() {
        dependency.is_invalid.store(true, Ordering::Relaxed);
    }
}

/// The kernel may have removed it already, with its file.
fn remove(inotify: &OwnedFd, number: i32) {
    let _ = inotify::remove_watch(inotify, number);
}
