//! What this program does when it starts itself: measurements that need a process of their own.
//!
//! Talk goes over the pipes: the child says `ready`, the parent `go`, the child its result.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use clap::Subcommand;
use eyewall::Options;

use crate::clock::{Lap, now_ns};
use crate::contender::Contender as _;
use crate::error::{Error, Result};
use crate::load::{self, Gets, Population, Sequences};
use crate::procedure::oversized;
use crate::random;
use crate::store::Volume;
use crate::touch::Touch;
use crate::work::{crashed, fill, stream};

/// The work of a child.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Gets by some threads of a process
    Gets {
        /// The volume
        volume: PathBuf,
        /// Objects in it
        objects: u64,
        /// Bytes of each
        value_bytes: usize,
        /// Threads
        threads: usize,
        /// Keys of all threads
        keys_total: usize,
        /// Seed of the keys
        seed: u64,
        /// For how long
        duration_ms: u64,
    },
    /// Opens a volume
    Open {
        /// The volume
        volume: PathBuf,
    },
    /// Puts values until it is killed
    Puts {
        /// The volume
        volume: PathBuf,
        /// Bytes of each value
        value_bytes: usize,
        /// Index of the first object
        first: u64,
    },
    /// Asks for cold keys together with other processes
    Fill(fill::Task),
    /// Stores large values
    Stream(stream::Task),
    /// Opens a volume after power loss
    Crashed(crashed::Task),
    /// Does a mix with little memory
    Oversized(oversized::Task),
}

/// Does the work of a child.
pub fn run(task: &Task) -> Result<()> {
    match task {
        Task::Gets { volume, objects, value_bytes, threads, keys_total, seed, duration_ms } => {
            let population = Population { objects: *objects, value_bytes: *value_bytes };
            let gets = Gets {
                sequences: Sequences::random(population, *threads, *keys_total, *seed),
                touch: Touch::Page,
                duration: Duration::from_millis(*duration_ms),
            };
            gets_when_told(volume, population, &gets)
        }
        Task::Open { volume } => open(volume),
        Task::Puts { volume, value_bytes, first } => puts_until_killed(volume, *value_bytes, *first),
        Task::Fill(task) => task.run(),
        Task::Stream(task) => task.run(),
        Task::Crashed(task) => task.run(),
        Task::Oversized(task) => task.run(),
    }
}

fn gets_when_told(volume: &Path, population: Population, gets: &Gets) -> Result<()> {
    let store = Volume::open(volume)?;
    store.check(population)?;
    // Uncounted: the pages of a shared file are mapped anew when they are first written to, by raising a frequency.
    store.gets(gets)?;
    say("ready")?;
    hear()?;
    let lap = store.gets(gets)?;
    say(&format!("{} {} {}", lap.operations, lap.begin_ns, lap.end_ns))
}

fn open(volume: &Path) -> Result<()> {
    let options = Options::new().create(false);
    let begin_ns = now_ns();
    let cache = options.open(volume)?;
    let took_ns = now_ns() - begin_ns;
    say(&format!("{took_ns} {}", cache.stats()?.entries))
}

fn puts_until_killed(volume: &Path, value_bytes: usize, first: u64) -> Result<()> {
    let store = Volume::open(volume)?;
    let mut value = random::filler(5, value_bytes);
    say("ready")?;
    for index in first.. {
        load::stamp(&mut value, index);
        store.cache().put(random::key(index), &value)?;
    }
    Ok(())
}

/// Tells the parent.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Error::io("answer the parent"))
}

/// Waits for the parent's word; false: there will be none any more.
pub(crate) fn hear() -> Result<bool> {
    let mut line = String::new();
    let bytes = std::io::stdin().read_line(&mut line).map_err(Error::io("wait for the parent's word"))?;
    Ok(bytes > 0)
}

/// What is started as a child, where it isn't this program.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Lets children be another program, which has to know their tasks: for tests, whose own program doesn't.
pub fn start_children_as(program: &Path) {
    // Whoever comes second says the same.
    let _ = PROGRAM.set(program.to_owned());
}

/// A child at work. Killed when dropped.
#[derive(Debug)]
pub struct Worker {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program again with the arguments of a [`Task`].
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
        Ok(Self { process, to, from: BufReader::new(from) })
    }

    /// The child's next line; an error if it ended instead.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let bytes = self.from.read_line(&mut line).map_err(Error::io("listen to a child"))?;
        if bytes == 0 {
            let status = self.process.wait().map_err(Error::io("wait for a child"))?;
            return Err(Error::Invalid(format!("a child ended early: {status}")));
        }
        Ok(line.trim_end().to_owned())
    }

    /// Tells the child to start.
    pub fn go(&mut self) -> Result<()> {
        self.to.write_all(b"go\n").map_err(Error::io("start a child's work"))
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

    /// Waits for the child to end by itself.
    pub fn end(&mut self) -> Result<()> {
        let status = self.process.wait().map_err(Error::io("wait for a child"))?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Invalid(format!("a child failed: {status}")))
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
