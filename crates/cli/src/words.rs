//! The errors of engine and server in the words of this command: with its options instead of the library's names, and with sizes as people write
//! them. Errors without an option in them keep their own text.

use std::io;
use std::path::{Path, PathBuf};

use eyewall::Error as Engine;
use eyewall_server::units::size;
use eyewall_server::{Error as Server, TlsError};

pub(crate) fn in_words(error: &Engine) -> String {
    match error {
        Engine::NotFound { path } => {
            let path = path.display();
            format!("there is no volume at {path}; create one by `eyewall create --cache {path} --size 64M`")
        }
        Engine::EntryTooLarge { bytes, max } => format!(
            "the entry needs {}, but the limit of this volume is {}; raise it by `eyewall resize --entry-bytes-max` (at most a \
             quarter of the volume's size)",
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
            format!("--entry-bytes-max is {}; for this size it must be between 96 B and {}", size(*bytes), size(*max))
        }
        Engine::OptionsDiffer { path, option: "size", asked, found } => format!(
            "{} has {}, not {}; leave out --size (in a configuration file, `size`) to use the volume as it is, \
             change its size by `eyewall resize`, or remove the file",
            path.display(),
            size(*found),
            size(*asked)
        ),
        Engine::Corrupt { path, what } => format!(
            "{} is damaged: {what}; start `eyewall serve` without --keep-broken, which renames a broken file and creates a new \
             one, or remove the file",
            path.display()
        ),
        Engine::Failed { path } => format!(
            "{} failed: the file was truncated, its header was overwritten, or its storage returned an error; start `eyewall \
             serve` again, which renames a broken file and creates a new one, or remove the file",
            path.display()
        ),
        Engine::NoSpace { path, bytes } => format!(
            "the disk has no room for a volume of {} at {}; free some space, or give a smaller --size",
            size(*bytes),
            path.display()
        ),
        Engine::ReadOnly { path, .. } => read_only(path),
        Engine::Pinned { bytes } => {
            format!("readers hold too many entries to make room for {}; try again", size(*bytes))
        }
        Engine::Io { path, source, .. } if source.kind() == io::ErrorKind::NotFound && !folder(path).is_dir() => {
            format!("the folder {} for the volume doesn't exist; create it first", folder(path).display())
        }
        other => other.to_string(),
    }
}

/// The server's errors, with advice for the command line.
pub(crate) fn of_server(error: &Server) -> String {
    let advice = match error {
        Server::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
            "; another program listens there; give another --listen, or port 0 for a free port"
        }
        Server::Listen { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "; ports below 1024 need a privilege; give another --listen, or grant CAP_NET_BIND_SERVICE"
        }
        Server::Tls(TlsError::NoSystemRoots) => ", or give a file by --origin-ca",
        _ => "",
    };
    format!("{error}{advice}")
}

/// `path` is the volume that this user may not write, or the folder in which this user may not create one.
fn read_only(path: &Path) -> String {
    if path.as_os_str().is_empty() || path.is_dir() {
        let path = std::path::absolute(".").map_or_else(|_| path.to_owned(), |here| here.join(path));
        format!("this user may not create a volume in {}; choose another folder", path.display())
    } else {
        format!(
            "this user may not write {}; `get`, `ls`, `stat`, `map` and `export` only need the right to read it",
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
