//! A Redis server of a test, at a Unix socket. It starts with nothing, unless it keeps its data.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Redis {
    folder: TempDir,
    words: Vec<OsString>,
    child: Child,
    password: Option<String>,
}

impl Redis {
    /// Starts a server with these further words of its command line. `None`: the machine has no redis-server, so the test is skipped;
    /// in CI that is an error.
    pub(crate) fn start(words: &[&str]) -> Option<Self> {
        let found = program().arg("--version").stdout(Stdio::null()).status();
        if found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            assert!(std::env::var_os("CI").is_none(), "there is no redis-server; make packages installs it");
            eprintln!("skipped: there is no redis-server; make packages ARGS=fleet installs it");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder can be made");
        let password = words.iter().position(|word| *word == "--requirepass").map(|at| words[at + 1].to_owned());
        let mut all: Vec<OsString> = ["--save", "", "--unixsocket"].map(OsString::from).into();
        all.push(socket_in(&folder).into());
        if !words.contains(&"--port") {
            all.extend(["--port", "0"].map(OsString::from));
        }
        all.extend(words.iter().map(OsString::from));
        Some(Self::spawn(folder, all, password))
    }

    /// Starts a Sentinel with these lines of its configuration.
    pub(crate) fn sentinel(lines: &str, password: Option<&str>) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (file, password) = (folder.path().join("sentinel.conf"), password.map(str::to_owned));
        let secret = password.as_ref().map_or_else(String::new, |password| format!("requirepass {password}\n"));
        let text = format!("unixsocket {}\n{secret}{lines}", socket_in(&folder).display());
        std::fs::write(&file, text).expect("a file can be written");
        Self::spawn(folder, vec![file.into(), "--sentinel".into()], password)
    }

    fn spawn(folder: TempDir, words: Vec<OsString>, password: Option<String>) -> Self {
        let child = spawn(&folder, &words);
        let redis = Self { folder, words, child, password };
        redis.wait();
        redis
    }

    /// Its address for `redis` of the configuration.
    pub(crate) fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        socket_in(&self.folder)
    }

    /// Kills it by SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it is ours");
    }

    /// Starts it again after [`Redis::kill`].
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&self.folder, &self.words);
        self.wait();
    }

    /// Removes what it has kept, after [`Redis::kill`].
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_dir_all(self.folder.path().join("appendonlydir"));
    }

    /// Stops it for now, without closing its connections.
    pub(crate) fn hang(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).expect("it runs");
    }

    /// Lets it go on.
    pub(crate) fn wake(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).expect("it runs");
    }

    /// Sends a command, and returns the first line of the answer, or the text if the answer is one.
    pub(crate) fn command(&self, words: &str) -> String {
        self.try_command(words).expect("it answers")
    }

    fn try_command(&self, words: &str) -> Option<String> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let (mut line, auth) = (String::new(), self.password.as_ref().map(|password| format!("AUTH {password}")));
        for words in auth.as_deref().into_iter().chain([words]) {
            stream.write_all(format!("{words}\r\n").as_bytes()).ok()?;
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        if line.starts_with('$') && line.trim_end() != "$-1" {
            line.clear();
            reader.read_line(&mut line).ok()?;
        }
        Some(line.trim_end().to_owned())
    }

    /// Waits until a command has an answer that is as wanted.
    pub(crate) fn command_until(&self, words: &str, is_so: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !self.try_command(words).is_some_and(|line| is_so(&line)) {
            assert!(start.elapsed() < PATIENCE, "{words} has no such answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn wait(&self) {
        self.command_until("PING", |line| line == "+PONG");
    }
}

/// The server: the one that `EYEWALL_REDIS` names, such as Valkey's, or Redis. Debian's package of tools has Redis under another name, and
/// starts no service.
fn program() -> Command {
    let mut command = Command::new(std::env::var_os("EYEWALL_REDIS").unwrap_or_else(|| "redis-check-rdb".into()));
    command.arg0("redis-server");
    command
}

fn spawn(folder: &TempDir, words: &[OsString]) -> Child {
    let mut command = program();
    command.args(words).current_dir(folder.path()).stdout(Stdio::null()).spawn().expect("it starts")
}

fn socket_in(folder: &TempDir) -> PathBuf {
    folder.path().join("redis.sock")
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have been killed by its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
