//! A Unix socket to listen on: its file, its permissions, and its place if a file is there already.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, SockAddr, Socket, Type};

/// The file of our socket. Dropping this removes it, unless another file has taken its place.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
    /// Whether another process has the socket now.
    is_handed_over: Arc<AtomicBool>,
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: identity(path)?, is_handed_over: Arc::default() })
    }

    /// The file of a socket of the process before, which still has it: the file stays if this process fails to start.
    ///
    /// # Errors
    /// The system's, if the file isn't there.
    pub(crate) fn inherited(path: &Path) -> io::Result<Self> {
        let file = Self::of(path)?;
        file.is_handed_over.store(true, Ordering::Relaxed);
        Ok(file)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another process has the socket: the file stays then.
    pub(crate) fn is_handed_over(&self) -> &Arc<AtomicBool> {
        &self.is_handed_over
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_handed_over.load(Ordering::Relaxed)
            && identity(&self.path).is_ok_and(|identity| identity == self.identity)
        {
            // If this fails, the next server replaces the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens at a path, with these permissions. It replaces the socket of a dead server, but neither the socket of a running one nor any other file.
///
/// # Errors
/// The system's; [`io::ErrorKind::AddrInUse`] and [`io::ErrorKind::AlreadyExists`] say what to do.
pub(crate) fn listen(path: &Path, mode: u32, backlog: i32) -> io::Result<(Socket, SocketFile)> {
    make_way(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::unix(path)?)?;
    let file = SocketFile::of(path)?;
    // Nobody can connect before `listen`, whatever permissions the file was created with.
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    socket.listen(backlog)?;
    Ok((socket, file))
}

/// Removes the socket of a dead server, which refuses connections.
fn make_way(path: &Path) -> io::Result<()> {
    let Err(refused) = UnixStream::connect(path) else {
        let words = "another server uses this socket; give another path, or stop that server";
        return Err(io::Error::new(io::ErrorKind::AddrInUse, words));
    };
    match refused.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.file_type().is_socket()) => {
            let words = "a file is there that is not a socket; remove it, or give another path";
            Err(io::Error::new(io::ErrorKind::AlreadyExists, words))
        }
        io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        _ => Err(refused),
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}
