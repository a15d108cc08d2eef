//! Creating a file completely or not at all, opening it, and telling one file from another.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Gid, MemfdFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

/// Identifies a file, whatever its name. Inode numbers are used again, but birth times aren't.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// `st_dev`
    pub device: u64,
    /// `st_ino`
    pub inode: u64,
    /// Creation time in nanoseconds since 1970; 0 if the file system doesn't tell.
    pub born_ns: u64,
}

/// The mode and group of a new file, which decide who may open it.
#[derive(Debug, Clone, Copy)]
pub struct Access {
    /// Permission bits, independent of the umask.
    pub mode: u32,
    /// The group of the file; `None` for the process's own group.
    pub group: Option<u32>,
}

/// The result of [`create`].
#[derive(Debug)]
pub enum Created {
    /// The file is new and belongs to us.
    New(File),
    /// Another file has the name already.
    Exists,
}

/// The identity of an open file.
///
/// # Errors
/// What `statx` reports.
pub fn identity(file: &File) -> io::Result<Identity> {
    identity_of(file, Path::new(""), AtFlags::EMPTY_PATH)
}

fn identity_of(directory: impl AsFd, path: &Path, flags: AtFlags) -> io::Result<Identity> {
    let data = rustix::fs::statx(directory, path, flags, StatxFlags::INO | StatxFlags::BTIME)?;
    let born = &data.stx_btime;
    let known = data.stx_mask & StatxFlags::BTIME.bits() != 0;
    Ok(Identity {
        device: (u64::from(data.stx_dev_major) << 32) | u64::from(data.stx_dev_minor),
        inode: data.stx_ino,
        born_ns: if known {
            (born.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(u64::from(born.tv_nsec))
        } else {
            0
        },
    })
}

/// An open file whose descriptor somebody may close behind our back, as daemons do with `close_range`.
///
/// The descriptor is then void, or its number belongs to another file. Callers check that before they use it, and
/// also afterwards if the result must not come from another file. Dropping it closes nothing that isn't ours.
#[derive(Debug)]
pub struct Kept {
    file: ManuallyDrop<File>,
    identity: Identity,
}

impl Kept {
    /// Keeps `file` open.
    ///
    /// # Errors
    /// What `fstat` reports.
    pub fn new(file: File) -> io::Result<Self> {
        let identity = identity(&file)?;
        Ok(Self { file: ManuallyDrop::new(file), identity })
    }

    /// Which file it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whether the descriptor still belongs to that file.
    pub fn is_still_ours(&self) -> bool {
        identity(&self.file).is_ok_and(|found| found == self.identity)
    }
}

impl Deref for Kept {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.is_still_ours() {
            // SAFETY: dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.file) }
        }
    }
}

/// Opens an existing file. Never waits, as the reading end of a pipe would.
///
/// # Errors
/// What `open` reports.
pub fn open(path: &Path, writable: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(writable).custom_flags(libc::O_CLOEXEC | libc::O_NONBLOCK).open(path)
}

/// Opens the file behind `file` again, as a new description with its own locks.
///
/// Uses `/proc/self/fd`, or else the path, if there is one. Checks that it is still the same file.
///
/// # Errors
/// `NotFound` if the path names another file by now; otherwise what `open` reports.
pub fn reopen(file: &File, path: Option<&Path>, expected: Identity) -> io::Result<File> {
    if let Ok(again) = open(&descriptor_path(file), true)
        && identity(&again)? == expected
    {
        return Ok(again);
    }
    let Some(path) = path else { return Err(io::ErrorKind::NotFound.into()) };
    let again = open(path, true)?;
    if identity(&again)? == expected {
        Ok(again)
    } else {
        Err(io::Error::new(io::ErrorKind::NotFound, "the path names another file by now"))
    }
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a file of `bytes` zero bytes with all blocks allocated, lets `fill` write it, and only then gives it its
/// name. Nobody ever sees it half written, and a process that dies meanwhile leaves nothing behind.
///
/// Processes that create files in one directory take turns, by a lock on the directory. So racing processes don't
/// each allocate the space.
///
/// # Errors
/// `StorageFull`, `ReadOnlyFilesystem`, `PermissionDenied`, `NotFound` (no such directory), or what `fill`
/// returns.
pub fn create(
    path: &Path,
    bytes: u64,
    access: Access,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<Created> {
    create_with_hole(path, bytes, bytes, access, fill)
}

/// Like [`create`], but only the first `allocated` bytes get blocks. Before anybody touches other bytes, these must
/// get blocks ([`give_blocks`]); otherwise the access may raise SIGBUS.
///
/// # Errors
/// As for [`create`].
pub fn create_with_hole(
    path: &Path,
    bytes: u64,
    allocated: u64,
    access: Access,
    fill: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<Created> {
    let directory = directory_of(path);
    let turn = File::open(directory)?;
    wait_for(&turn);
    if path.symlink_metadata().is_ok() {
        return Ok(Created::Exists);
    }
    let draft = Draft::new(directory)?;
    if allocated < bytes {
        draft.file.set_len(bytes)?;
    }
    give_blocks(&draft.file, 0, allocated)?;
    fill(&draft.file)?;
    if let Some(group) = access.group {
        rustix::fs::fchown(&draft.file, None, Some(Gid::from_raw(group)))
            .map_err(|error| io::Error::other(format!("it can't be given to group {group}: {error}")))?;
    }
    rustix::fs::fchmod(&draft.file, Mode::from_raw_mode(access.mode))?;
    draft.publish(path)
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Renames `path` to `aside`, in the same directory, if it still names the file `expected`. Returns whether it did.
/// Takes turns with processes that create files there, so that nobody renames a file that another process has just
/// created.
///
/// # Errors
/// What opening the directory or `rename` reports.
pub fn put_aside(path: &Path, aside: &Path, expected: Identity) -> io::Result<bool> {
    let turn = File::open(directory_of(path))?;
    wait_for(&turn);
    match identity_at(path) {
        Ok(found) if found == expected => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    }
    std::fs::rename(path, aside)?;
    Ok(true)
}

/// Waits for the directory's lock. Not forever, since any process that may read the directory can hold it, and not at all
/// if the directory can't be locked. Creators race then, and `link` decides.
fn wait_for(turn: &File) {
    for _ in 0..5000 {
        match rustix::fs::flock(turn, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => std::thread::sleep(std::time::Duration::from_millis(1)),
            _ => return,
        }
    }
}

/// A file without a name (`O_TMPFILE`), or a temporary one if the file system doesn't support that.
struct Draft {
    file: File,
    name: Option<PathBuf>,
}

impl Draft {
    fn new(directory: &Path) -> io::Result<Self> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::open(directory, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => Ok(Self { file: file.into(), name: None }),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT) => Self::named(directory),
            Err(error) => Err(error.into()),
        }
    }

    fn named(directory: &Path) -> io::Result<Self> {
        let nanoseconds =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
        let name = directory.join(format!(".eyewall-{}-{nanoseconds}.new", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Self { file: options.open(&name)?, name: Some(name) })
    }

    fn publish(mut self, path: &Path) -> io::Result<Created> {
        let linked = match &self.name {
            None => rustix::fs::linkat(
                rustix::fs::CWD,
                descriptor_path(&self.file),
                rustix::fs::CWD,
                path,
                AtFlags::SYMLINK_FOLLOW,
            ),
            Some(name) => rustix::fs::link(name, path),
        };
        let file = self.file.try_clone()?;
        if let Some(name) = self.name.take() {
            let _ = std::fs::remove_file(name);
        }
        match linked {
            Ok(()) => Ok(Created::New(file)),
            Err(Errno::EXIST) => Ok(Created::Exists),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = std::fs::remove_file(name);
        }
    }
}

/// Allocates blocks for `bytes` bytes from `offset` on. Existing blocks keep their content.
///
/// # Errors
/// `StorageFull`, `OutOfMemory`: some of the bytes may have got blocks.
pub fn give_blocks(file: &File, offset: u64, bytes: u64) -> io::Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    loop {
        match rustix::fs::fallocate(file, FallocateFlags::empty(), offset, bytes) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // A new file, so nothing is overwritten.
            Err(Errno::OPNOTSUPP) if offset == 0 => return allocate_by_writing(file, bytes),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The identity of the file that `path` itself names. A symbolic link isn't followed.
///
/// # Errors
/// What `statx` reports.
pub fn identity_at(path: &Path) -> io::Result<Identity> {
    identity_of(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW)
}

/// For file systems without `fallocate`: writes zeros.
fn allocate_by_writing(file: &File, bytes: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let zeros = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let count = zeros.len().min((bytes - at) as usize);
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
    }
    Ok(())
}

/// Shared memory of `bytes` zero bytes, without a name.
///
/// # Errors
/// `StorageFull`, or what `memfd_create` reports.
pub fn shared_memory(bytes: u64) -> io::Result<File> {
    let memory: OwnedFd = rustix::fs::memfd_create("eyewall", MemfdFlags::CLOEXEC)?;
    let file = File::from(memory);
    give_blocks(&file, 0, bytes)?;
    Ok(file)
}

/// How many bytes long this process may make files by writing (`RLIMIT_FSIZE`). Beyond that, SIGXFSZ ends it.
pub fn size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills a struct of ours.
    match unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } {
        0 => limit.rlim_cur,
        _ => 0,
    }
}

/// Whether the bytes of `file` stay in memory, apart from swapping; false if that is unknown.
pub(crate) fn is_in_memory(file: &File) -> bool {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58f6;
    const HUGETLBFS: u64 = 0x9584_58f6;
    rustix::fs::fstatfs(file)
        .is_ok_and(|system| [TMPFS, RAMFS, HUGETLBFS].contains(&(system.f_type as u64 & 0xffff_ffff)))
}

/// Why allocated blocks are no guarantee on the file system of `file`; `None` if they are.
///
/// Copy-on-write, network and layered file systems may need new space when a page is written back. They may then fail
/// a write that was already accepted, and the process gets SIGBUS.
pub fn allocation_warning(file: &File) -> Option<&'static str> {
    const BTRFS: u64 = 0x9123_683e;
    const ZFS: u64 = 0x2fc1_2fc1;
    const NFS: u64 = 0x6969;
    const SMB2: u64 = 0xfe53_4d42;
    const CIFS: u64 = 0xff53_4d42;
    const OVERLAY: u64 = 0x794c_7630;
    const FUSE: u64 = 0x6573_5546;
    let kind = rustix::fs::fstatfs(file).ok()?.f_type as u64 & 0xffff_ffff;
    match kind {
        BTRFS => Some("btrfs copies on write"),
        ZFS => Some("ZFS copies on write"),
        NFS => Some("NFS doesn't share a map between machines"),
        SMB2 | CIFS => Some("SMB doesn't share a map between machines"),
        OVERLAY => Some("overlayfs copies a file up on its first write"),
        FUSE => Some("FUSE file systems give no guarantee"),
        _ => None,
    }
}

/// Permission bits and group of an open file, to give them to another one.
pub fn access(file: &File) -> io::Result<Access> {
    let stat = rustix::fs::fstat(file)?;
    Ok(Access { mode: stat.st_mode & 0o777, group: Some(stat.st_gid) })
}

/// The id of this boot of the machine. Locks and owners from another boot are void.
///
/// # Errors
/// If `/proc` isn't mounted.
pub fn boot_id() -> io::Result<u128> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    u128::from_str_radix(&digits, 16).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    const ACCESS: Access = Access { mode: 0o640, group: None };

    #[test]
    fn a_file_appears_complete_with_its_blocks_and_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let created = create(&path, 65536, ACCESS, |_| {
            assert!(!path.exists());
            Ok(())
        });
        assert!(matches!(created.unwrap(), Created::New(_)));
        let data = path.metadata().unwrap();
        assert_eq!((data.len(), data.mode() & 0o777), (65536, 0o640));
        assert!(data.blocks() * 512 >= 65536);
        assert!(matches!(create(&path, 65536, ACCESS, |_| Ok(())).unwrap(), Created::Exists));
    }

    #[test]
    fn a_failed_creation_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        create(&path, 65536, ACCESS, |_| Err(io::Error::other("no"))).unwrap_err();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_is_found_again_unless_its_name_moved_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let Created::New(file) = create(&path, 4096, ACCESS, |_| Ok(())).unwrap() else { panic!() };
        let known = identity(&file).unwrap();
        assert_eq!(identity(&reopen(&file, Some(&path), known).unwrap()).unwrap(), known);
        std::fs::remove_file(&path).unwrap();
        let Created::New(other) = create(&path, 4096, ACCESS, |_| Ok(())).unwrap() else { panic!() };
        let error = reopen(&other, Some(&path), known).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn this_boot_has_one_id() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }
}
