//! A running `eyewall serve` that hands over to its successors, each of which is ended at the end of the test.

use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

use super::admin::{Socket, json};
use super::command::{Ended, eyewall, run};
use super::server::Server;

pub(crate) struct Upgrading {
    pub(crate) address: SocketAddr,
    pub(crate) socket: Socket,
    pub(crate) folder: TempDir,
    /// The first process, until it has been waited for.
    first: Option<Server>,
    /// All processes since.
    processes: Vec<u32>,
}

impl Upgrading {
    /// A server with a volume in a file. `rest` begins with further settings of `[server]`.
    pub(crate) fn start(rest: &str) -> Self {
        Self::with(rest, |command| command.stderr(Stdio::null()))
    }

    pub(crate) fn with(rest: &str, set_up: impl FnOnce(&mut Command) -> &mut Command) -> Self {
        let (folder, socket) = (tempfile::tempdir().unwrap(), Socket::new());
        let program = folder.path().join("eyewall");
        symlink(eyewall().get_program(), &program).unwrap();
        let file = folder.path().join("eyewall.toml");
        std::fs::write(&file, text(folder.path(), &socket, rest)).unwrap();
        let mut command = Command::new(program);
        command.env_remove("EYEWALL_CACHE").args(["serve", "--config"]).arg(file);
        let first = Server::spawn(set_up(&mut command));
        Self { address: first.address, socket, folder, first: Some(first), processes: Vec::new() }
    }

    /// The link to the program that the server starts.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.path().join("eyewall")
    }

    pub(crate) fn write(&self, rest: &str) {
        std::fs::write(self.folder.path().join("eyewall.toml"), text(self.folder.path(), &self.socket, rest)).unwrap();
    }

    /// The process that is the server now.
    pub(crate) fn process(&self) -> u32 {
        self.processes.last().copied().or(self.first.as_ref().map(|first| first.child.id())).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(pid(self.process()), signal).unwrap();
    }

    /// `eyewall upgrade`, whatever comes of it.
    pub(crate) fn try_upgrade(&self) -> Ended {
        run(eyewall().args(["upgrade", "--json", "--server"]).arg(self.socket.path()), b"")
    }

    /// Returns the process before.
    pub(crate) fn upgrade(&mut self) -> u32 {
        let before = self.process();
        let ended = self.try_upgrade();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
        let upgraded: serde_json::Value = serde_json::from_str(ended.text()).unwrap();
        let process = upgraded["process"].as_u64().unwrap() as u32;
        assert_ne!(process, before);
        self.processes.push(process);
        before
    }

    /// By SIGUSR2.
    pub(crate) fn upgrade_by_signal(&mut self) {
        let before = self.process();
        self.signal(Signal::USR2);
        loop {
            let status = json(&self.socket.ask("GET", "/status", &[], ""));
            let process = status["process"].as_u64().unwrap() as u32;
            if process != before {
                self.processes.push(process);
                return;
            }
        }
    }

    /// Waits until the first process has ended.
    pub(crate) fn first_ends(&mut self) -> std::process::ExitStatus {
        let mut first = self.first.take().unwrap();
        first.child.wait().unwrap()
    }

    pub(crate) fn first(&mut self) -> &mut Child {
        &mut self.first.as_mut().unwrap().child
    }
}

impl Drop for Upgrading {
    fn drop(&mut self) {
        // They are no children of this process, so that it can only wait until they are gone.
        for process in &self.processes {
            let _ = kill_process(pid(*process), Signal::KILL);
        }
    }
}

/// Waits until a process that is no child of this one has ended.
pub(crate) fn gone(process: u32) {
    // The process before it may not have waited for it.
    let is_running = || {
        let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        test_kill_process(pid(process)).is_ok() && !status.contains(") Z ")
    };
    while is_running() {
        std::thread::yield_now();
    }
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(process as i32).unwrap()
}

fn text(folder: &Path, socket: &Socket, rest: &str) -> String {
    let volume = folder.join("site.eye");
    // The first table.
    let tables = if rest.starts_with('[') { 0 } else { rest.find("\n[").unwrap() + 1 };
    let (server, rest) = rest.split_at(tables);
    format!(
        "[server]\nlisten = [\"127.0.0.1:0\"]\n{server}[cache]\npath = {volume:?}\nsize = \"8M\"\n{}{rest}",
        socket.table()
    )
}
