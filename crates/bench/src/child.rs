//! Child processes that run this program again, for measurements that need a process of their own.
//!
//! They talk over pipes: the child says `ready`, the parent says `go`, and the child answers with its result. If a
//! child fails, its last line says why.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::clock::Lap;
use crate::error::{Error, Result};

/// Does the work of a child. It reports a failure only to its parent.
pub fn work(work: impl FnOnce() -> Result<()>) -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // If the parent is gone, nobody needs the report.
            let _ = say(&format!("{FAILED}{failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Sends a line to the parent.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::io("answer the parent"))
}

/// Waits for the parent's `go`; false if none will come any more.
pub(crate) fn hear() -> Result<bool> {
    hear_words().map(|words| words.is_some())
}

/// Waits for a line of the parent; `None` if none will come any more.
pub(crate) fn hear_words() -> Result<Option<String>> {
    let mut line = String::new();
    let bytes = std::io::stdin().read_line(&mut line).map_err(Error::io("wait for the parent's word"))?;
    Ok((bytes > 0).then(|| line.trim_end().to_owned()))
}

/// How the last line of a failed child begins.
const FAILED: &str = "failed: ";

/// The program to start as a child, if not this one.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets another program to start as children. It has to know their tasks. Tests need this, since their own program
/// doesn't know them.
pub fn start_children_as(program: &Path) {
    // A second call sets the same program.
    let _ = PROGRAM.set(program.to_owned());
}

/// A child at work. Killed when dropped.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    /// `None` after the child was told that there is nothing more to do.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program again, with the words of a task as arguments.
    pub fn start(arguments: &[String]) -> Result<Self> {
        let program = match PROGRAM.get() {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(Error::io("find this program"))?,
        };
        let mut process = Command::new(program)
            .arg("child")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a child"))?;
        let (Some(to), Some(from)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(Error::Invalid("a child has no pipes".to_owned()));
        };
        Ok(Self { process, to: Some(to), from: BufReader::new(from) })
    }

    /// The child's next line; an error if the child failed or ended instead.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.from.read_line(&mut line).map_err(Error::io("listen to a child"))?;
        if bytes == 0 {
            let status = self.process.wait().map_err(Error::io("wait for a child"))?;
            return Err(Error::Child(format!("it ended early, by {status}")));
        }
        match line.trim_end() {
            line if line.starts_with(FAILED) => Err(Error::Child(line[FAILED.len()..].to_owned())),
            line => Ok(line.to_owned()),
        }
    }

    /// Tells the child to start.
    pub fn go(&mut self) -> Result<()> {
        self.tell("go")
    }

    /// Sends these words to the child.
    pub fn tell(&mut self, words: &str) -> Result<()> {
        let Some(to) = &mut self.to else {
            return Err(Error::Child(format!("it was told to end before {words:?}")));
        };
        match to.write_all(format!("{words}\n").as_bytes()) {
            // The child has ended; its last line or its status says why.
            Err(failure) if failure.kind() == ErrorKind::BrokenPipe => {
                self.line().and_then(|line| Err(Error::Child(format!("it said {line:?} and ended"))))
            }
            told => told.map_err(Error::io("tell a child what to do")),
        }
    }

    /// The numbers in the child's next line.
    pub fn numbers<const N: usize>(&mut self) -> Result<[u64; N]> {
        let line = self.line()?;
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| Error::Invalid(format!("a child answered {line:?}")))
    }

    /// The lap in the child's next line.
    pub fn lap(&mut self) -> Result<Lap> {
        let [operations, begin_ns, end_ns] = self.numbers()?;
        Ok(Lap { operations, begin_ns, end_ns })
    }

    /// Tells the child that there is nothing more to do, so that it ends by itself.
    pub fn end(&mut self) -> Result<()> {
        drop(self.to.take());
        let status = self.process.wait().map_err(Error::io("wait for a child"))?;
        if status.success() {
            return Ok(());
        }
        // The child's last line, or its status, says why.
        loop {
            self.line()?;
        }
    }

    /// Kills the child by SIGKILL and reaps it.
    pub fn kill(&mut self) -> Result<ExitStatus> {
        self.process.kill().map_err(Error::io("kill a child"))?;
        self.process.wait().map_err(Error::io("wait for a child"))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The child may have ended already; then there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
