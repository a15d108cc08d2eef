//! Processes of this program that it starts itself, for measurements that need a process of their own.
//!
//! They talk over pipes: the child says `ready`, the parent `go`, the child its result. A child that fails says why in its last line.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::clock::Lap;
use crate::error::{Error, Result};

/// Does the work of a child. It reports a failure to its parent alone.
pub fn work(work: impl FnOnce() -> Result<()>) -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // A parent that is gone doesn't miss it.
            let _ = say(&format!("{FAILED}{failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Tells the parent.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::io("answer the parent"))
}

/// Waits for the parent's word; false: there will be none any more.
pub(crate) fn hear() -> Result<bool> {
    hear_words().map(|words| words.is_some())
}

/// Waits for a line of the parent's; `None`: there will be none any more.
pub(crate) fn hear_words() -> Result<Option<String>> {
    let mut line = String::new();
    let bytes = std::io::stdin().read_line(&mut line).map_err(Error::io("wait for the parent's word"))?;
    Ok((bytes > 0).then(|| line.trim_end().to_owned()))
}

/// The start of the last line of a child that failed.
const FAILED: &str = "failed: ";

/// The program to start as a child, if it isn't this one.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Lets children be another program, which has to know their tasks: for tests, whose own program doesn't.
pub fn start_children_as(program: &Path) {
    // A second call sets the same.
    let _ = PROGRAM.set(program.to_owned());
}

/// A child at work. Killed when dropped.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    /// `None`: it was told that there is nothing more to do.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program again with the words of a task.
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

    /// The child's next line; an error if it failed or ended instead.
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

    /// Tells the child these words.
    pub fn tell(&mut self, words: &str) -> Result<()> {
        let Some(to) = &mut self.to else {
            return Err(Error::Child(format!("it was told to end before {words:?}")));
        };
        match to.write_all(format!("{words}\n").as_bytes()) {
            // It has ended; its last line or its status says why.
            Err(failure) if failure.kind() == ErrorKind::BrokenPipe => {
                self.line().and_then(|line| Err(Error::Child(format!("it said {line:?} and ended"))))
            }
            told => told.map_err(Error::io("tell a child what to do")),
        }
    }

    /// The numbers of the child's last line.
    pub fn numbers<const N: usize>(&mut self) -> Result<[u64; N]> {
        let line = self.line()?;
        let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
        numbers.try_into().map_err(|_| Error::Invalid(format!("a child answered {line:?}")))
    }

    /// The lap that the child reports.
    pub fn lap(&mut self) -> Result<Lap> {
        let [operations, begin_ns, end_ns] = self.numbers()?;
        Ok(Lap { operations, begin_ns, end_ns })
    }

    /// Lets the child end by itself: it hears that there is nothing more to do.
    pub fn end(&mut self) -> Result<()> {
        drop(self.to.take());
        let status = self.process.wait().map_err(Error::io("wait for a child"))?;
        if status.success() {
            return Ok(());
        }
        // Its last line says why, or its status.
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
        // It may have ended already; then there is nothing to kill.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
