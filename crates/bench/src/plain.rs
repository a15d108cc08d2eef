//! Plain files: what a program does if it has no cache for them.
//!
//! - A file for each key, named by the key, all in one directory.
//! - get: opens the file, calls `fstat`, and reads all of it into a buffer that each thread keeps.
//! - put: writes the file in place. delete: `unlink`. Nothing is evicted.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::footprint;
use crate::store::{Handle, Store};

/// A directory of files.
#[derive(Debug)]
pub struct Plain {
    root: PathBuf,
    /// `root` as the start of a path.
    prefix: String,
}

impl Plain {
    /// The name in records.
    pub const NAME: &'static str = "plain read";

    /// Opens a directory, for the files in it and those that puts will create.
    pub fn new(root: &Path) -> Result<Self> {
        let prefix =
            root.to_str().ok_or_else(|| refused(format!("the directory's name is not UTF-8: {}", root.display())))?;
        Ok(Self { root: root.to_owned(), prefix: format!("{prefix}/") })
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn refused(what: String) -> Error {
    Error::Store { store: Plain::NAME, what }
}

impl Store for Plain {
    type Handle<'a> = PlainHandle<'a>;

    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn handle(&self) -> PlainHandle<'_> {
        PlainHandle { prefix: &self.prefix, path: String::new(), buffer: Vec::new() }
    }

    fn evicts(&self) -> bool {
        false
    }

    fn footprint_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(footprint::below(&self.root)?.bytes))
    }
}

/// One thread's buffers.
#[derive(Debug)]
pub struct PlainHandle<'a> {
    prefix: &'a str,
    path: String,
    buffer: Vec<u8>,
}

impl PlainHandle<'_> {
    fn locate(&mut self, key: &[u8]) -> Result<()> {
        let name = str::from_utf8(key).ok().filter(|name| !name.is_empty() && !name.contains(['/', '\0', '.']));
        let name = name.ok_or_else(|| refused("a key has to be the name of a file, without a dot".to_owned()))?;
        self.path.clear();
        self.path.push_str(self.prefix);
        self.path.push_str(name);
        Ok(())
    }

    fn failed(&self, verb: &'static str) -> impl Fn(Errno) -> Error + use<'_> {
        move |errno| Error::path(verb, Path::new(&self.path))(errno.into())
    }

    /// Reads the whole file into the buffer. If the file became shorter meanwhile, the value is shorter, too.
    fn read_all(&mut self, file: &impl std::os::fd::AsFd) -> rustix::io::Result<usize> {
        let bytes = rustix::fs::fstat(file)?.st_size as usize;
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes, 0);
        }
        let mut filled = 0;
        while filled < bytes {
            match rustix::io::read(file, &mut self.buffer[filled..bytes])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}

impl Handle for PlainHandle<'_> {
    fn get(&mut self, key: &[u8], consumer: impl FnOnce(&[u8])) -> Result<bool> {
        self.locate(key)?;
        let file = match rustix::fs::open(self.path.as_str(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(self.failed("open")(errno)),
        };
        let bytes = match self.read_all(&file) {
            Ok(bytes) => bytes,
            Err(errno) => return Err(self.failed("read")(errno)),
        };
        drop(file);
        consumer(&self.buffer[..bytes]);
        Ok(true)
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.locate(key)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
        let file =
            rustix::fs::open(self.path.as_str(), flags, Mode::RUSR | Mode::WUSR).map_err(self.failed("create"))?;
        let mut rest = value;
        while !rest.is_empty() {
            let written = rustix::io::write(&file, rest).map_err(self.failed("write"))?;
            rest = &rest[written..];
        }
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<bool> {
        self.locate(key)?;
        match rustix::fs::unlink(self.path.as_str()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.failed("unlink")(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Plain;
    use crate::error::Result;
    use crate::random;
    use crate::store::{Handle as _, Store as _};

    #[test]
    fn files_are_written_read_and_removed() -> Result<()> {
        let directory = tempfile::tempdir().expect("a directory");
        let plain = Plain::new(directory.path())?;
        let mut handle = plain.handle();
        for bytes in [200_000, 0, 5] {
            let value = random::filler(1, bytes);
            handle.put(b"key", &value)?;
            let mut found = None;
            assert!(handle.get(b"key", |value| found = Some(value.to_vec()))?);
            assert!(found == Some(value), "{bytes}");
        }
        assert_eq!(std::fs::read(directory.path().join("key")).expect("a file").len(), 5);
        assert!(handle.delete(b"key")? && !handle.delete(b"key")?);
        assert!(!handle.get(b"key", |_| panic!("it is gone"))?);
        for key in [&b""[..], b"../key", b"a/b", b"\xff"] {
            let refused = handle.put(key, b"value").expect_err("no name").to_string();
            assert!(refused.contains("name of a file"), "{refused}");
        }
        Ok(())
    }
}
