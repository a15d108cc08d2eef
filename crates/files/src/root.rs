//! The served folder.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Which symbolic links to follow below the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// None. The root itself may be a link.
    None,
    /// Those whose target lies below the root. Links with absolute targets never do.
    #[default]
    Below,
    /// All. Then everyone who can create links below the root can publish any file that this process may
    /// read.
    Anywhere,
}

/// How often to retry a look-up that the kernel gave up because folders were moved meanwhile.
const TRIES: usize = 8;

/// A folder, by its path. It is opened for each look-up, so that a root that is a symbolic link can be switched
/// to another folder while the server runs.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    path: PathBuf,
}

impl Root {
    /// The whole file system, for paths that are the program's own.
    pub(crate) fn everything() -> Self {
        Self { path: PathBuf::from("/") }
    }

    /// Checks that the folder can be served.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        // Absolute, since it is part of keys; not resolved, so that the link may be switched.
        let root = Self { path: std::path::absolute(path)? };
        match root.find(Path::new("."), Symlinks::Below) {
            Ok(_) => Ok(root),
            Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the kernel has no openat2; Linux 5.6 or later is needed",
            )),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file or folder at a path below the root. The kernel refuses each step that would leave the
    /// root, by `..` or by a symbolic link, however folders are moved meanwhile. All links with absolute
    /// targets count as leaving. `symlinks` may permit more.
    pub(crate) fn find(&self, relative: &Path, symlinks: Symlinks) -> io::Result<File> {
        let folder =
            rustix::fs::openat(CWD, &self.path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        // Nonblocking, since a pipe without a writer would block the thread forever.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = match symlinks {
            Symlinks::None => ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
            Symlinks::Below => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Symlinks::Anywhere => ResolveFlags::empty(),
        };
        for _ in 1..TRIES {
            match rustix::fs::openat2(&folder, relative, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) => {}
                other => return Ok(File::from(other?)),
            }
        }
        Ok(File::from(rustix::fs::openat2(&folder, relative, flags, Mode::empty(), resolve)?))
    }
}

/// Whether a failed look-up means that there is no file. Links out of the root look the same as a missing file.
pub(crate) fn is_absence(error: &io::Error) -> bool {
    let absences = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::XDEV, Errno::NAMETOOLONG, Errno::NXIO];
    absences.iter().any(|absence| error.raw_os_error() == Some(absence.raw_os_error()))
}
