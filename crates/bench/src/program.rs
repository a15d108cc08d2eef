//! The program `eyewall-bench`, without its stores.

use std::io::{IsTerminal as _, Write as _, stdout};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::{Args, Parser, Subcommand};

use crate::child;
use crate::error::{Error, Result};
use crate::machine;
use crate::peer::Peer;
use crate::procedure::tasks;
use crate::scratch::{Scratch, Storage};
use crate::session::{Ended, Session, Setting};
use crate::suite::compare;
use crate::suite::definition::{self, Definition, Scale};
use crate::suite::interrupt::Interrupt;
use crate::suite::recorder;

/// Measures caches, and writes the results to a record that the explorer shows.
#[derive(Debug, Parser)]
#[command(name = "eyewall-bench", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure workloads: the named ones, or all
    Run(Run),
    /// Name the workloads, their groups, and what they measure
    List {
        #[command(flatten)]
        definitions: Definitions,
    },
    /// Show which changes between two records exceed their noise
    Compare {
        /// Directory of the old record
        old: PathBuf,
        /// Directory of the new record
        new: PathBuf,
        /// Ignore changes of fewer percent
        #[arg(long, default_value_t = 3.0, value_name = "PERCENT")]
        least: f64,
    },
    /// A task of a child process
    #[command(hide = true)]
    Child {
        #[command(subcommand)]
        task: tasks::Task,
    },
}

#[derive(Debug, Args)]
struct Definitions {
    /// Directory with the definitions of the workloads
    #[arg(long, default_value = "bench/workloads", value_name = "DIR")]
    workloads: PathBuf,
}

#[derive(Debug, Args)]
struct Run {
    /// Workloads or groups of workloads; a resumed run keeps its own
    #[arg(conflicts_with = "resume")]
    names: Vec<String>,
    #[command(flatten)]
    definitions: Definitions,
    /// A first look, in under ten minutes; its runs are too short to quote figures. A resumed run stays whole or quick
    #[arg(long)]
    quick: bool,
    /// Directory of the record [default: target/bench/DATE-MACHINE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Resume an interrupted run: the directory of its record
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    resume: Option<PathBuf>,
    /// A trace to replay beside those of the workload: lines of `key size`, or an access log, plain or in gzip; may be
    /// repeated; give it again with --resume
    #[arg(long, value_name = "FILE")]
    trace: Vec<PathBuf>,
    /// A directory on the disk [default: beside this program]
    #[arg(long, value_name = "DIR")]
    disk_dir: Option<PathBuf>,
    /// A directory in shared memory
    #[arg(long, default_value = "/dev/shm", value_name = "DIR")]
    shm_dir: PathBuf,
}

/// Runs the command line with these stores. Exit codes: 0 done; 1 failed; 130 interrupted, with the results so far in
/// the record.
pub fn main(peers: &[Peer]) -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Run(run) => self::run(run, peers),
        Task::List { definitions } => list(&definitions),
        Task::Compare { old, new, least } => compare::compare(&old, &new, least).and_then(|found| print(&found.text())),
        Task::Child { task } => return child::work(|| task.run(peers)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Interrupted) => ExitCode::from(130),
        Err(failure) => {
            eprintln!("eyewall-bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(run: Run, peers: &[Peer]) -> Result<()> {
    let begun = run.resume.as_deref().map(recorder::read_head).transpose()?;
    let (scale, names) = match &begun {
        Some(head) => (head.kind, head.workload_names()),
        None => (if run.quick { Scale::Quick } else { Scale::Whole }, run.names),
    };
    let mut definitions = definition::read_all(&run.definitions.workloads, &names, scale)?;
    for definition in &mut definitions {
        definition.give_traces(&run.trace)?;
    }
    let interrupt = Interrupt::listen()?;
    let resume = run.resume.is_some();
    let scratch = Scratch::new(run.disk_dir, run.shm_dir)?;
    let folder = match run.resume.or(run.out) {
        Some(folder) => folder,
        None => usual_folder(&scratch, scale)?,
    };
    let setting = Setting { scale, folder, resume, scratch, commit: commit() };
    let mut session = Session::begin(definitions, peers, setting, interrupt)?;
    let ended = session.run()?;
    let folder = session.folder().display();
    println!("{folder}");
    if ended == Ended::Interrupted {
        eprintln!("eyewall-bench: interrupted; what was measured is kept, --resume {folder} goes on");
        return Err(Error::Interrupted);
    }
    if ended == Ended::Incomplete {
        return Err(Error::Invalid(format!("not all could be measured; the notes of {folder}/record.json say why")));
    }
    if stdout().is_terminal() {
        eprintln!("look at it: EYEWALL_RECORDS={folder} make explorer; its bars: scripts/records table {folder}");
    }
    Ok(())
}

fn list(definitions: &Definitions) -> Result<()> {
    let line = |one: &Definition| {
        let (stores, minutes) = (one.stores.len(), one.minutes.at(Scale::Whole));
        format!("{:<22} {:<8} {} ({stores} stores, {minutes} min)\n", one.name, one.group, one.title)
    };
    let text: String = definition::read_all(&definitions.workloads, &[], Scale::Whole)?.iter().map(line).collect();
    print(&text)
}

fn print(text: &str) -> Result<()> {
    stdout().write_all(text.as_bytes()).map_err(Error::io("print"))
}

/// A new directory for a record, named by day, machine and scale.
fn usual_folder(scratch: &Scratch, scale: Scale) -> Result<PathBuf> {
    let kind = machine::Machine::look(scratch.directory(Storage::Disk), scratch.directory(Storage::Shm))?.kind();
    let quick = if scale == Scale::Quick { "-quick" } else { "" };
    let stem = format!("suite-{}-{kind}{quick}", machine::today());
    let below = PathBuf::from("target/bench");
    let named = |number: usize| below.join(if number == 1 { stem.clone() } else { format!("{stem}-{number}") });
    let free = (1..1_000).map(named).find(|folder| !folder.exists());
    free.ok_or_else(|| Error::Invalid("no name is free for a record".to_owned()))
}

/// The commit of the sources in the current directory, if git knows it, with `+changes` if the sources differ from it.
fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changes.is_empty() { commit } else { format!("{commit}+changes") })
}
