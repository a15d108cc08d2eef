//! Runs `eyewall` as a user would.

use std::ffi::OsStr;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("standard output is text")
    }
}

/// The path of the binary: of `EYEWALL_PROGRAM`, for tests that were built on another machine, or cargo's.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("EYEWALL_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_eyewall").into()).into()
}

/// The binary, without the environment variables that the tests' own environment may have.
pub(crate) fn eyewall() -> Command {
    let mut command = Command::new(program());
    for name in ["EYEWALL_CACHE", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end, with these bytes on its standard input.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> Ended {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = loop {
        match command.spawn() {
            // A fresh copy of the binary is busy while a child that another thread has forked meanwhile still has it
            // open.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
            other => break other.expect("the binary starts"),
        }
    };
    // A command doesn't have to read all of its input.
    let _ = child.stdin.take().expect("it has a standard input").write_all(input);
    let output = child.wait_with_output().expect("the binary ends");
    Ended {
        code: output.status.code().expect("it was not killed"),
        stdout: output.stdout,
        stderr: String::from_utf8(output.stderr).expect("standard error is text"),
    }
}

/// A folder with the path of a volume in it; both are removed at the end.
pub(crate) struct Volume {
    folder: TempDir,
}

impl Volume {
    /// The path only, without a volume.
    pub(crate) fn absent() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder can be made") }
    }

    pub(crate) fn new() -> Self {
        Self::sized("4M")
    }

    pub(crate) fn sized(size: &str) -> Self {
        let volume = Self::absent();
        let ended = volume.run(["create", "--size", size]);
        // It warns if the file system doesn't guarantee the space.
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        volume
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("site.eye")
    }

    /// `eyewall --cache PATH WORDS`
    pub(crate) fn command(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
        let mut command = eyewall();
        command.arg("--cache").arg(self.path()).args(words);
        command
    }

    pub(crate) fn run(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
        run(&mut self.command(words), b"")
    }

    /// Stores a value, passed on standard input.
    pub(crate) fn put(&self, key: impl AsRef<OsStr>, value: &[u8]) {
        let ended = run(self.command(["put"]).arg(key.as_ref()), value);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    }
}
