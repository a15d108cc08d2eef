//! A running `eyewall serve`, stopped at the end of its test.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::client::{Reply, ask, get};
use super::command::eyewall;

/// The timeout of all waits.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) child: Child,
    /// Its output on standard output when it was ready.
    pub(crate) announced: String,
    /// Its configuration file, if it has one.
    folder: Option<TempDir>,
}

/// The anonymous memory of a server in bytes, which doesn't include the volume.
pub(crate) fn anonymous_bytes(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}

impl Server {
    /// A server for an origin, with the cache in memory.
    pub(crate) fn over_origin(url: &str) -> Self {
        Self::start(["--origin", url])
    }

    /// A server for a folder, with the cache in memory.
    pub(crate) fn over_folder(root: &Path) -> Self {
        Self::start([OsStr::new("--root"), root.as_os_str()])
    }

    /// A server with a configuration file, with the cache in memory. If the file doesn't say where to listen and who may purge, the
    /// server listens on a free port, and allows this machine to purge.
    pub(crate) fn configured(text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let file = folder.path().join("eyewall.toml");
        let mut said = "[server]\nlisten = [\"127.0.0.1:0\"]\n".to_owned();
        if !text.contains("\npurge_") {
            said.push_str("purge_from = [\"127.0.0.1\"]\n");
        }
        let text = match text.split_once("[server]\n") {
            Some((before, behind)) => format!("{before}{said}{behind}"),
            None => format!("{said}{text}"),
        };
        let text = if text.contains("[cache]") { text } else { format!("[cache]\nsize = \"8M\"\n{text}") };
        fs::write(&file, text).expect("a file can be written");
        Self::spawn_with(eyewall().args(["serve", "--config"]).arg(file), Some(folder))
    }

    /// Changes the configuration file of a server of [`Server::configured`].
    pub(crate) fn change(&self, change: impl FnOnce(&str) -> String) {
        let file = self.folder.as_ref().expect("it has a file").path().join("eyewall.toml");
        let text = fs::read_to_string(&file).expect("it can be read");
        fs::write(&file, change(&text)).expect("it can be written");
    }

    /// A server with a configuration of one site with an origin; `rest` has further settings of the site.
    pub(crate) fn over_site(origin: &str, rest: &str) -> Self {
        Self::configured(&format!("[[site]]\norigins = [\"{origin}\"]\n{rest}"))
    }

    /// A small server that the tests may purge: `eyewall serve --listen 127.0.0.1:0 --size 8M --purge-from 127.0.0.1 WORDS`
    pub(crate) fn start(words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let usual = ["serve", "--listen", "127.0.0.1:0", "--size", "8M", "--purge-from", "127.0.0.1"];
        Self::spawn(eyewall().args(usual).args(words))
    }

    /// Starts it, and reads its address from its first line.
    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self::spawn_with(command, None)
    }

    fn spawn_with(command: &mut Command, folder: Option<TempDir>) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary starts");
        let mut output = BufReader::new(child.stdout.take().expect("it has a standard output"));
        let mut announced = String::new();
        while !announced.ends_with("stop with Ctrl-C\n") {
            let bytes = output.read_line(&mut announced).expect("it says something");
            assert!(bytes > 0, "it ended, and said {announced:?}");
        }
        let line = announced.lines().next().unwrap_or_default();
        let address = line.strip_prefix("listening on http://").and_then(|line| line.strip_suffix('/'));
        let address = address.and_then(|address| address.parse().ok()).expect("the first line has the address");
        Self { address, child, announced, folder }
    }

    pub(crate) fn get(&self, target: &str) -> Reply {
        get(self.address, target)
    }

    /// Repeats a request until the reply is as wanted: the server doesn't store a file that has only just changed.
    pub(crate) fn get_until(&self, target: &str, is_so: impl Fn(&Reply) -> bool) -> Reply {
        let start = Instant::now();
        loop {
            let reply = self.get(target);
            if is_so(&reply) {
                return reply;
            }
            assert!(start.elapsed() < PATIENCE, "still {reply:?}");
        }
    }

    pub(crate) fn ask(&self, method: &str, target: &str, fields: &[&str]) -> Reply {
        ask(self.address, method, target, fields)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have been stopped by its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A folder to serve, removed at the end.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder can be made") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("it has a folder")).expect("folders can be made");
        fs::write(path, bytes).expect("a file can be written");
    }
}
