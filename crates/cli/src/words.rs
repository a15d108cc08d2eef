//! The engine's errors, and the server's, in the words of this command: its options instead of the library's names, sizes as people write
//! them. What the engine says well enough is left to it.

use std::io;
use std::path::{Path, PathBuf};

use eyewall::Error as Engine;
use eyewall_server::units::size;
use eyewall_server::{Error as Server, TlsError};

pub(crate) fn in_words(error: &Engine) -> String {
    match error {
        Engine::NotFound { path } => {
            let path = path.display();
            format!("there is no volume at {path}; make one with `eyewall create --cache {path} --size 64M`")
        }
        Engine::EntryTooLarge { bytes, max } => format!(
            "the entry needs {}, the limit of this volume is {}; make a volume with a larger --entry-bytes-max (at most a \
             quarter of its size)",
            size(*bytes),
            size(*max)
        ),
        Engine::SizeTooSmall { bytes, min } => {
            format!("--size {} is too small; the smallest volume has {}", size(*bytes), size(*min))
        }
        Engine::SizeTooLarge { bytes, max } => {
            format!("--size {} is too large; the largest volume has {}", size(*bytes), size(*max))
        }
        Engine::EntryMaxOutOfRange { bytes, max } => {
            format!("--entry-bytes-max is {}; for this size it must lie between 80 B and {}", size(*bytes), size(*max))
        }
        Engine::OptionsDiffer { path, option: "size", asked, found } => format!(
            "{} has {}, not {}; leave --size out (in a configuration, `size`) to use the volume as it is, \
             change it by `eyewall resize`, or remove it",
            path.display(),
            size(*found),
            size(*asked)
        ),
        Engine::Corrupt { path, what } => format!(
            "{} is damaged: {what}; start `eyewall serve` without --keep-broken, which puts it aside, or remove it to start empty",
            path.display()
        ),
        Engine::Failed { path } => format!(
            "{} failed: the file was truncated, its header was overwritten, or its storage returned an error; start `eyewall \
             serve` again, which puts a broken file aside, or remove the file",
            path.display()
        ),
        Engine::NoSpace { path, bytes } => format!(
            "no room for a volume of {} at {}; free some space or give a smaller --size",
            size(*bytes),
            path.display()
        ),
        Engine::ReadOnly { path, .. } => read_only(path),
        Engine::Pinned { bytes } => {
            format!("readers hold too much of the cache to make room for {}; try again", size(*bytes))
        }
        Engine::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound && !folder(path).is_dir() => {
            format!("there is no folder {} to make a volume in; make it first", folder(path).display())
        }
        other => other.to_string(),
    }
}

/// The server's errors, with what to do on the command line.
pub(crate) fn of_server(error: &Server) -> String {
    let advice = match error {
        Server::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            "; another program listens there: give another --listen, with port 0 for any free one"
        }
        Server::Listen { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need a privilege: give another --listen"
        }
        Server::Tls(TlsError::NoSystemRoots) => ", or name a file by --origin-ca",
        _ => "",
    };
    format!("{error}{advice}")
}

/// The engine names the volume that may not be written, or the folder in which it may not make one.
fn read_only(path: &Path) -> String {
    if path.as_os_str().is_empty() || path.is_dir() {
        let path = std::path::absolute(".").map_or_else(|_| path.to_owned(), |here| here.join(path));
        format!("this user may not make a volume in {}; choose another folder", path.display())
    } else {
        format!(
            "{} may not be written by this user; `get`, `ls`, `stat`, `map` and `export` need the right to read it only",
            path.display()
        )
    }
}

/// The folder of a volume.
fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}
