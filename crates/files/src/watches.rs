//! What the kernel is asked to tell: watches of files and folders, and the dependencies that rest on them.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use rustix::fs::inotify::{self, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

/// So many bytes of events are read at once.
const EVENTS_BYTES: usize = 16 << 10;
/// So many events are read in one go, four times what the kernel queues unless it is told otherwise. After more it is cheaper to
/// forget everything.
const EVENTS_MAX: usize = 65_536;

/// What a folder is watched for: its names, and itself.
const FOLDER: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
/// What a file is watched for. By its inode, since a folder is not told of what is written through another of a file's names.
const FILE: WatchFlags = WatchFlags::MODIFY.union(WatchFlags::ATTRIB).union(WatchFlags::DELETE_SELF);

/// File systems that nobody changes behind the back of this kernel, by their numbers in `statfs`. Those that aren't listed, those of
/// networks above all, are never taken for watched.
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

/// Something about the file system that held when it was looked at: what a name stands for in a folder, or what a file or folder
/// is by itself. Void once the kernel has told of a change, and never good again.
///
/// Whoever hears the events writes it, under the lock of [`crate::path_cache::PathCache`]; whoever looks something up reads it, under the
/// same lock.
#[derive(Debug, Default)]
pub(crate) struct Dependency {
    is_invalid: AtomicBool,
}

impl Dependency {
    pub(crate) fn is_valid(&self) -> bool {
        !self.is_invalid.load(Ordering::Relaxed)
    }
}

/// What a dependency is about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum About<'a> {
    /// A name in the folder.
    Name(&'a [u8]),
    /// The file or folder by itself.
    Itself,
}

/// Who rests on a watch. A dependency lives as long as something rests on it.
#[derive(Debug, Default)]
struct Watch {
    itself: Weak<Dependency>,
    names: HashMap<Vec<u8>, Weak<Dependency>>,
}

/// All watches, by the kernel's numbers, which it doesn't use again.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    by_number: HashMap<i32, Watch>,
    /// How many names all of them have together.
    names_count: usize,
}

impl Watches {
    /// A dependency, which is void from the next change on: what is looked up *after* this call holds for as long as the dependency.
    ///
    /// # Errors
    /// `NOTDIR` for a name in what is no folder; `NOSPC` where the kernel gives no more watches; `ACCES` for what we may not read.
    pub(crate) fn dependency(
        &mut self,
        inotify: &OwnedFd,
        place: BorrowedFd<'_>,
        about: About<'_>,
    ) -> io::Result<Arc<Dependency>> {
        // The very file that is open, whatever its names have become.
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
        // A void one is taken out of its watch.
        Ok(dependency.upgrade().unwrap_or_else(|| {
            let made = Arc::default();
            *dependency = Arc::downgrade(&made);
            made
        }))
    }

    /// Takes in what the kernel has to tell. False: it may have told less than all, so that no dependency is good any more.
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

    /// Gives back the watches that nothing rests on, and the names.
    pub(crate) fn drop_unused(&mut self, inotify: &OwnedFd) {
        let names_count = &mut self.names_count;
        *names_count = 0;
        self.by_number.retain(|number, watch| {
            watch.names.retain(|_, dependency| dependency.strong_count() > 0);
            // Else each folder would keep the room for the most names that it ever had.
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

    /// How many names are kept, also of those that nothing rests on any more.
    pub(crate) fn names_count(&self) -> usize {
        self.names_count
    }

    fn void_name(&mut self, number: i32, name: &[u8]) {
        if let Some(dependency) = self.by_number.get_mut(&number).and_then(|watch| watch.names.remove(name)) {
            self.names_count -= 1;
            void(&dependency);
        }
    }

    /// The watch goes with its dependencies: whoever looks again makes another one.
    fn void_watch(&mut self, inotify: &OwnedFd, number: i32) {
        let Some(watch) = self.by_number.remove(&number) else { return };
        self.names_count -= watch.names.len();
        remove(inotify, number);
        void(&watch.itself);
        watch.names.values().for_each(void);
    }
}

/// Whether the kernel gets to know of all changes of what is open there.
pub(crate) fn is_local(place: impl AsFd) -> bool {
    // The field is wider on some machines, and signed.
    rustix::fs::fstatfs(place).is_ok_and(|system| LOCAL.contains(&(system.f_type as u32)))
}

fn void(dependency: &Weak<Dependency>) {
    if let Some(dependency) = dependency.upgrade() {
        dependency.is_invalid.store(true, Ordering::Relaxed);
    }
}

/// The kernel may have removed it already, together with its file.
fn remove(inotify: &OwnedFd, number: i32) {
    let _ = inotify::remove_watch(inotify, number);
}
