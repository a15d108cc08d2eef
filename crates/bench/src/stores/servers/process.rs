//! The process of a server, and the address at which clients reach it. It runs in the store's directory, and ends with
//! the store, and with this program, however that ends.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions};

use super::connection::Connection;
use crate::error::{Error, Result};

/// The socket's name in the store's directory, which is the server's working directory.
pub(super) const SOCKET: &str = "socket";

/// Where distributions put servers, beside the search path of this process.
const FOLDERS: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// If a server doesn't listen within this time, it counts as broken.
const START_WITHIN: Duration = Duration::from_secs(20);

const LOOK_EVERY: Duration = Duration::from_millis(2);

/// The file with the server's output, in the store's directory.
const LOG: &str = "log";

/// A shell forks a guard, and then becomes the server. The guard waits for the end of standard input, and then kills
/// the server. Only this program holds the other end of standard input. So no server outlives a run, even a killed one.
/// The guard knows the server by its process ID, which can't be reused meanwhile: before this program takes the
/// server's exit status, it waits for the guard to end (for the end of standard output, which the server doesn't hold).
const GUARDED: &str = r#"exec 3<&0
{ read -r _ <&3; kill -KILL $$; } &
exec "$@" </dev/null 3<&- >&2"#;

/// The path of the program of this name, if it is installed.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The output of `PROGRAM --version`.
pub(super) fn printed_version(program: &Path) -> io::Result<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("--version ends with {}", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The address at which a server listens, or will listen.
#[derive(Debug)]
pub(super) struct Address {
    store: &'static str,
    /// The directory, held open to give the socket a short name: the name of a Unix socket has at most 107 bytes, and
    /// the directory's may be longer.
    directory: File,
}

impl Address {
    /// The socket in a store's directory.
    pub(super) fn of(store: &'static str, directory: &Path) -> Result<Self> {
        let directory = File::open(directory).map_err(Error::path("open", directory))?;
        Ok(Self { store, directory })
    }

    fn stream(&self) -> io::Result<UnixStream> {
        UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", self.directory.as_raw_fd()))
    }

    /// A new connection.
    pub(super) fn connect(&self) -> Result<Connection> {
        let stream = self.stream().map_err(Error::io(format!("connect to {}", self.store)))?;
        Ok(Connection::new(self.store, stream))
    }
}

/// A running server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts `program` in `directory`, and waits until it listens at that directory's address.
    ///
    /// # Errors
    /// Fails if the program isn't installed, ends at once or doesn't listen. The error has the last line that the
    /// program printed.
    pub(super) fn start(
        program: &'static str,
        package: &str,
        arguments: &[String],
        directory: &Path,
        address: &Address,
    ) -> Result<Self> {
        let failed = |what: String| Error::Store { store: program, what };
        let path =
            find(program).ok_or_else(|| failed(format!("it isn't installed; on Debian: apt install {package}")))?;
        let log = directory.join(LOG);
        let child = Command::new("/bin/sh")
            .args(["-c", GUARDED, "sh"])
            .arg(path)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).map_err(Error::path("create", &log))?)
            // Ctrl-C must reach only this program, which ends the server after it has saved its results.
            .process_group(0)
            .spawn()
            .map_err(Error::io(format!("start {program}")))?;
        let mut server = Self { child };
        server.wait_until_it_listens(address).map_err(|what| failed(format!("{what}{}", last_line(&log))))?;
        Ok(server)
    }

    fn wait_until_it_listens(&mut self, address: &Address) -> std::result::Result<(), String> {
        let begin = Instant::now();
        while address.stream().is_err() {
            if self.has_ended() {
                let status = self.stop().map_err(|failure| failure.to_string())?;
                return Err(format!("it ended at once with {status}"));
            }
            if begin.elapsed() > START_WITHIN {
                return Err("it didn't listen in time".to_owned());
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Whether the process is dead. Its exit status can still be taken afterwards.
    fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let found = Pid::from_raw(self.child.id() as i32).map(|pid| rustix::process::waitid(WaitId::Pid(pid), look));
        matches!(found, Some(Ok(Some(_))))
    }

    /// Ends the guard, and with it the server.
    fn stop(&mut self) -> io::Result<ExitStatus> {
        drop(self.child.stdin.take());
        if let Some(mut guard) = self.child.stdout.take() {
            // Nothing is ever written there; the read returns when the guard ends.
            guard.read_to_end(&mut Vec::new())?;
        }
        self.child.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server was killed, or had ended before.
        let _ = self.stop();
    }
}

/// `: ` and the last line of the log that isn't empty.
fn last_line(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map_or_else(String::new, |line| format!(": {line}"))
}

#[cfg(test)]
mod tests {
    use super::{Address, Server};

    #[test]
    fn a_server_that_is_missing_or_fails_says_so() {
        let directory = tempfile::tempdir().expect("a directory");
        let start = |program, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            let address = Address::of(program, directory.path()).expect("a directory");
            let started = Server::start(program, "a-package", &arguments, directory.path(), &address);
            started.expect_err("no server").to_string()
        };
        assert_eq!(
            start("no-such-server", &[]),
            "no-such-server: it isn't installed; on Debian: apt install a-package"
        );
        let failed = start("ls", &["no-such-file"]);
        assert!(failed.starts_with("ls: it ended at once with exit status: 2: "), "{failed}");
        assert!(failed.contains("no-such-file"), "{failed}");
    }
}
